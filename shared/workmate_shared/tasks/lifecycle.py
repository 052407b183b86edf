"""Decide the commands of a field task: what the table's rows mean beyond the kernel's checks.

The server commits by it and the device predicts by it; nothing here is written twice.
"""

from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import Details, Refusal
from workmate_shared.kernel.lifecycle import Context, Lifecycle, PrincipalFacts
from workmate_shared.kernel.table import Relation, Repeat, Role, Row
from workmate_shared.tasks import commands as c
from workmate_shared.tasks import table as t
from workmate_shared.tasks.effects import handed_over, make_events, stored
from workmate_shared.tasks.guards import guard, missing_bytes
from workmate_shared.tasks.task import ManifestRecord, Task

_NO_LONGER_ABLE = frozenset({"actor_deactivated", "device_revoked"})
_ALWAYS_HANDED_OVER = _NO_LONGER_ABLE | {"not_assignee", "state_not_allowed", "history_lost"}
_HANDED_OVER_IF_LOST = frozenset({"version_conflict", "chain_broken"})
_UNDECIDED = ("handed_over", "submitted")


def _sees(state: Task, command: Command, facts: PrincipalFacts) -> bool:
    if state.holds_or_held(command.actor.id):
        return True
    return command.actor.role in t.OFFICE_ROLES & facts.roles


def _been_there(state: Task, command: Command, row: Row) -> bool:
    match row.repeat, command:
        case Repeat.BEEN_THERE, _:
            return command.actor.id == state.assignee_id and row.result in state.visited
        case Repeat.SAME_MANIFEST, c.HandOver():
            known = _by_hash(state, command.content_hash)
            return (
                known is not None
                and known.status in _UNDECIDED
                and known.author_id == command.actor.id
            )
        case Repeat.SAME_MANIFEST, c.SubmitProof():
            return command.actor.id == state.assignee_id and _is_pending(state, command)
        case Repeat.SAME_DECISION, c.ApproveProof() | c.RejectProof():
            record = state.manifest(command.manifest_id)
            wanted = "approved" if row.result == t.COMPLETED else "rejected"
            return (
                record is not None
                and record.status == wanted
                and record.decided_by == command.actor.id
            )
        case _:
            return False


def _is_pending(state: Task, command: c.SubmitProof) -> bool:
    if state.state != t.PROOF_PENDING:
        return False
    record = state.known_manifest(state.current_manifest_id)
    return command.manifest_id == record.manifest_id or command.content_hash == record.content_hash


def _by_hash(state: Task, wanted: str) -> ManifestRecord | None:
    return next((m for m in state.manifests if m.content_hash == wanted), None)


def _authority(state: Task, command: Command, row: Row) -> Refusal | None:
    actor = command.actor
    if row.relation is not Relation.ASSIGNEE:
        return None
    if command.override is None:
        if actor.id == state.assignee_id:
            return None
        return Refusal("not_assignee", {"actor": actor.id})
    wanted = command.override.on_behalf_of
    if isinstance(command, c.SubmitProof) and command.manifest_id is not None:
        record = state.manifest(command.manifest_id)
        allowed = record is None or record.author_id == wanted
    else:
        allowed = wanted == state.assignee_id
    return None if allowed else Refusal("override_invalid", {"on_behalf_of": wanted})


def _salvage(
    state: Task, command: Command, context: Context, code: str
) -> tuple[Event, ...] | Refusal:
    if command.actor.role is not Role.WORKER or not state.holds_or_held(command.actor.id):
        return ()
    match command:
        case c.StoreEvidence() if code in _NO_LONGER_ABLE:
            return missing_bytes(command, context) or stored(state, command, context)
        case c.SubmitProof() if command.manifest is not None and _loses(state, command, code):
            unknown = state.manifest(context.manifest.manifest_id) is None
        case c.HandOver() if code in _NO_LONGER_ABLE:
            unknown = state.manifest(context.manifest.manifest_id) is None
        case _:
            return ()
    return handed_over(state, command, context, code) if unknown else ()


def _loses(state: Task, command: Command, code: str) -> bool:
    if code in _ALWAYS_HANDED_OVER:
        return True
    holds = command.actor.id == state.assignee_id and state.state in t.OPEN_STATES
    return code in _HANDED_OVER_IF_LOST and not holds


def _exists_details(state: Task, command: c.CreateTask) -> Details:
    return {
        "aggregate_id": state.task_id,
        "source": command.source,
        "external_id": command.external_id,
        "version": state.version,
        "state": state.state,
    }


TASK_LIFECYCLE = Lifecycle(
    table=t.TASK_TABLE,
    sees=_sees,
    been_there=_been_there,
    authority=_authority,
    guard=guard,
    make_events=make_events,
    salvage=_salvage,
    exists_code="external_id_conflict",
    exists_details=_exists_details,
)
"""The field task's part of the kernel; `TASK_LIFECYCLE.decide(state, command, context)`."""
