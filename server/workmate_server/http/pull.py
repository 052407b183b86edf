"""What one device pulls: a page of changes for its worker, or the code why there is none.

Each change is the latest state of one object, once, however often it changed. A worker gets the
values of the tasks that he holds, the site's position of those he still has to do, what he gathered
himself, and of what others handed over the words but never where they were.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from workmate_server.engine.answers import stored_receipt
from workmate_server.http.cursors import make_cursor, read_cursor
from workmate_server.http.problems import ProblemError
from workmate_server.http.services import Services
from workmate_server.identity.authenticate import Caller
from workmate_server.store import reads_feed
from workmate_server.store.database import Connection
from workmate_server.store.pages import Page
from workmate_server.store.reads_feed import FeedItem, FeedPage
from workmate_server.store.reads_log import read_disclosures
from workmate_shared.kernel.table import Role
from workmate_shared.principals.events import CredentialRevoked
from workmate_shared.tasks.feed import worker_audience
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.table import OPEN_STATES
from workmate_shared.tasks.task import ManifestRecord, Task
from workmate_shared.wire.messages import Change, KeyNotice, Pull, WireEvent

_NOBODY = ""
_SCOPE = "pull"
_VIEW_RULES = 1
"""Changes with the rules of who sees what, and makes every cursor void."""
_HANDED_OVER = "handed_over"


def audience_of(caller: Caller) -> str:
    """Return the audience whose changes this caller pulls; only workers have one."""
    return worker_audience(caller.principal_id) if Role.WORKER in caller.roles else _NOBODY


def read_place(services: Services, caller: Caller, head: Any, text: str | None) -> int:
    """Return the seq after which the caller's pull goes on, 0 without a cursor.

    Raises ProblemError: `bad_cursor` for text that is none, `cursor_expired` for one of another
    lineage, another view, or a seq that the log has not reached.
    """
    place = read_cursor(services, caller, _SCOPE, text)
    if place is None:
        return 0
    view, seq = place
    if view != _view(caller) or seq > head.seq:
        raise ProblemError("cursor_expired")
    return int(seq)


def pull_page(
    services: Services,
    connection: Connection,
    caller: Caller,
    head: Any,
    text: str | None,
    limit: int,
) -> Pull:
    """Return the page after a cursor. Raises ProblemError like `read_place`."""
    after_seq = read_place(services, caller, head, text)
    audience = audience_of(caller)
    found = FeedPage([], head.seq, more=False)
    if audience != _NOBODY:
        found = reads_feed.load_page(
            connection,
            caller.tenant_id,
            audience,
            after_seq=after_seq,
            newest_seq=head.seq,
            page=Page(limit, services.settings.list_page_bytes_max),
        )
    return Pull(
        changes=tuple(_changes(connection, caller, found.items)),
        since=text,
        cursor=make_cursor(services, caller, _SCOPE, (_view(caller), found.seq)),
        more=found.more,
    )


def pull_refused(connection: Connection, caller: Caller) -> Pull | None:
    """Return the refusal of a pull to somebody who may no longer act, or None.

    That of a revoked device carries the receipt and the event which say so, and whether to wipe.
    """
    if caller.device_revoked:
        for row in reads_feed.load_revocations(connection, caller.tenant_id, caller.principal_id):
            event = msgspec.json.decode(row.payload, type=CredentialRevoked)
            if event.credential_id == caller.device_id:
                notice = key_notice(connection, row)
                return Pull(refused="device_revoked", receipt=notice.receipt, event=notice.event)
        return Pull(refused="device_revoked")
    return None if caller.active else Pull(refused="actor_deactivated")


def key_notice(connection: Connection, row: Any) -> KeyNotice:
    """Return a row of the log as it is told, with the receipt of its command."""
    command = reads_feed.load_command_at(connection, row.tenant_id, row.batch, row.leaf_index)
    event = WireEvent(row.seq, row.aggregate_version, row.type, row.payload.decode())
    return KeyNotice(event, stored_receipt(connection, command))


def _view(caller: Caller) -> str:
    return f"{_VIEW_RULES}/{audience_of(caller)}"


def _changes(connection: Connection, caller: Caller, items: Iterable[FeedItem]) -> Iterable[Change]:
    tasks = {
        item.object_id: msgspec.json.decode(item.snapshot, type=Task)
        for item in items
        if item.snapshot is not None
    }
    shown = _shown(connection, caller, tasks)
    wanted = {commitment for named in shown.values() for commitment in named}
    opened = read_disclosures(connection, caller.tenant_id, wanted)
    for item in items:
        task = tasks.get(item.object_id)
        if task is None:
            why = item.removed_why or "gone"
            yield Change(kind="task", id=item.object_id, seq=item.seq, removed=why)
            continue
        named = [name for name in shown[item.object_id] if name in opened]
        yield Change(
            kind="task",
            id=item.object_id,
            seq=item.seq,
            # Who else held the task is not this worker's to know.
            task=replace(task, holders=(caller.principal_id,)),
            disclosures={name: opened[name] for name in named},
        )


def _shown(connection: Connection, caller: Caller, tasks: dict[str, Task]) -> dict[str, list[str]]:
    """Return the commitments of each task whose values the caller may see."""
    foreign = [
        (task.task_id, record.manifest_id)
        for task in tasks.values()
        for record in task.manifests
        if record.author_id != caller.principal_id and record.status == _HANDED_OVER
    ]
    words = {
        key: msgspec.json.decode(data, type=Manifest).personal
        for key, data in reads_feed.load_manifests(connection, caller.tenant_id, foreign).items()
    }
    shown = {}
    for task in tasks.values():
        named = [*task.personal]
        if task.position is not None and task.state in OPEN_STATES:
            named.append(task.position)
        for record in task.manifests:
            named += _of_manifest(caller, task, record, words)
            named += [record.reason] if record.reason is not None else []
        shown[task.task_id] = named
    return shown


def _of_manifest(
    caller: Caller,
    task: Task,
    record: ManifestRecord,
    words: dict[tuple[str, str], str | None],
) -> list[str]:
    if record.author_id == caller.principal_id:
        return list(record.commitments)
    said = words.get((task.task_id, record.manifest_id))
    return [] if said is None else [said]
