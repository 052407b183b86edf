"""Compare the columns of the log with the bytes that were signed."""

from typing import Any

import msgspec

from workmate_server.engine.verify_actors import Actors
from workmate_server.engine.verify_lifecycle import role_allowed
from workmate_server.engine.verify_report import Findings
from workmate_shared.kernel.command import Command, Event
from workmate_shared.principals.commands import Enrol
from workmate_shared.wire.batch import Header, Leaf, LeafEvent, command_hash, payload_hash
from workmate_shared.wire.dsse import COMMAND_TYPE, SignatureError, key_id, verify_bytes
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import MessageError, decode_command, decode_event
from workmate_shared.wire.registry import is_annotation, kind_of_command, kind_of_event
from workmate_shared.wire.schemas import SchemaError, validate_payload


def check_header_columns(
    place: str, row: Any, header: Header, hashed: str, findings: Findings
) -> None:
    """Report columns of `commit_batch` that its signed header does not say."""
    findings.compare(
        place,
        "changed",
        {
            "tenant_id": (row.tenant_id, header.tenant_id),
            "lineage": (row.lineage, header.lineage),
            "header_hash": (row.header_hash, hashed),
            "first_seq": (row.first_seq, header.first_seq),
            "last_seq": (row.last_seq, header.last_seq),
            "leaf_count": (row.leaf_count, header.leaf_count),
            "server_time": (row.server_time, header.server_time),
        },
    )


def check_command(place: str, row: Any, leaf: Leaf, findings: Findings) -> Command | None:
    """Report what in a row of `command_log` its leaf and its bytes do not say.

    Returns the decoded command, or None where it cannot be read.
    """
    seqs = [step.seq for step in leaf.events]
    findings.compare(
        place,
        "changed",
        {
            "tenant_id": (row.tenant_id, leaf.tenant_id),
            "lineage": (row.lineage, leaf.lineage),
            "principal_id": (row.principal_id, leaf.principal_id),
            "command_id": (row.command_id, leaf.command_id),
            "fingerprint": (row.fingerprint, leaf.fingerprint),
            "aggregate_id": (row.aggregate_id, leaf.aggregate_id),
            "outcome": (row.outcome, leaf.outcome),
            "code": (row.code, leaf.code),
            "version": (row.version, leaf.details.get("version")),
            "first_seq": (row.first_seq, seqs[0] if seqs else None),
            "last_seq": (row.last_seq, seqs[-1] if seqs else None),
            "command": (command_hash(row.command), leaf.command_hash),
        },
    )
    try:
        command = decode_command(row.command)
    except MessageError as error:
        findings.add(f"{place} command", "changed", str(error))
        return None
    findings.compare(
        place,
        "changed",
        {
            "name": (row.name, command.name),
            "aggregate_type": (row.aggregate_type, kind_of_command(command.name).name),
            "aggregate_id": (row.aggregate_id, command.aggregate_id),
            "after": (row.after, command.after),
            "principal_id": (row.principal_id, command.actor.id),
            "command_id": (row.command_id, command.command_id),
        },
    )
    return command


def check_signature(
    place: str, row: Any, command: Command, actors: Actors, findings: Findings
) -> None:
    """Report a command that its device did not sign; those of people's programs have no device."""
    device_id = command.actor.device_id
    if device_id is None:
        for column in ("keyid", "signature"):
            if getattr(row, column) is not None:
                findings.add(f"{place} {column}", "inserted", "no device signed this command")
        return
    if isinstance(command, Enrol):
        public_key: bytes | None = bytes.fromhex(command.public_key)
    else:
        public_key = actors.device_key(command.actor.id, device_id)
    if public_key is None:
        if not actors.doubts(command.actor.id):
            findings.add(f"{place} signature", "missing", f"the log knows no device {device_id}")
        return
    for column in ("keyid", "signature"):
        if getattr(row, column) is None:
            findings.add(f"{place} {column}", "missing", f"device {device_id} signed this command")
            return
    try:
        trusted = {key_id(public_key): public_key}
        verify_bytes(COMMAND_TYPE, row.command, row.keyid, row.signature, trusted)
    except SignatureError as error:
        column = "keyid" if error.code == "key_unknown" else "signature"
        findings.add(f"{place} {column}", "changed", error.code)
    if signed_fingerprint(row.command) != row.fingerprint:
        findings.add(f"{place} fingerprint", "changed", "it is not that of the signed bytes")


def check_event(
    place: str, row: Any, command_row: Any, leaf: Leaf, step: LeafEvent, findings: Findings
) -> Event | None:
    """Report what in a row of `audit_event` its leaf and its payload do not say.

    Returns the decoded event, or None where it cannot be read.
    """
    if payload_hash(row.payload) != step.payload_hash:
        findings.add(f"{place} payload", "changed", "it is not what was signed")
        return None
    findings.compare(
        place,
        "changed",
        {
            "batch": (row.batch, command_row.batch),
            "leaf_index": (row.leaf_index, command_row.leaf_index),
            "aggregate_version": (row.aggregate_version, step.version),
            "aggregate_id": (row.aggregate_id, leaf.aggregate_id),
            "actor_id": (row.actor_id, leaf.principal_id),
            "command_id": (row.command_id, leaf.command_id),
        },
    )
    try:
        validate_payload(row.type, row.payload)
        event = decode_event(row.type, row.payload)
    except (KeyError, SchemaError, msgspec.DecodeError) as error:
        findings.add(f"{place} type", "changed", f"the payload is no {row.type}: {error}")
        return None
    findings.compare(
        place,
        "changed",
        {
            "tenant_id": (row.tenant_id, event.tenant_id),
            "event_id": (row.event_id, event.event_id),
            "aggregate_type": (row.aggregate_type, kind_of_event(event.type).name),
            "aggregate_id": (row.aggregate_id, event.aggregate_id),
            "aggregate_version": (row.aggregate_version, event.aggregate_version),
            "type": (row.type, event.type),
            "schema_version": (row.schema_version, event.schema_version),
            "actor_id": (row.actor_id, event.actor.id),
            "actor_role": (row.actor_role, event.actor.role.value),
            "device_id": (row.device_id, event.actor.device_id),
            "command_id": (row.command_id, event.command_id),
            "occurred_at": (row.occurred_at, event.occurred_at),
            "recorded_at": (row.recorded_at, event.recorded_at),
        },
    )
    return event


def check_decision(
    place: str, event: Event, command: Command, leaf: Leaf, actors: Actors, findings: Findings
) -> None:
    """Report an event that its command could not cause, however well it is signed."""
    if leaf.outcome == "committed":
        row = kind_of_command(command.name).lifecycle.table.row(command.name)
        fits = event.type == row.event and role_allowed(row, event)
        reason = actors.why_not(event)
        if reason is not None:
            findings.add(place, "forbidden", reason)
    else:
        fits = leaf.outcome != "unchanged" and is_annotation(event.type)
    if not fits:
        how = f"{command.name} of role {event.actor.role}, {leaf.outcome}"
        findings.add(place, "forbidden", f"{how}, writes no {event.type}")
    override = command.override.on_behalf_of if command.override is not None else None
    if (event.actor, event.occurred_at, event.on_behalf_of) != (
        command.actor,
        command.occurred_at,
        override,
    ):
        findings.add(place, "forbidden", "its command says another actor or time")
