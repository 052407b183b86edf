"""Deal with acts that were not applied: do them again on the job as it is now, or set them aside.

A redo is an intentional act of its own: new keys, the old ones named in `supersedes`; times, clock
readings, position and manifest bytes are those of the old acts, values are salted afresh. A chain
is redone in its order, each act after the one before, all of them or none.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from workmate_client.journal.authoring import Act, Value
from workmate_client.journal.rows import QueuedCommand, SignedParts
from workmate_client.service.acts import ActRefusedError, refuse_message, situation
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.situation import Situation
from workmate_client.service.standing import check_standing
from workmate_shared.kernel.command import Command
from workmate_shared.kernel.decision import Committed, Unchanged
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.intake import MessageError


def chain_of(device: Device, command_id: str) -> tuple[QueuedCommand, ...]:
    """Return an act that needs a decision, and those that built on it and were lost with it.

    Raises ServiceError `command_unknown`, or `not_lost` for an act that needs no decision.
    """
    first = device.journal.command(command_id)
    if first is None or first.aggregate_kind != TASK_TABLE.aggregate:
        raise ServiceError("command_unknown", f"no act {command_id} was done on a job here")
    if first.status not in ("conflict", "rejected") or first.superseded_by is not None:
        done = "it was done again already" if first.superseded_by else f"it is {first.status}"
        detail = f"act {command_id} needs no decision: {done}"
        raise ServiceError("not_lost", detail)
    chain = [first]
    for later in device.journal.commands(first.aggregate_id):
        if later.after == chain[-1].command_id and later.status in ("conflict", "rejected"):
            chain.append(later)
    return tuple(chain)


def redo(device: Device, command_id: str, *, chain: bool = True) -> tuple[QueuedCommand, ...]:
    """Do a lost act again on the job as it is now, by default with all that built on it.

    Raises ServiceError as `chain_of` and `check_standing` do, and ActRefusedError if one of the acts cannot be done
    now; then none of them was done.
    """

    def build(device_seq: int) -> Sequence[SignedParts]:
        check_standing(device)
        lost = chain_of(device, command_id)[: None if chain else 1]
        found = situation(device, lost[0].aggregate_id)
        parts: list[SignedParts] = []
        for index, old in enumerate(lost):
            act = _again(old, found)
            written = device.author.write(found.profile, act, device_seq + index)
            decision = found.decide(written.command, written.parts.payload)
            if not isinstance(decision, Committed | Unchanged):
                raise ActRefusedError(decision)
            parts.append(written.parts)
            found = found.with_act(_as_queued(written.command, written.parts, old))
        return parts

    try:
        return device.journal.issue_all(build)
    except MessageError as error:
        raise refuse_message(error) from error


def _again(old: QueuedCommand, found: Situation) -> Act:
    command = old.command()
    moves = not TASK_TABLE.row(old.name).annotates
    return Act(
        kind=type(command),
        aggregate_id=old.aggregate_id,
        fields=_own_fields(command),
        expected_version=found.base_version if moves else None,
        after=found.after if moves else None,
        supersedes=old.command_id,
        personal=_opened(command.personal, old),
        position=_opened(command.position, old),
        disclosures=_others(command, old),
        occurred_at=command.occurred_at,
        reading=command.device,
    )


def _own_fields(command: Command) -> dict[str, Any]:
    """Return the fields that only this kind of command has: reasons, hashes, manifest bytes."""
    shared = set(Command.__struct_fields__)
    return {
        name: getattr(command, name) for name in command.__struct_fields__ if name not in shared
    }


def _opened(commitment: str | None, old: QueuedCommand) -> Value | None:
    """Return a value of the old act, to be committed to under a fresh salt."""
    disclosure = old.parts.disclosures.get(commitment or "")
    if disclosure is None:
        return None
    return Value(msgspec.Raw(disclosure.value.encode()), disclosure.retention_class)


def _others(command: Command, old: QueuedCommand) -> dict[str, Disclosure]:
    """Return what the manifest's bytes commit to; they are copied, so their salts stay."""
    own = command.commitments()
    return {name: value for name, value in old.parts.disclosures.items() if name not in own}


def _as_queued(command: Command, parts: SignedParts, old: QueuedCommand) -> QueuedCommand:
    """Return a command as it will lie in the queue, for judging the one that builds on it."""
    return msgspec.structs.replace(
        old,
        command_id=command.command_id,
        after=command.after,
        expected_version=command.expected_version,
        parts=parts,
        outcome=None,
        supersedes=old.command_id,
        superseded_by=None,
    )


def set_aside(device: Device, command_id: str, reason: str) -> tuple[QueuedCommand, ...]:
    """Mark a lost act, and those lost with it, as dealt with, for a reason; it can be brought back.

    Raises ServiceError `reason_missing`, or as `chain_of` does.
    """
    given = reason.strip()
    if not given:
        raise ServiceError("reason_missing", "say why")
    chain = chain_of(device, command_id)
    return tuple(device.journal.set_aside(lost.command_id, given) for lost in chain)


def bring_back(device: Device, command_id: str) -> tuple[QueuedCommand, ...]:
    """Take back what `set_aside` did. Raises ServiceError as `chain_of` does."""
    chain = chain_of(device, command_id)
    return tuple(device.journal.bring_back(lost.command_id) for lost in chain)
