"""What `verify` and `rebuild` read: the log from its beginning, and projections beside it.

Rows are streamed, one statement a table, in an order that the columns themselves say. Whoever looks
for tampering trusts none of them: a column may hold anything that an editor can put there.
"""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from sqlalchemy import Connection, exists, select

from workmate_server.store.loads import BATCHES, COMMANDS, EVENTS, HEADS, IDS_MAX
from workmate_server.store.tables import (
    PROJECTIONS,
    CredentialRow,
    DisclosureRow,
    EvidenceManifest,
    FeedRow,
    PrincipalRow,
    TaskSnapshot,
    table_of,
)

PAGE = 500
"""Rows fetched at once."""

DISCLOSURES = table_of(DisclosureRow)
_OWNED = {
    "task_snapshot": (table_of(TaskSnapshot), "task_id"),
    "principal": (table_of(PrincipalRow), "principal_id"),
    "credential": (table_of(CredentialRow), "principal_id"),
    "evidence_manifest": (table_of(EvidenceManifest), "task_id"),
    "feed": (table_of(FeedRow), "object_id"),
    "disclosure": (DISCLOSURES, "aggregate_id"),
}


def walk_batches(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `commit_batch` by number."""
    return _stream(connection, BATCHES, tenant_id, "batch")


def walk_commands(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `command_log` by batch and leaf."""
    return _stream(connection, COMMANDS, tenant_id, "batch", "leaf_index")


def walk_events(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `audit_event` by seq."""
    return _stream(connection, EVENTS, tenant_id, "seq")


def walk_aggregates(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `audit_event` aggregate by aggregate, each in the order of versions."""
    return _stream(connection, EVENTS, tenant_id, "aggregate_id", "aggregate_version")


def walk_disclosures(connection: Connection, tenant_id: str) -> Iterator[Any]:
    """Yield the rows of `disclosure` by commitment."""
    return _stream(connection, DISCLOSURES, tenant_id, "commitment")


def _stream(connection: Connection, table: Any, tenant_id: str, *order: str) -> Iterator[Any]:
    statement = (
        select(table)
        .where(table.c.tenant_id == tenant_id)
        .order_by(*(table.c[name] for name in order))
    )
    yield from connection.execute(statement.execution_options(yield_per=PAGE))


class RangeReader:
    """A stream of rows by an ascending number, taken range by range."""

    def __init__(self, rows: Iterator[Any], column: str) -> None:
        self._rows = rows
        self._column = column
        self._next = next(rows, None)

    def take(self, first: int, last: int) -> tuple[list[Any], list[Any]]:
        """Return the rows from `first` to `last`, and those before them that nobody has taken.

        A row whose number is none counts as one before.
        """
        taken: list[Any] = []
        passed: list[Any] = []
        while self._next is not None:
            number = getattr(self._next, self._column)
            if isinstance(number, int) and number > last:
                break
            within = isinstance(number, int) and number >= first
            (taken if within else passed).append(self._next)
            self._next = next(self._rows, None)
        return taken, passed

    def rest(self) -> Iterator[Any]:
        """Yield the rows that nobody has taken."""
        while self._next is not None:
            yield self._next
            self._next = next(self._rows, None)


def misfits(table: Any, row: Any) -> list[str]:
    """Return the columns of a row that hold what their table forbids.

    That is nothing where something must be, a value of another type, or text that is no UTF-8.
    """
    found = []
    for (name, kind, empty), value in zip(_columns(table), row, strict=True):
        if value is None:
            if not empty:
                found.append(name)
        elif type(value) is not kind or (
            isinstance(value, str) and not value.isascii() and not _is_text(value)
        ):
            found.append(name)
    return found


@cache
def _columns(table: Any) -> tuple[tuple[str, type, bool], ...]:
    return tuple((c.name, c.type.python_type, c.nullable) for c in table.columns)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def unknown_tenants(connection: Connection) -> list[tuple[str, Any]]:
    """Return (table, tenant id) for rows of the log, or made from it, that belong to no tenant."""
    known = select(HEADS.c.tenant_id)
    found = []
    for table in (BATCHES, COMMANDS, EVENTS, *(table for table, _ in _OWNED.values())):
        strangers = select(table.c.tenant_id).where(table.c.tenant_id.not_in(known)).distinct()
        found += [(table.name, name) for name in connection.execute(strangers).scalars()]
    return found


def projections_of(
    connection: Connection, tenant_id: str, owners: Collection[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the projection rows of some aggregates, by table."""
    return {name: _rows_of(connection, name, tenant_id, owners) for name in PROJECTIONS}


def disclosures_of(
    connection: Connection, tenant_id: str, owners: Collection[str]
) -> list[dict[str, Any]]:
    """Return the disclosures kept for some aggregates."""
    return _rows_of(connection, "disclosure", tenant_id, owners)


def _rows_of(
    connection: Connection, name: str, tenant_id: str, owners: Collection[str]
) -> list[dict[str, Any]]:
    table, column = _OWNED[name]
    wanted = sorted(owners)
    found: list[dict[str, Any]] = []
    for start in range(0, len(wanted), IDS_MAX):
        rows = connection.execute(
            select(table).where(
                table.c.tenant_id == tenant_id,
                table.c[column].in_(wanted[start : start + IDS_MAX]),
            )
        )
        found += [dict(row._mapping) for row in rows]  # noqa: SLF001
    return found


def ownerless(connection: Connection, tenant_id: str) -> list[tuple[str, Any]]:
    """Return (table, aggregate id) for projections and disclosures of aggregates without events."""
    found = []
    for name, (table, column) in _OWNED.items():
        owner = table.c[column]
        events = exists().where(
            EVENTS.c.tenant_id == table.c.tenant_id, EVENTS.c.aggregate_id == owner
        )
        rows = connection.execute(
            select(owner).where(table.c.tenant_id == tenant_id, ~events).distinct()
        )
        found += [(name, stray) for stray in rows.scalars()]
    return found


def walk_events_of(connection: Connection, tenant_id: str, types: Collection[str]) -> Iterator[Any]:
    """Yield type and payload of the events of these types, in the order of the log."""
    c = EVENTS.c
    yield from connection.execute(
        select(c.type, c.payload)
        .where(c.tenant_id == tenant_id, c.type.in_(list(types)))
        .order_by(c.seq)
        .execution_options(yield_per=PAGE)
    )
