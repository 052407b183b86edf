"""The log as its readers get it: events, batches with their leaves, and the values behind them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Select, bindparam, func, insert, select

from workmate_server.store.loads import BATCHES, COMMANDS, EVENTS, load_leaves
from workmate_server.store.pages import Page
from workmate_server.store.tables import DisclosureRow, LocationAccess, table_of
from workmate_shared.wire.commitment import Disclosure

_ACCESSES = table_of(LocationAccess)
_DISCLOSURES = table_of(DisclosureRow)
_CHUNK = 500

# Built once: this is read for most requests, and building a statement costs more than running it.
_OPENED = select(
    _DISCLOSURES.c.commitment,
    _DISCLOSURES.c.salt,
    _DISCLOSURES.c.retention_class,
    _DISCLOSURES.c.value,
).where(
    _DISCLOSURES.c.tenant_id == bindparam("tenant_wanted"),
    _DISCLOSURES.c.commitment.in_(bindparam("commitments_wanted", expanding=True)),
)


class StoredEvent(Struct, frozen=True):
    """One event of the log: its place, its aggregate and its exact bytes."""

    seq: int
    aggregate_type: str
    aggregate_id: str
    aggregate_version: int
    type: str
    payload: bytes


class StoredBatch(Struct, frozen=True):
    """One commit batch: its number, its signed header's parts and its leaves in order."""

    batch: int
    header: bytes
    keyid: str
    signature: bytes
    leaves: tuple[bytes, ...]


def list_log(
    connection: Connection, tenant_id: str, kinds: Collection[str], after: int, page: Page
) -> tuple[list[StoredEvent], bool]:
    """Return one page of the events of aggregates of these kinds after a seq; do others follow."""
    c = EVENTS.c
    statement = _sized().where(
        c.tenant_id == tenant_id, c.seq > after, c.aggregate_type.in_(sorted(kinds))
    )
    return _read(connection, tenant_id, statement.order_by(c.seq), page)


def list_stream(
    connection: Connection,
    tenant_id: str,
    aggregate_id: str,
    after: int,
    page: Page,
    event_type: str | None = None,
) -> tuple[list[StoredEvent], bool]:
    """Return one page of an aggregate's events above a version, perhaps of one type only."""
    c = EVENTS.c
    statement = _sized().where(
        c.tenant_id == tenant_id, c.aggregate_id == aggregate_id, c.aggregate_version > after
    )
    if event_type is not None:
        statement = statement.where(c.type == event_type)
    return _read(connection, tenant_id, statement.order_by(c.aggregate_version), page)


def list_batches(
    connection: Connection, tenant_id: str, after: int, page: Page
) -> tuple[list[StoredBatch], bool]:
    """Return one page of batches after a number, with all their leaves; do others follow."""
    b, leaf = BATCHES.c, COMMANDS.c
    size = (
        select(func.sum(func.length(leaf.leaf)))
        .where(leaf.tenant_id == b.tenant_id, leaf.batch == b.batch)
        .scalar_subquery()
    )
    statement = (
        select(b.batch, b.header, b.keyid, b.signature, size.label("size"))
        .where(b.tenant_id == tenant_id, b.batch > after)
        .order_by(b.batch)
        .limit(page.look)
    )
    rows, more = page.cut(connection.execute(statement).all())
    return [
        StoredBatch(
            row.batch,
            row.header,
            row.keyid,
            row.signature,
            tuple(load_leaves(connection, tenant_id, row.batch)),
        )
        for row in rows
    ], more


def seq_at(connection: Connection, tenant_id: str, moment: str) -> int:
    """Return the last seq that was committed before a moment (UTC text as batches have it).

    Batches are looked at by halving: their times rise with their numbers, but for a corrected
    clock, which costs an answer that begins a little early.
    """
    low, high = 0, _newest_batch(connection, tenant_id)
    seq = 0
    while low < high:
        middle = (low + high + 1) // 2
        row = connection.execute(
            select(BATCHES.c.server_time, BATCHES.c.last_seq).where(
                BATCHES.c.tenant_id == tenant_id, BATCHES.c.batch == middle
            )
        ).one_or_none()
        if row is not None and row.server_time < moment:
            low, seq = middle, row.last_seq
        else:
            high = middle - 1
    return seq


def read_disclosures(
    connection: Connection, tenant_id: str, commitments: Iterable[str]
) -> dict[str, Disclosure]:
    """Return what opens the commitments, for those whose values still exist."""
    wanted = sorted(set(commitments))
    found: dict[str, Disclosure] = {}
    for start in range(0, len(wanted), _CHUNK):
        part = {
            "tenant_wanted": tenant_id,
            "commitments_wanted": wanted[start : start + _CHUNK],
        }
        for name, *opened in connection.execute(_OPENED, part):
            found[name] = Disclosure(*opened)
    return found


def record_accesses(connection: Connection, rows: Sequence[dict[str, str]]) -> None:
    """Record who read whose precise position."""
    connection.execute(insert(_ACCESSES), list(rows))


def _newest_batch(connection: Connection, tenant_id: str) -> int:
    newest = connection.execute(
        select(func.max(BATCHES.c.batch)).where(BATCHES.c.tenant_id == tenant_id)
    ).scalar()
    return newest or 0


def _sized() -> Select[Any]:
    return select(EVENTS.c.seq, func.length(EVENTS.c.payload).label("size"))


def _read(
    connection: Connection, tenant_id: str, statement: Select[Any], page: Page
) -> tuple[list[StoredEvent], bool]:
    sized, more = page.cut(connection.execute(statement.limit(page.look)).all())
    c = EVENTS.c
    rows = connection.execute(
        select(c.seq, c.aggregate_type, c.aggregate_id, c.aggregate_version, c.type, c.payload)
        .where(c.tenant_id == tenant_id, c.seq.in_([row.seq for row in sized]))
        .order_by(c.seq)
    )
    return [StoredEvent(*row) for row in rows], more
