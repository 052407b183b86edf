"""Decide the commands of a field task: what the table's rows mean beyond the kernel's checks.

The server commits by it and the device predicts by it; nothing here is written twice.
"""

from typing import Any

from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import Details, Refusal
from workmate_shared.kernel.lifecycle import Context, Lifecycle, PrincipalFacts, stamp
from workmate_shared.kernel.table import Relation, Repeat, Role, Row
from workmate_shared.tasks import commands as c
from workmate_shared.tasks import events as e
from workmate_shared.tasks import table as t
from workmate_shared.tasks.manifest import Manifest, content_hash
from workmate_shared.tasks.policy import policy_version
from workmate_shared.tasks.proof import evaluate, facts_for
from workmate_shared.tasks.task import Task

_NO_LONGER_ABLE = frozenset({"actor_deactivated", "device_revoked"})
_ALWAYS_HANDED_OVER = _NO_LONGER_ABLE | {"not_assignee", "state_not_allowed", "history_lost"}
_HANDED_OVER_IF_LOST = frozenset({"version_conflict", "chain_broken"})
_UNDECIDED = ("handed_over", "submitted")


def _sees(state: Task, command: Command) -> bool:
    if command.actor.role in t.OFFICE_ROLES:
        return True
    return command.actor.role is Role.WORKER and state.holds_or_held(command.actor.id)


def _been_there(state: Task, command: Command, row: Row) -> bool:
    match row.repeat:
        case Repeat.BEEN_THERE:
            return command.actor.id == state.assignee_id and row.result in state.visited
        case Repeat.SAME_MANIFEST:
            return _same_manifest(state, command)
        case Repeat.SAME_DECISION:
            record = state.manifest(getattr(command, "manifest_id", None))
            wanted = "approved" if row.result == t.COMPLETED else "rejected"
            return (
                record is not None
                and record.status == wanted
                and record.decided_by == command.actor.id
            )
        case _:
            return False


def _same_manifest(state: Task, command: Command) -> bool:
    if isinstance(command, c.HandOver):
        known = _by_hash(state, command.content_hash)
        return (
            known is not None
            and known.status in _UNDECIDED
            and known.author_id == command.actor.id
        )
    assert isinstance(command, c.SubmitProof)
    if command.actor.id != state.assignee_id:
        return False
    known = (
        state.manifest(command.manifest_id)
        if command.manifest_id is not None
        else _by_hash(state, command.content_hash)
    )
    return (
        known is not None
        and known.status == "submitted"
        and known.manifest_id == state.current_manifest_id
    )


def _by_hash(state: Task, wanted: str | None) -> Any:
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


def _guard(state: Task | None, command: Command, context: Context) -> Refusal | None:
    if state is None:
        return None
    match command:
        case c.Assign():
            return _guard_assign(state, command, context)
        case c.SubmitProof() | c.HandOver():
            return _guard_manifest(state, command, context.manifest)
        case c.ApproveProof():
            return _guard_approval(state, command, context)
        case c.RejectProof():
            return _guard_pending(state, command.manifest_id)
        case c.Amend() if "proof_policy" in command.changes() and state.state not in t.BEFORE_WORK:
            return Refusal("policy_locked", {"state": state.state})
        case c.Observe():
            return _guard_readings(command)
        case c.StoreEvidence():
            return _guard_bytes(command, context)
        case c.DismissHandover():
            return _guard_handover(state, command.manifest_id)
        case _:
            return None


def _guard_assign(state: Task, command: c.Assign, context: Context) -> Refusal | None:
    worker = context.principals.get(command.worker_id, PrincipalFacts(active=False))
    missing = sorted(set(state.required_skills) - worker.skills)
    if not worker.active:
        reason = "not active or unknown"
    elif Role.WORKER not in worker.roles:
        reason = "not a worker"
    elif missing:
        reason = "lacks skills"
    else:
        return None
    facts: Details = {"worker_id": command.worker_id, "reason": reason, "missing": missing}
    return Refusal("worker_not_eligible", facts)


def _guard_manifest(state: Task, command: Any, manifest: Manifest | None) -> Refusal | None:
    named = getattr(command, "manifest_id", None)
    if named is not None:
        return _guard_handover(state, named)
    assert manifest is not None
    known = state.manifest(manifest.manifest_id)
    if known is None:
        return None
    if known.content_hash != command.content_hash:
        return Refusal("manifest_id_reused", {"manifest_id": known.manifest_id})
    if known.status == "handed_over" and isinstance(command, c.SubmitProof):
        return None
    return _decided(known)


def _guard_handover(state: Task, manifest_id: str) -> Refusal | None:
    record = state.manifest(manifest_id)
    if record is None:
        return Refusal("manifest_unknown", {"manifest_id": manifest_id})
    return None if record.status == "handed_over" else _decided(record)


def _guard_pending(state: Task, manifest_id: str) -> Refusal | None:
    record = state.manifest(manifest_id)
    if record is None:
        return Refusal("manifest_unknown", {"manifest_id": manifest_id})
    if record.status != "submitted" or manifest_id != state.current_manifest_id:
        return _decided(record)
    return None


def _decided(record: Any) -> Refusal:
    facts = {"manifest_id": record.manifest_id, "manifest_status": record.status}
    return Refusal("manifest_decided", facts)


def _guard_approval(state: Task, command: c.ApproveProof, context: Context) -> Refusal | None:
    refusal = _guard_pending(state, command.manifest_id)
    if refusal is not None:
        return refusal
    record = state.manifest(command.manifest_id)
    assert record is not None
    facts = {"actor": command.actor.id, "manifest_id": record.manifest_id}
    if command.actor.id in (record.submitted_by, record.on_behalf_of, record.author_id):
        return Refusal("self_approval", facts)
    if command.actor.role is Role.SYSTEM and state.proof_policy.validation != "automatic":
        return Refusal("validation_not_automatic", facts)
    findings = evaluate(state.proof_policy, context.manifest, facts_for(state, record, context))
    if findings:
        listed = [finding.public() for finding in findings]
        return Refusal(
            "proof_policy_unmet", {"manifest_id": record.manifest_id, "findings": listed}
        )
    return None


def _guard_readings(command: c.Observe) -> Refusal | None:
    if command.actor.role is Role.SYSTEM:
        return None
    for reading in command.readings:
        if isinstance(reading, c.SYSTEM_READINGS):
            kind = c.reading_kind(reading)
            facts = {"role": command.actor.role.value, "kind": kind}
            return Refusal("observation_not_allowed", facts)
    return None


def _guard_bytes(command: c.StoreEvidence, context: Context) -> Refusal | None:
    missing = [
        name
        for name in command.hashes
        if (blob := context.blobs.get(name)) is None
        or not (blob.verified and blob.uploaded_by_actor)
    ]
    return Refusal("bytes_missing", {"hashes": missing}) if missing else None


def _make_events(state: Task | None, command: Command, context: Context) -> tuple[Event, ...]:
    fields = stamp(command, context, state.version if state else 0)
    fields["personal"] = command.personal
    fields["position"] = command.position
    match command:
        case c.CreateTask():
            return (_created(command, context, fields),)
        case c.Assign():
            return (e.TaskAssigned(worker_id=command.worker_id, **fields),)
        case c.Accept():
            return (e.TaskAccepted(**fields),)
        case c.StartTravel():
            return (e.TaskEnRoute(**fields),)
        case c.Arrive():
            own = {"evidence": command.evidence, "no_fix_reason": command.no_fix_reason}
            return (e.TaskStarted(**own, **fields),)
        case c.Cancel():
            return (e.TaskCancelled(**fields),)
        case c.Observe():
            return (e.TaskObserved(readings=command.readings, **fields),)
        case c.StoreEvidence():
            return (e.EvidenceStored(hashes=command.hashes, **fields),)
        case c.Amend():
            return (_amended(command, fields),)
    assert state is not None
    match command:
        case c.Decline():
            own = {"worker_id": state.assignee_id, "reason_code": command.reason_code}
            return (e.TaskDeclined(**own, **fields),)
        case c.Release():
            return (e.TaskReleased(worker_id=state.assignee_id or "", **fields),)
        case c.SubmitProof():
            return (_submitted(state, command, context, fields),)
        case c.HandOver():
            return (_handed_over(command, context, fields, None),)
    record = state.manifest(command.manifest_id)  # type: ignore[attr-defined]
    assert record is not None
    named = {"manifest_id": record.manifest_id, "content_hash": record.content_hash}
    match command:
        case c.ApproveProof():
            return (e.TaskCompleted(**named, **fields),)
        case c.RejectProof():
            version = {"manifest_version": record.task_version}
            return (e.ProofRejected(**named, **version, **fields),)
        case c.DismissHandover():
            return (e.EvidenceDismissed(**named, **fields),)
    raise AssertionError(command.name)


def _created(command: c.CreateTask, context: Context, fields: dict[str, Any]) -> Event:
    return e.TaskCreated(
        fingerprint=context.fingerprint,
        source=command.source,
        external_id=command.external_id,
        priority=command.priority,
        due_at=command.due_at,
        window=command.window,
        required_skills=command.required_skills,
        pinned_articles=command.pinned_articles,
        proof_policy=command.proof_policy,
        policy_version=policy_version(command.proof_policy),
        **fields,
    )


def _amended(command: c.Amend, fields: dict[str, Any]) -> Event:
    changes = command.changes()
    if isinstance(command.proof_policy, c.ProofPolicy):
        changes["policy_version"] = policy_version(command.proof_policy)
    return e.TaskAmended(**changes, **fields)  # type: ignore[arg-type]


def _submitted(
    state: Task, command: c.SubmitProof, context: Context, fields: dict[str, Any]
) -> Event:
    if command.manifest_id is not None:
        record = state.manifest(command.manifest_id)
        assert record is not None
        return e.ProofSubmitted(
            manifest_id=record.manifest_id,
            content_hash=record.content_hash,
            author_id=record.author_id,
            **fields,
        )
    return e.ProofSubmitted(
        manifest_id=context.manifest.manifest_id,
        content_hash=command.content_hash or "",
        author_id=command.override.on_behalf_of if command.override else command.actor.id,
        manifest=command.manifest,
        **fields,
    )


def _handed_over(
    command: Any, context: Context, fields: dict[str, Any], because: str | None
) -> Event:
    return e.EvidenceHandedOver(
        manifest_id=context.manifest.manifest_id,
        content_hash=command.content_hash,
        author_id=command.actor.id,
        manifest=command.manifest,
        because=because,
        **fields,
    )


def _salvage(
    state: Task, command: Command, context: Context, code: str
) -> tuple[Event, ...] | Refusal:
    fields = stamp(command, context, state.version)
    if isinstance(command, c.StoreEvidence) and code in _NO_LONGER_ABLE:
        missing = _guard_bytes(command, context)
        return missing or (e.EvidenceStored(hashes=command.hashes, **fields),)
    lost = isinstance(command, c.SubmitProof) and _loses(state, command, code)
    barred = isinstance(command, c.HandOver) and code in _NO_LONGER_ABLE
    if not (lost or barred) or context.manifest is None:
        return ()
    if not state.holds_or_held(command.actor.id) or getattr(command, "manifest", None) is None:
        return ()
    if state.manifest(context.manifest.manifest_id) is not None:
        return ()
    return (_handed_over(command, context, fields, code),)


def _loses(state: Task, command: Command, code: str) -> bool:
    if code in _ALWAYS_HANDED_OVER:
        return True
    return code in _HANDED_OVER_IF_LOST and command.actor.id != state.assignee_id


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
    guard=_guard,
    make_events=_make_events,
    salvage=_salvage,  # type: ignore[arg-type]
    exists_code="external_id_conflict",
    exists_details=_exists_details,
)
"""The field task's part of the kernel; `TASK_LIFECYCLE.decide(state, command, context)`."""

__all__ = ["TASK_LIFECYCLE", "content_hash"]
