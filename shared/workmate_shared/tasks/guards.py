"""Check 10 of a field task: what a command demands beyond role, version, assignee and state.

Each guard returns the first thing that forbids the command, or None; facts from outside the task
are those of the context.
"""

from workmate_shared.kernel.command import Command
from workmate_shared.kernel.decision import Refusal
from workmate_shared.kernel.lifecycle import Context, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.tasks import commands as c
from workmate_shared.tasks import table as t
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.proof import evaluate, facts_for
from workmate_shared.tasks.task import ManifestRecord, Task


def guard(state: Task | None, command: Command, context: Context) -> Refusal | None:
    """Return why the command's own rule forbids it; a creation has none."""
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
            return _guard_status(state, command.manifest_id, "submitted")
        case c.Amend() if "proof_policy" in command.changes() and state.state not in t.BEFORE_WORK:
            return Refusal("policy_locked", {"state": state.state})
        case c.Observe():
            return _guard_readings(command)
        case c.StoreEvidence():
            return missing_bytes(command, context)
        case c.DismissHandover():
            return _guard_status(state, command.manifest_id, "handed_over")
        case _:
            return None


def missing_bytes(command: c.StoreEvidence, context: Context) -> Refusal | None:
    """Return `bytes_missing` unless this actor uploaded every file named and all are verified."""
    missing = [
        name
        for name in command.hashes
        if (blob := context.blobs.get(name)) is None
        or not (blob.verified and blob.uploaded_by_actor)
    ]
    return Refusal("bytes_missing", {"hashes": missing}) if missing else None


def _guard_assign(state: Task, command: c.Assign, context: Context) -> Refusal | None:
    worker = context.principals.get(command.worker_id, PrincipalFacts(active=False))
    missing = sorted(set(state.required_skills) - worker.skills)
    if not worker.active:
        reason = "not active or unknown"
    elif Role.WORKER not in worker.roles:
        reason = "not a worker"
    elif missing:
        reason = f"lacks {', '.join(missing)}"
    else:
        return None
    facts = {"worker_id": command.worker_id, "reason": reason, "missing": missing}
    return Refusal("worker_not_eligible", facts)


def _guard_manifest(
    state: Task, command: c.SubmitProof | c.HandOver, manifest: Manifest
) -> Refusal | None:
    if isinstance(command, c.SubmitProof) and command.manifest_id is not None:
        return _guard_status(state, command.manifest_id, "handed_over")
    known = state.manifest(manifest.manifest_id)
    if known is None:
        return None
    if known.content_hash != command.content_hash:
        return Refusal("manifest_id_reused", {"manifest_id": known.manifest_id})
    if known.status == "handed_over" and isinstance(command, c.SubmitProof):
        return None
    return _decided(known)


def _guard_status(state: Task, manifest_id: str, wanted: str) -> Refusal | None:
    record = state.manifest(manifest_id)
    if record is None:
        return Refusal("manifest_unknown", {"manifest_id": manifest_id})
    return None if record.status == wanted else _decided(record)


def _decided(record: ManifestRecord) -> Refusal:
    facts = {"manifest_id": record.manifest_id, "manifest_status": record.status}
    return Refusal("manifest_decided", facts)


def _guard_approval(state: Task, command: c.ApproveProof, context: Context) -> Refusal | None:
    refusal = _guard_status(state, command.manifest_id, "submitted")
    if refusal is not None:
        return refusal
    record = state.known_manifest(command.manifest_id)
    facts = {"actor": command.actor.id, "manifest_id": record.manifest_id}
    if command.actor.id in (record.submitted_by, record.on_behalf_of, record.author_id):
        return Refusal("self_approval", facts)
    if command.actor.role is Role.SYSTEM and state.proof_policy.validation != "automatic":
        return Refusal("validation_not_automatic", facts)
    findings = evaluate(state.proof_policy, context.manifest, facts_for(state, record, context))
    if not findings:
        return None
    listed = [finding.public() for finding in findings]
    return Refusal("proof_policy_unmet", {"manifest_id": record.manifest_id, "findings": listed})


def _guard_readings(command: c.Observe) -> Refusal | None:
    if command.actor.role is Role.SYSTEM:
        return None
    for reading in command.readings:
        if isinstance(reading, c.SYSTEM_READINGS):
            facts = {"role": command.actor.role.value, "kind": c.reading_kind(reading)}
            return Refusal("observation_not_allowed", facts)
    return None
