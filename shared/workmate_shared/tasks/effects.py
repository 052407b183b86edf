"""What an accepted command of a field task writes: the event that its row names, with its fields.

An event repeats what later readers need, so that the log alone rebuilds the task.
"""

from typing import Any, get_args

from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.lifecycle import Context, stamp
from workmate_shared.tasks import commands as c
from workmate_shared.tasks import events as e
from workmate_shared.tasks import table as t
from workmate_shared.tasks.policy import ProofPolicy, policy_version
from workmate_shared.tasks.task import Task

_EVENTS: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(e.TaskEvent)
}
_REPEATED: dict[type[Command], tuple[str, ...]] = {
    c.Assign: ("worker_id",),
    c.Arrive: ("evidence", "no_fix_reason"),
    c.Observe: ("readings",),
    c.StoreEvidence: ("hashes",),
}


def make_events(state: Task | None, command: Command, context: Context) -> tuple[Event, ...]:
    """Return the events of a command that passed every check."""
    event = _EVENTS[t.TASK_TABLE.row(command.name).event]
    own = _created(command, context) if state is None else _own_fields(state, command, context)
    fields = stamp(command, context, state.version if state else 0)
    return (event(**fields, personal=command.personal, position=command.position, **own),)


def handed_over(state: Task, command: Any, context: Context, because: str) -> tuple[Event, ...]:
    """Return the hand-over of the manifest that a refused command carries, and why it comes."""
    own = _handed_over(command, context)
    fields = stamp(command, context, state.version)
    return (e.EvidenceHandedOver(because=because, **own, **fields),)


def stored(state: Task, command: c.StoreEvidence, context: Context) -> tuple[Event, ...]:
    """Return the annotation that a refused `store_evidence` carries."""
    return (e.EvidenceStored(hashes=command.hashes, **stamp(command, context, state.version)),)


def _own_fields(state: Task, command: Command, context: Context) -> dict[str, Any]:
    match command:
        case c.Decline():
            return {"worker_id": state.assignee_id, "reason_code": command.reason_code}
        case c.Release():
            return {"worker_id": state.assignee_id}
        case c.Amend():
            return _amended(command)
        case c.SubmitProof():
            return _submitted(state, command, context)
        case c.HandOver():
            return _handed_over(command, context)
        case c.ApproveProof() | c.RejectProof() | c.DismissHandover():
            return _decided(state, command)
        case _:
            return {name: getattr(command, name) for name in _REPEATED.get(type(command), ())}


def _created(command: Any, context: Context) -> dict[str, Any]:
    return {
        "fingerprint": context.fingerprint,
        "source": command.source,
        "external_id": command.external_id,
        "priority": command.priority,
        "due_at": command.due_at,
        "window": command.window,
        "required_skills": command.required_skills,
        "pinned_articles": command.pinned_articles,
        "proof_policy": command.proof_policy,
        "policy_version": policy_version(command.proof_policy),
    }


def _amended(command: c.Amend) -> dict[str, Any]:
    changes = command.changes()
    if isinstance(command.proof_policy, ProofPolicy):
        changes["policy_version"] = policy_version(command.proof_policy)
    return changes


def _submitted(state: Task, command: c.SubmitProof, context: Context) -> dict[str, Any]:
    manifest_id = command.manifest_id or context.manifest.manifest_id
    record = state.manifest(manifest_id)
    if record is None:
        own = _handed_over(command, context)
        return own | {"author_id": _acting_for(command)}
    return {
        "manifest_id": record.manifest_id,
        "content_hash": record.content_hash,
        "author_id": record.author_id,
        "manifest": command.manifest,
    }


def _acting_for(command: Command) -> str:
    return command.override.on_behalf_of if command.override else command.actor.id


def _handed_over(command: Any, context: Context) -> dict[str, Any]:
    return {
        "manifest_id": context.manifest.manifest_id,
        "content_hash": command.content_hash,
        "author_id": command.actor.id,
        "manifest": command.manifest,
    }


def _decided(
    state: Task, command: c.ApproveProof | c.RejectProof | c.DismissHandover
) -> dict[str, Any]:
    record = state.known_manifest(command.manifest_id)
    named = {"manifest_id": record.manifest_id, "content_hash": record.content_hash}
    if isinstance(command, c.RejectProof):
        return named | {"manifest_version": record.task_version}
    return named
