"""Answers that are not decided now: stored outcomes told again, and refusals without a trace."""

from typing import Any

from workmate_server.engine.model import Decided, LoggedEvent, Submission
from workmate_server.store import loads
from workmate_server.store.database import Connection
from workmate_shared.wire.batch import Receipt, decode_leaf
from workmate_shared.wire.dsse import BATCH_TYPE, make_envelope
from workmate_shared.wire.registry import kind_of_command
from workmate_shared.wire.tree import inclusion_path, leaf_hash


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


def replay_stored(connection: Connection, row: Any) -> Decided:
    """Return a stored outcome (a row of the command log) with the receipt that it had at first."""
    events: tuple[LoggedEvent, ...] = ()
    if row.first_seq is not None:
        found = loads.load_events(connection, row.tenant_id, [(row.first_seq, row.last_seq)])
        events = tuple(
            LoggedEvent(seq, event.aggregate_version, event.type, event.payload)
            for seq, event in sorted(found.items())
        )
    return Decided(
        command_id=row.command_id,
        status=row.outcome,
        aggregate_type=row.aggregate_type,
        aggregate_id=row.aggregate_id,
        code=row.code,
        details=decode_leaf(row.leaf).details,
        version=row.version,
        events=events,
        receipt=stored_receipt(connection, row),
        command=row.command,
        replayed=True,
    )


def stored_receipt(connection: Connection, row: Any) -> Receipt:
    """Return the receipt of a row of the command log, byte for byte as it was given first."""
    hashes = [leaf_hash(leaf) for leaf in loads.load_leaves(connection, row.tenant_id, row.batch)]
    batch = loads.load_batch(connection, row.tenant_id, row.batch)
    return Receipt(
        leaf=row.leaf.decode(),
        path=tuple(step.hex() for step in inclusion_path(hashes, row.leaf_index)),
        leaf_index=row.leaf_index,
        header=make_envelope(BATCH_TYPE, batch.header, batch.keyid, batch.signature),
    )
