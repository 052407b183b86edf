"""One way to every code that a decision can give."""

from collections.abc import Callable
from typing import Any

from support.commands import (
    ASSIGNEE,
    DEVICE,
    FORMER,
    STRANGER,
    SYSTEM,
    make_actor,
    make_command,
    make_manifest,
    make_policy,
    manifest_fields,
)
from support.contexts import decide, principal_in, walk_to
from workmate_shared.kernel.decision import Decision
from workmate_shared.kernel.lifecycle import EventRef, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.commands import SlaRisk

WORKER = frozenset({Role.WORKER})


def _on_task(state: str, kind: str, facts: dict[str, Any] | None = None, **fields: Any) -> Decision:
    task = walk_to(state)
    command = make_command(kind, **({"expected_version": task.version} | fields))
    return decide(task, command, **(facts or {}))


def _on_principal(kind: str, facts: dict[str, Any] | None = None, **fields: Any) -> Decision:
    command = make_command(kind, **({"expected_version": None} | fields))
    return decide(principal_in("active"), command, **(facts or {}))


def _external_id_conflict() -> Decision:
    return decide(walk_to("unassigned"), make_command("create_task", priority=7))


def _version_conflict() -> Decision:
    since = (EventRef(6, annotates=False, principal_id="usr_dora", command_id="amended"),)
    return _on_task("accepted", "decline", {"since": since}, expected_version=4)


def _manifest_decided() -> Decision:
    return _on_task("proof_pending", "dismiss_handover")


def _manifest_id_reused() -> Decision:
    other = manifest_fields(make_manifest(task_version=6))
    return _on_task("proof_pending", "hand_over", **other)


def _proof_policy_unmet() -> Decision:
    return _on_task("proof_pending", "approve_proof", {"opened": {}, "blobs": {}})


def _observation_not_allowed() -> Decision:
    reading = SlaRisk(at="2026-03-01T09:00:00Z", due_at="2026-03-01T12:00:00Z")
    return _on_task("assigned", "observe", readings=(reading,))


def _role_not_allowed() -> Decision:
    return _on_task("assigned", "accept", actor=make_actor(Role.DISPATCHER))


def _device_revoked() -> Decision:
    actor = make_actor(device_id=DEVICE)
    return _on_task("assigned", "accept", {"device_revoked": True}, actor=actor)


def _enrolment_unknown() -> Decision:
    actor = make_actor(device_id="device-2")
    return _on_principal("enrol", actor=actor, command_id="0f" * 32)


CODES: dict[str, Callable[[], Decision]] = {
    "not_found": lambda: _on_task("assigned", "accept", actor=make_actor(principal_id=STRANGER)),
    "actor_deactivated": lambda: _on_task(
        "assigned", "accept", {"actor": PrincipalFacts(False, WORKER)}
    ),
    "device_revoked": _device_revoked,
    "role_not_allowed": _role_not_allowed,
    "creation_not_allowed": lambda: decide(
        None, make_command("create_task", actor=make_actor(Role.DISPATCHER))
    ),
    "external_id_conflict": _external_id_conflict,
    "principal_exists": lambda: decide(
        principal_in("active"), make_command("create_principal", kind="service")
    ),
    "blocked_by": lambda: _on_task("assigned", "accept", after="earlier"),
    "chain_broken": lambda: _on_task(
        "assigned", "accept", {"after_outcome": "rejected"}, after="earlier"
    ),
    "expected_version_required": lambda: _on_task("assigned", "accept", expected_version=None),
    "version_conflict": _version_conflict,
    "version_ahead": lambda: _on_task("assigned", "accept", expected_version=99),
    "history_lost": lambda: _on_task(
        "assigned", "accept", expected_version=99, lineage="lineage-before"
    ),
    "not_assignee": lambda: _on_task("assigned", "accept", actor=make_actor(principal_id=FORMER)),
    "override_invalid": lambda: _on_task(
        "assigned", "accept", actor=make_actor(Role.SUPERVISOR), override=FORMER
    ),
    "state_not_allowed": lambda: _on_task("assigned", "arrive"),
    "worker_not_eligible": lambda: _on_task("unassigned", "assign", {"principals": {}}),
    "policy_locked": lambda: _on_task("in_progress", "amend", proof_policy=make_policy()),
    "manifest_unknown": lambda: _on_task(
        "proof_pending", "approve_proof", manifest_id="manifest-2"
    ),
    "manifest_decided": _manifest_decided,
    "manifest_id_reused": _manifest_id_reused,
    "self_approval": lambda: _on_task(
        "proof_pending", "approve_proof", actor=make_actor(Role.SUPERVISOR, ASSIGNEE)
    ),
    "validation_not_automatic": lambda: _on_task(
        "proof_pending", "approve_proof", actor=make_actor(Role.SYSTEM, SYSTEM)
    ),
    "proof_policy_unmet": _proof_policy_unmet,
    "observation_not_allowed": _observation_not_allowed,
    "bytes_missing": lambda: _on_task("assigned", "store_evidence", {"blobs": {}}),
    "credential_exists": lambda: _on_principal("add_credential", actor=make_actor(Role.SYSTEM)),
    "credential_unknown": lambda: _on_principal("revoke_credential", credential_id="token-9"),
    "enrolment_unknown": _enrolment_unknown,
}
"""For each code of the catalogue that `decide` gives: a decision that ends with it."""
