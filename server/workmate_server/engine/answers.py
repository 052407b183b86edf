"""Answers that are not decided now: stored outcomes told again, and refusals without a trace."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from workmate_server.engine.model import Decided, LoggedEvent, Submission
from workmate_server.store import loads
from workmate_server.store.database import Connection
from workmate_shared.wire.batch import Receipt, decode_leaf
from workmate_shared.wire.dsse import BATCH_TYPE, make_envelope
from workmate_shared.wire.registry import kind_of_command
from workmate_shared.wire.tree import inclusion_paths, leaf_hash


def retry_with(code: str, submission: Submission) -> Decided:
    """Return the answer of a submission for which nothing was recorded."""
    command = submission.message.command
    return Decided(
        command_id=command.command_id,
        status="retry",
        aggregate_type=kind_of_command(command.name).name,
        aggregate_id=command.aggregate_id,
        code=code,
    )


def replay_stored(
    connection: Connection, tenant_id: str, rows: Collection[Any]
) -> dict[loads.Key, Decided]:
    """Return the stored outcomes behind rows of the command log, with their receipts, by key.

    What they share is read once: a device that resends a whole batch costs its leaves one reading.
    """
    ranges = [(row.first_seq, row.last_seq) for row in rows if row.first_seq is not None]
    logged = loads.load_events(connection, tenant_id, ranges)
    receipts = _stored_receipts(connection, tenant_id, rows)
    return {
        (row.principal_id, row.command_id): Decided(
            command_id=row.command_id,
            status=row.outcome,
            aggregate_type=row.aggregate_type,
            aggregate_id=row.aggregate_id,
            code=row.code,
            details=decode_leaf(row.leaf).details,
            version=row.version,
            events=_events_of(row, logged),
            receipt=receipts[row.batch, row.leaf_index],
            command=row.command,
            replayed=True,
        )
        for row in rows
    }


def stored_receipt(connection: Connection, row: Any) -> Receipt:
    """Return the receipt of a row of the command log, byte for byte as it was given first."""
    receipts = _stored_receipts(connection, row.tenant_id, [row])
    return receipts[row.batch, row.leaf_index]


def _events_of(row: Any, logged: dict[int, Any]) -> tuple[LoggedEvent, ...]:
    if row.first_seq is None:
        return ()
    events = [logged[seq] for seq in range(row.first_seq, row.last_seq + 1)]
    return tuple(
        LoggedEvent(event.seq, event.aggregate_version, event.type, event.payload)
        for event in events
    )


def _stored_receipts(
    connection: Connection, tenant_id: str, rows: Collection[Any]
) -> dict[tuple[int, int], Receipt]:
    wanted: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        wanted[row.batch].append(row)
    receipts = {}
    for number, parts in wanted.items():
        leaves = loads.load_leaves(connection, tenant_id, number)
        paths = inclusion_paths([leaf_hash(leaf) for leaf in leaves])
        batch = loads.load_batch(connection, tenant_id, number)
        header = make_envelope(BATCH_TYPE, batch.header, batch.keyid, batch.signature)
        for row in parts:
            receipts[number, row.leaf_index] = Receipt(
                leaf=row.leaf.decode(),
                path=tuple(step.hex() for step in paths[row.leaf_index]),
                leaf_index=row.leaf_index,
                header=header,
            )
    return receipts
