"""What a device pulls: the objects that changed for its worker, and what it must know beside them.

Each function is one indexed look; none grows with the length of the log. The statements that every
sync asks for are built once, because building one costs more than running it.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, and_, bindparam, func, select

from workmate_server.store.database import Database
from workmate_server.store.pages import Page
from workmate_server.store.tables import (
    AuditEvent,
    CommandLog,
    CommitBatch,
    CredentialRow,
    CredentialUse,
    EvidenceManifest,
    FeedRow,
    TaskSnapshot,
    table_of,
)

_FEED = table_of(FeedRow)
_TASKS = table_of(TaskSnapshot)
_EVENTS = table_of(AuditEvent)
_BATCHES = table_of(CommitBatch)
_COMMANDS = table_of(CommandLog)
_CREDENTIALS = table_of(CredentialRow)
_MANIFESTS = table_of(EvidenceManifest)
_USES = table_of(CredentialUse)

TASK = "task"
LOG_KEY = "log_key"
REVOKED = "credential.revoked"

_TENANT: Any = bindparam("tenant")
_MINE = and_(
    _FEED.c.tenant_id == _TENANT,
    _FEED.c.audience == bindparam("audience"),
    _FEED.c.seq > bindparam("after"),
)
_SOURCE = _FEED.outerjoin(
    _TASKS,
    and_(
        _TASKS.c.tenant_id == _FEED.c.tenant_id,
        _TASKS.c.task_id == _FEED.c.object_id,
        _FEED.c.kind == TASK,
        _FEED.c.removed_why.is_(None),
    ),
)
_SIZES = (
    select(_FEED.c.seq, func.coalesce(func.length(_TASKS.c.snapshot), 0).label("size"))
    .select_from(_SOURCE)
    .where(_MINE)
    .order_by(_FEED.c.seq)
    .limit(bindparam("look"))
)
_ITEMS = (
    select(
        _FEED.c.kind,
        _FEED.c.object_id,
        _FEED.c.seq,
        _FEED.c.removed_why,
        _TASKS.c.snapshot,
    )
    .select_from(_SOURCE)
    .where(_MINE, _FEED.c.seq <= bindparam("end"))
    .order_by(_FEED.c.seq, _FEED.c.kind, _FEED.c.object_id)
)
_ANY = select(_FEED.c.seq).where(_MINE).limit(1)
_KEY_EVENTS = (
    select(_EVENTS)
    .join(
        _CREDENTIALS,
        and_(
            _CREDENTIALS.c.tenant_id == _EVENTS.c.tenant_id,
            _CREDENTIALS.c.added_seq == _EVENTS.c.seq,
        ),
    )
    .where(
        _CREDENTIALS.c.tenant_id == _TENANT,
        _CREDENTIALS.c.kind == LOG_KEY,
        _EVENTS.c.batch > bindparam("after"),
    )
    .order_by(_EVENTS.c.seq)
)
_CONTACT = select(_USES).where(
    _USES.c.tenant_id == _TENANT, _USES.c.credential_id == bindparam("credential")
)
_MADE = select(_BATCHES.c.server_time).where(
    _BATCHES.c.tenant_id == _TENANT, _BATCHES.c.batch == bindparam("number")
)


class FeedItem(Struct, frozen=True):
    """One object that changed at `seq`: its snapshot, or why it left the audience's sight."""

    kind: str
    object_id: str
    seq: int
    removed_why: str | None
    snapshot: bytes | None


class FeedPage(Struct, frozen=True):
    """Everything that changed for an audience after one seq up to and including `seq`."""

    items: list[FeedItem]
    seq: int
    more: bool


def load_page(
    connection: Connection,
    tenant_id: str,
    audience: str,
    *,
    after_seq: int,
    newest_seq: int,
    page: Page,
) -> FeedPage:
    """Return the next page in seq order; it never ends between objects of one seq.

    Should more objects of one seq have changed than a page takes, they are one larger page. The last
    page reaches to `newest_seq`, which the same transaction read as the end of the log.
    """
    mine = {"tenant": tenant_id, "audience": audience, "after": after_seq}
    rows = connection.execute(_SIZES, {**mine, "look": page.look}).all()
    shown, more = page.cut(rows)
    end = _end_of_seq(shown, rows) if more else newest_seq
    if more and not changed_after(connection, tenant_id, audience, end):
        end, more = newest_seq, False
    found = connection.execute(_ITEMS, {**mine, "end": end}) if rows else ()
    return FeedPage([FeedItem(*row) for row in found], end, more)


def _end_of_seq(shown: Sequence[Any], rows: Sequence[Any]) -> int:
    """Return the last seq that lies wholly within the rows shown, or the first if none does."""
    last: int = shown[-1].seq
    if rows[len(shown)].seq != last:
        return last
    whole = [row.seq for row in shown if row.seq < last]
    return whole[-1] if whole else last


def changed_after(connection: Connection, tenant_id: str, audience: str, seq: int) -> bool:
    """Whether anything changed for the audience after `seq`."""
    mine = {"tenant": tenant_id, "audience": audience, "after": seq}
    return connection.execute(_ANY, mine).first() is not None


def load_manifests(
    connection: Connection, tenant_id: str, manifests: list[tuple[str, str]]
) -> dict[tuple[str, str], bytes]:
    """Return the bytes of manifests by (task id, manifest id)."""
    if not manifests:
        return {}
    c = _MANIFESTS.c
    rows = connection.execute(
        select(c.task_id, c.manifest_id, c.manifest).where(
            c.tenant_id == tenant_id,
            c.task_id.in_({task_id for task_id, _ in manifests}),
            c.manifest_id.in_({manifest_id for _, manifest_id in manifests}),
        )
    )
    return {(row.task_id, row.manifest_id): row.manifest for row in rows}


def load_log_key_events(connection: Connection, tenant_id: str, after_batch: int) -> list[Any]:
    """Return the events that added log keys in batches after one number, in order."""
    return list(connection.execute(_KEY_EVENTS, {"tenant": tenant_id, "after": after_batch}))


def load_contact(connection: Connection, tenant_id: str, credential_id: str) -> Any:
    """Return when a device was last heard of and its report, or None."""
    known = {"tenant": tenant_id, "credential": credential_id}
    return connection.execute(_CONTACT, known).one_or_none()


def load_revocations(connection: Connection, tenant_id: str, principal_id: str) -> list[Any]:
    """Return the events that revoked a principal's credentials, newest first."""
    c = _EVENTS.c
    return list(
        connection.execute(
            select(_EVENTS)
            .where(c.tenant_id == tenant_id, c.aggregate_id == principal_id, c.type == REVOKED)
            .order_by(c.aggregate_version.desc())
        )
    )


def load_command_at(connection: Connection, tenant_id: str, batch: int, leaf_index: int) -> Any:
    """Return the decided command that is a leaf of a batch."""
    c = _COMMANDS.c
    return connection.execute(
        select(_COMMANDS).where(
            c.tenant_id == tenant_id, c.batch == batch, c.leaf_index == leaf_index
        )
    ).one()


def newest_batch_before(
    connection: Connection, tenant_id: str, newest_batch: int, instant: str
) -> int:
    """Return the number of the newest batch made at or before an instant in UTC; 0 if none was.

    Batches are dense and in order of time, so that halving finds it; a server clock that was set
    back only moves the answer by so many batches. Of a log that is younger one look tells it.
    """
    low, high = 0, newest_batch
    middle = 1
    while low < high:
        made = connection.execute(_MADE, {"tenant": tenant_id, "number": middle}).scalar()
        if made is not None and made <= instant:
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


def note_contact(
    database: Database,
    connection: Connection,
    tenant_id: str,
    credential_id: str,
    *,
    at: str,
    report: str,
) -> None:
    """Remember when a device was last heard of and what it said of itself (JSON)."""
    row = {
        "tenant_id": tenant_id,
        "credential_id": credential_id,
        "last_used_at": at,
        "report": report,
    }
    database.upsert(connection, _USES, [row])
