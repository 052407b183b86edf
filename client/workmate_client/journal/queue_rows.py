"""How a queued command lies in its table: written from its signed bytes, read with its outcome."""

from typing import Any

import msgspec
import sqlalchemy as sa

from workmate_client.journal.rows import QueuedCommand, RecordedOutcome, SignedParts
from workmate_client.journal.tables import QUEUED_COMMAND, RECORDED_OUTCOME
from workmate_client.journal.unsent_records import CommandRecord
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.intake import decode_command
from workmate_shared.wire.registry import kind_of_command

_ALSO = QUEUED_COMMAND.alias("also")
_OUTCOME = RECORDED_OUTCOME
_SUPERSEDED_BY = (
    sa.select(sa.func.max(_ALSO.c.command_id))
    .where(_ALSO.c.supersedes == QUEUED_COMMAND.c.command_id)
    .scalar_subquery()
    .label("superseded_by")
)
_OUTCOME_BODY = _OUTCOME.c.body.label("outcome_body")
# Built once: building a statement costs more than running it.
_INSERT = sa.insert(QUEUED_COMMAND)


def insert_command(connection: sa.Connection, record: CommandRecord) -> None:
    """Add a pending command; what the columns say is read from its signed bytes."""
    issued = as_issued(record)
    values = {
        "command_id": issued.command_id,
        "local_order": issued.local_order,
        "device_seq": issued.device_seq,
        "aggregate_kind": issued.aggregate_kind,
        "aggregate_id": issued.aggregate_id,
        "name": issued.name,
        "lineage": issued.lineage,
        "after": issued.after,
        "expected_version": issued.expected_version,
        "occurred_at": issued.occurred_at,
        "supersedes": issued.supersedes,
        "payload": record.parts.payload,
        "key_id": record.parts.key_id,
        "signature": record.parts.signature,
        "disclosures": msgspec.json.encode(record.parts.disclosures).decode(),
        "issued_at": record.issued_at,
        "attempts": 0,
    }
    connection.execute(_INSERT, values)


def select_commands(lineage: str) -> sa.Select[Any]:
    """Return the statement for all commands with their outcome in a lineage, in local order."""
    joined = QUEUED_COMMAND.outerjoin(
        _OUTCOME,
        (_OUTCOME.c.command_id == QUEUED_COMMAND.c.command_id) & (_OUTCOME.c.lineage == lineage),
    )
    return (
        sa.select(QUEUED_COMMAND, _OUTCOME_BODY, _SUPERSEDED_BY)
        .select_from(joined)
        .order_by(QUEUED_COMMAND.c.local_order)
    )


IS_REPLACED: sa.ColumnElement[bool] = (QUEUED_COMMAND.c.name == "enrol") & sa.exists(
    sa.select(_ALSO.c.command_id).where(_ALSO.c.supersedes == QUEUED_COMMAND.c.command_id)
)
"""The condition for an enrolment that another code took the place of: it is sent no more."""

IS_PENDING: sa.ColumnElement[bool] = _OUTCOME.c.body.is_(None) & ~IS_REPLACED
"""The condition that picks the pending ones from `select_commands`."""


def read_command(row: sa.RowMapping) -> QueuedCommand:
    """Return a row of `select_commands` as a value."""
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    body = values.pop("outcome_body")
    disclosures = values.pop("disclosures")
    parts = SignedParts(
        payload=values.pop("payload"),
        key_id=values.pop("key_id"),
        signature=values.pop("signature"),
        disclosures=msgspec.json.decode(disclosures, type=dict[str, Disclosure]),
    )
    outcome = msgspec.json.decode(body, type=RecordedOutcome) if body else None
    return QueuedCommand(parts=parts, outcome=outcome, **values)


def as_issued(record: CommandRecord) -> QueuedCommand:
    """Return a command that was just saved, as reading it back would."""
    command = decode_command(record.parts.payload)
    return QueuedCommand(
        command_id=record.command_id,
        local_order=record.local_order,
        device_seq=record.device_seq,
        aggregate_kind=kind_of_command(command.name).name,
        aggregate_id=command.aggregate_id,
        name=command.name,
        lineage=command.lineage,
        after=command.after,
        expected_version=command.expected_version,
        occurred_at=command.occurred_at,
        supersedes=command.supersedes,
        parts=record.parts,
        issued_at=record.issued_at,
    )


def record_of(command: QueuedCommand) -> CommandRecord:
    """Return a queued command as the unsent log keeps it."""
    return CommandRecord(
        command_id=command.command_id,
        local_order=command.local_order,
        device_seq=command.device_seq,
        issued_at=command.issued_at,
        parts=command.parts,
    )
