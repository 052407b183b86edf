"""What `verify` and `rebuild` read: the log from its beginning, and projections beside it."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from workmate_server.store.loads import BATCHES, COMMANDS, EVENTS, HEADS
from workmate_server.store.tables import (
    CredentialRow,
    DisclosureRow,
    EvidenceManifest,
    FeedRow,
    PrincipalRow,
    TaskSnapshot,
    table_of,
)

PAGE = 500

_OWNED = {
    "task_snapshot": (table_of(TaskSnapshot), "task_id"),
    "principal": (table_of(PrincipalRow), "principal_id"),
    "credential": (table_of(CredentialRow), "principal_id"),
    "evidence_manifest": (table_of(EvidenceManifest), "task_id"),
    "feed": (table_of(FeedRow), "object_id"),
}


def walk_batches(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `commit_batch` by number."""
    yield from _walk(connection, BATCHES, tenant_id, BATCHES.c.batch)


def walk_disclosures(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `disclosure` by commitment."""
    table = table_of(DisclosureRow)
    yield from _walk(connection, table, tenant_id, table.c.commitment)


def _walk(connection: Connection, table: Any, tenant_id: str, order: Any) -> Iterator[Any]:
    page = select(table).where(table.c.tenant_id == tenant_id).order_by(order).limit(PAGE)
    rows = connection.execute(page).all()
    while rows:
        yield from rows
        last = getattr(rows[-1], order.name)
        rows = connection.execute(page.where(order > last)).all()


def commands_of_batch(connection: Connection, tenant_id: str, batch: int) -> Sequence[Any]:
    """Return the rows of `command_log` of a batch by leaf."""
    c = COMMANDS.c
    return connection.execute(
        select(COMMANDS).where(c.tenant_id == tenant_id, c.batch == batch).order_by(c.leaf_index)
    ).all()


def events_between(connection: Connection, tenant_id: str, first: int, last: int) -> Sequence[Any]:
    """Return the rows of `audit_event` from seq `first` to `last`, both included."""
    c = EVENTS.c
    return connection.execute(
        select(EVENTS).where(c.tenant_id == tenant_id, c.seq.between(first, last)).order_by(c.seq)
    ).all()


def count_rows(connection: Connection, tenant_id: str) -> dict[str, int]:
    """Return how many rows each table of the log holds for a tenant."""
    counts = {}
    for table in (BATCHES, COMMANDS, EVENTS):
        counted = select(func.count()).select_from(table).where(table.c.tenant_id == tenant_id)
        counts[table.name] = connection.execute(counted).scalar_one()
    return counts


def unknown_tenants(connection: Connection) -> list[tuple[str, str]]:
    """Return (table, tenant id) for rows of the log that belong to no tenant."""
    known = select(HEADS.c.tenant_id)
    found = []
    for table in (BATCHES, COMMANDS, EVENTS):
        strangers = select(table.c.tenant_id).where(table.c.tenant_id.not_in(known)).distinct()
        found += [(table.name, name) for name in connection.execute(strangers).scalars()]
    return found


def walk_aggregates(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `audit_event` aggregate by aggregate, each in the order of versions."""
    c = EVENTS.c
    page = (
        select(EVENTS)
        .where(c.tenant_id == tenant_id)
        .order_by(c.aggregate_id, c.aggregate_version)
        .limit(PAGE)
    )
    rows = connection.execute(page).all()
    while rows:
        yield from rows
        last = rows[-1]
        rest = (c.aggregate_id > last.aggregate_id) | (
            (c.aggregate_id == last.aggregate_id) & (c.aggregate_version > last.aggregate_version)
        )
        rows = connection.execute(page.where(rest)).all()


def projections_of(connection: Connection, tenant_id: str, owner: str) -> dict[str, list[Any]]:
    """Return the projection rows of one aggregate, by table."""
    found = {}
    for name, (table, column) in _OWNED.items():
        rows = connection.execute(
            select(table).where(table.c.tenant_id == tenant_id, table.c[column] == owner)
        )
        found[name] = [dict(row._mapping) for row in rows]  # noqa: SLF001
    return found


def projection_owners(connection: Connection, tenant_id: str) -> set[tuple[str, str]]:
    """Return (table, aggregate id) for every aggregate that has projection rows."""
    found = set()
    for name, (table, column) in _OWNED.items():
        rows = connection.execute(
            select(table.c[column]).where(table.c.tenant_id == tenant_id).distinct()
        )
        found |= {(name, owner) for owner in rows.scalars()}
    return found
