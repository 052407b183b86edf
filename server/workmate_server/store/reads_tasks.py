"""Lists of tasks and of what waits to be reviewed, read from the snapshots.

Pages are found by key, not by counting: a task that changes while somebody turns pages can move
within the order and is never skipped without having moved.
"""

from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Select, and_, bindparam, func, or_, select, tuple_

from workmate_server.store.loads import load_snapshots
from workmate_server.store.pages import Page
from workmate_server.store.tables import EvidenceManifest, TaskSnapshot, table_of
from workmate_shared.tasks.task import Task

_TASKS = table_of(TaskSnapshot)
_MANIFESTS = table_of(EvidenceManifest)

# Built once: this is read for most requests, and building a statement costs more than running it.
_SNAPSHOT = select(_TASKS.c.snapshot).where(
    _TASKS.c.tenant_id == bindparam("tenant_wanted"), _TASKS.c.task_id == bindparam("task_wanted")
)

HANDED_OVER = "handed_over"
SUBMITTED = "submitted"
PROOF_PENDING = "proof_pending"

Position = tuple[Any, ...]
"""The key of the last row of a page."""

Sort = Literal["due", "changed"]


class TaskFilter(Struct, frozen=True, kw_only=True):
    """Which tasks a list shows; None leaves a question open.

    `due_before` is a time in UTC as the snapshots have it, `changed_after` a seq, `site` lower-case
    text that occurs in client, site name or address.
    """

    states: tuple[str, ...] = ()
    assignee_id: str | None = None
    external_id: str | None = None
    source: str | None = None
    site: str | None = None
    due_before: str | None = None
    changed_after: int | None = None


class TaskRow(Struct, frozen=True):
    """One task of a list and where it stands in the order."""

    task: Task
    position: Position


class ReviewRow(Struct, frozen=True):
    """One manifest that waits, its task, and where it stands in the order."""

    task: Task
    manifest_id: str
    content_hash: str
    author_id: str
    capture_time: str
    status: str
    position: Position


def read_task(connection: Connection, tenant_id: str, task_id: str) -> Task | None:
    """Return the present state of a task, or None."""
    wanted = {"tenant_wanted": tenant_id, "task_wanted": task_id}
    data = connection.execute(_SNAPSHOT, wanted).scalar()
    return None if data is None else msgspec.json.decode(data, type=Task)


def read_tasks(
    connection: Connection, tenant_id: str, task_ids: Collection[str]
) -> dict[str, Task]:
    """Return the present states of those tasks that exist, by id."""
    if len(task_ids) == 1:
        (only,) = task_ids
        task = read_task(connection, tenant_id, only)
        return {} if task is None else {only: task}
    found = load_snapshots(connection, tenant_id, "task", task_ids, lock=False)
    return {name: msgspec.json.decode(data, type=Task) for name, data in found.items()}


def list_tasks(
    connection: Connection,
    tenant_id: str,
    wanted: TaskFilter,
    sort: Sort,
    after: Position | None,
    page: Page,
) -> tuple[list[TaskRow], bool]:
    """Return one page of tasks in order of deadline or of last change, and whether others follow."""
    c = _TASKS.c
    order = (c.due_utc, c.task_id) if sort == "due" else (c.changed_seq, c.task_id)
    statement = (
        select(c.task_id, order[0].label("key"), func.length(c.snapshot).label("size"))
        .where(c.tenant_id == tenant_id, *_conditions(wanted))
        .order_by(*order)
        .limit(page.look)
    )
    rows, more = page.cut(connection.execute(_following(statement, order, after)).all())
    tasks = read_tasks(connection, tenant_id, [row.task_id for row in rows])
    return [TaskRow(tasks[row.task_id], (row.key, row.task_id)) for row in rows], more


def list_reviews(
    connection: Connection, tenant_id: str, after: Position | None, page: Page
) -> tuple[list[ReviewRow], bool]:
    """Return one page of proofs and hand-overs that wait, earliest deadline first."""
    t, m = _TASKS.c, _MANIFESTS.c
    order = (t.due_utc, t.task_id, m.manifest_id)
    waiting = or_(m.status == HANDED_OVER, and_(m.status == SUBMITTED, t.state == PROOF_PENDING))
    statement = (
        select(
            t.due_utc,
            t.task_id,
            m.manifest_id,
            m.content_hash,
            m.author_id,
            m.capture_time,
            m.status,
            func.length(t.snapshot).label("size"),
        )
        .join(_TASKS, and_(t.tenant_id == m.tenant_id, t.task_id == m.task_id))
        .where(m.tenant_id == tenant_id, waiting)
        .order_by(*order)
        .limit(page.look)
    )
    rows, more = page.cut(connection.execute(_following(statement, order, after)).all())
    tasks = read_tasks(connection, tenant_id, {row.task_id for row in rows})
    return [
        ReviewRow(
            tasks[row.task_id],
            row.manifest_id,
            row.content_hash,
            row.author_id,
            row.capture_time,
            row.status,
            (row.due_utc, row.task_id, row.manifest_id),
        )
        for row in rows
    ], more


def _following(statement: Select[Any], order: Sequence[Any], after: Position | None) -> Select[Any]:
    return statement if after is None else statement.where(tuple_(*order) > tuple_(*after))


def _conditions(wanted: TaskFilter) -> list[Any]:
    c = _TASKS.c
    conditions: list[Any] = []
    if wanted.states:
        conditions.append(c.state.in_(wanted.states))
    for column, value in (
        (c.assignee_id, wanted.assignee_id),
        (c.external_id, wanted.external_id),
        (c.source, wanted.source),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.site is not None:
        conditions.append(c.site_text.contains(wanted.site, autoescape=True))
    if wanted.due_before is not None:
        conditions.append(c.due_utc < wanted.due_before)
    if wanted.changed_after is not None:
        conditions.append(c.changed_seq > wanted.changed_after)
    return conditions
