"""Read back what the server wrote, batch by batch, as rows that can be written again.

The log's rows are taken as they stand. Snapshots and feed are overwritten by later batches, so those
of each batch are projected again from its events, as the commit path itself did.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import select

from workmate_server.engine.histories import opened_of
from workmate_server.engine.project import Projected, project, seal
from workmate_server.store import loads
from workmate_server.store.database import Connection, Database
from workmate_server.store.tables import DisclosureRow, OutboxRow, table_of
from workmate_shared.tasks.task import Task, evolve
from workmate_shared.wire.intake import decode_event

Rows = list[dict[str, Any]]

_OUTBOX = table_of(OutboxRow)
_DISCLOSURES = table_of(DisclosureRow)


class Batch(Struct, frozen=True):
    """The rows of one batch by table, in the order in which they were written, and its head."""

    commands: int
    rows: dict[str, Rows]
    head: dict[str, Any]


class Recorder:
    """Reads one tenant's batches, each once; only tasks may change in them."""

    def __init__(self, database: Database, tenant_id: str) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._states: dict[str, Task] = {}
        with database.read() as connection:
            self._read_to = loads.load_head(connection, tenant_id).batch
            self._load_states(connection)

    def _load_states(self, connection: Connection) -> None:
        table = loads.EVENTS
        found = connection.execute(
            select(table.c.aggregate_id)
            .where(table.c.tenant_id == self._tenant_id, table.c.aggregate_type == "task")
            .distinct()
        )
        ids = list(found.scalars())
        for start in range(0, len(ids), loads.IDS_MAX):
            snapshots = loads.load_snapshots(
                connection, self._tenant_id, "task", ids[start : start + loads.IDS_MAX], lock=False
            )
            for name, data in snapshots.items():
                self._states[name] = msgspec.json.decode(data, type=Task)

    def read_new(self) -> list[Batch]:
        """Return the batches that were committed since the last call."""
        with self._database.read() as connection:
            head = loads.load_head(connection, self._tenant_id)
            numbers = range(self._read_to + 1, head.batch + 1)
            batches = [self._read(connection, number) for number in numbers]
        self._read_to = head.batch
        return batches

    def _read(self, connection: Connection, number: int) -> Batch:
        def rows(table: Any, *where: Any, order: Any = None) -> Rows:
            statement = select(table).where(table.c.tenant_id == self._tenant_id, *where)
            found = connection.execute(statement.order_by(order))
            return [dict(row._mapping) for row in found]

        commands, events = loads.COMMANDS, loads.EVENTS
        decided = rows(commands, commands.c.batch == number, order=commands.c.leaf_index)
        (header,) = rows(loads.BATCHES, loads.BATCHES.c.batch == number)
        seqs = (header["first_seq"], header["last_seq"])
        logged = rows(events, events.c.seq.between(*seqs), order=events.c.seq)
        projected = self._project(connection, logged)
        named = self._disclosed(logged)
        queued = rows(_OUTBOX, _OUTBOX.c.seq.between(*seqs), order=_OUTBOX.c.outbox_id)
        return Batch(
            commands=len(decided),
            rows={
                "command_log": decided,
                "audit_event": logged,
                "commit_batch": [header],
                "task_snapshot": list(projected.tasks.values()),
                "feed": list(projected.feed.values()),
                "disclosure": rows(_DISCLOSURES, _DISCLOSURES.c.commitment.in_(named)),
                "outbox": [_as_queued(row, header["server_time"]) for row in queued],
            },
            head={"seq": seqs[1], "batch": number, "header_hash": header["header_hash"]},
        )

    def _project(self, connection: Connection, logged: Rows) -> Projected:
        projected = Projected()
        for row in logged:
            event = decode_event(row["type"], row["payload"])
            before = self._states.get(event.aggregate_id)
            after = self._states[event.aggregate_id] = evolve(before, event)
            project(projected, before, after, event, row["seq"])
        seal(projected, opened_of(connection, self._tenant_id))
        return projected

    def _disclosed(self, logged: Rows) -> list[str]:
        return [
            c for row in logged for c in decode_event(row["type"], row["payload"]).commitments()
        ]


def _as_queued(row: dict[str, Any], at: str) -> dict[str, Any]:
    """Return a row of the outbox as it was before the relay settled it."""
    return row | {"status": "pending", "attempts": 0, "next_attempt_at": at, "last_error": None}


def count_commands(batches: Iterable[Batch]) -> int:
    """Return how many commands some batches hold."""
    return sum(batch.commands for batch in batches)
