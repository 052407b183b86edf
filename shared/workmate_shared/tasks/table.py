"""The field task's transition table.

unassigned -> assigned -> accepted -> en_route -> in_progress -> proof_pending -> completed
any but completed -> cancelled
"""

from typing import Any

from workmate_shared.kernel.table import Relation, Repeat, Role, Row, Table

UNASSIGNED = "unassigned"
ASSIGNED = "assigned"
ACCEPTED = "accepted"
EN_ROUTE = "en_route"
IN_PROGRESS = "in_progress"
PROOF_PENDING = "proof_pending"
COMPLETED = "completed"
CANCELLED = "cancelled"

STATES = (
    UNASSIGNED,
    ASSIGNED,
    ACCEPTED,
    EN_ROUTE,
    IN_PROGRESS,
    PROOF_PENDING,
    COMPLETED,
    CANCELLED,
)
_ANY = frozenset(STATES)
_OPEN = _ANY - {COMPLETED, CANCELLED}
_HOLDER = Relation.HOLDER
_ASSIGNEE = Relation.ASSIGNEE


def _row(
    command: str, event: str, roles: set[Role], allowed: str | frozenset[str], **rest: Any
) -> Row:
    states = frozenset({allowed}) if isinstance(allowed, str) else allowed
    return Row(command=command, event=event, roles=frozenset(roles), allowed_from=states, **rest)


TASK_TABLE = Table(
    aggregate="task",
    states=STATES,
    rows=(
        _row(
            "create_task",
            "task.created",
            {Role.INTEGRATION},
            frozenset(),
            result=UNASSIGNED,
            creates=True,
            repeat=Repeat.SAME_CREATION,
            note="One upstream job is one task for ever; other content: external_id_conflict.",
        ),
        _row(
            "assign",
            "task.assigned",
            {Role.DISPATCHER},
            frozenset({UNASSIGNED, ASSIGNED}),
            result=ASSIGNED,
            note="The worker is active and holds every required skill: worker_not_eligible.",
        ),
        _row(
            "accept",
            "task.accepted",
            {Role.WORKER},
            ASSIGNED,
            result=ACCEPTED,
            relation=_ASSIGNEE,
            repeat=Repeat.BEEN_THERE,
        ),
        _row(
            "decline",
            "task.declined",
            {Role.WORKER},
            frozenset({ASSIGNED, ACCEPTED, EN_ROUTE, IN_PROGRESS}),
            result=UNASSIGNED,
            relation=_ASSIGNEE,
            note="Needs a reason code and a reason.",
        ),
        _row(
            "start_travel",
            "task.en_route",
            {Role.WORKER},
            ACCEPTED,
            result=EN_ROUTE,
            relation=_ASSIGNEE,
            repeat=Repeat.BEEN_THERE,
        ),
        _row(
            "arrive",
            "task.started",
            {Role.WORKER},
            EN_ROUTE,
            result=IN_PROGRESS,
            relation=_ASSIGNEE,
            repeat=Repeat.BEEN_THERE,
            note="A fix with its source, or why there is none.",
        ),
        _row(
            "submit_proof",
            "task.proof_submitted",
            {Role.WORKER},
            IN_PROGRESS,
            result=PROOF_PENDING,
            relation=_ASSIGNEE,
            repeat=Repeat.SAME_MANIFEST,
            note="The manifest is immutable from here; a decided one: manifest_decided.",
        ),
        _row(
            "approve_proof",
            "task.completed",
            {Role.SUPERVISOR, Role.SYSTEM},
            PROOF_PENDING,
            result=COMPLETED,
            repeat=Repeat.SAME_DECISION,
            note="The policy passes: proof_policy_unmet. Four eyes: self_approval. "
            "The system only where the policy says so: validation_not_automatic.",
        ),
        _row(
            "reject_proof",
            "task.proof_rejected",
            {Role.SUPERVISOR},
            PROOF_PENDING,
            result=IN_PROGRESS,
            repeat=Repeat.SAME_DECISION,
            note="Needs a reason; the rejected evidence stays readable.",
        ),
        _row(
            "release",
            "task.released",
            {Role.DISPATCHER},
            frozenset({ACCEPTED, EN_ROUTE, IN_PROGRESS}),
            result=UNASSIGNED,
            note="Compensating work; needs a reason; evidence stays.",
        ),
        _row(
            "amend",
            "task.amended",
            {Role.DISPATCHER, Role.INTEGRATION},
            _OPEN,
            note="The proof policy only before work has begun: policy_locked.",
        ),
        _row(
            "cancel",
            "task.cancelled",
            {Role.DISPATCHER, Role.SUPERVISOR, Role.INTEGRATION},
            _OPEN,
            result=CANCELLED,
            note="A named actor and a reason. Terminal.",
        ),
        _row(
            "observe",
            "task.observed",
            {Role.WORKER, Role.DISPATCHER, Role.SUPERVISOR, Role.SYSTEM},
            _ANY,
            relation=_HOLDER,
            annotates=True,
            note="Some kinds are the system's alone: observation_not_allowed.",
        ),
        _row(
            "store_evidence",
            "evidence.stored",
            {Role.WORKER},
            _ANY,
            relation=_HOLDER,
            annotates=True,
            note="When every file is held, verified and uploaded by this actor: bytes_missing.",
        ),
        _row(
            "hand_over",
            "evidence.handed_over",
            {Role.WORKER},
            _ANY,
            relation=_HOLDER,
            annotates=True,
            repeat=Repeat.SAME_MANIFEST,
            note="A manifest for the office to look at.",
        ),
        _row(
            "dismiss_handover",
            "evidence.dismissed",
            {Role.SUPERVISOR},
            _ANY,
            annotates=True,
            note="Needs a reason; only what waits as a hand-over: manifest_decided.",
        ),
    ),
)
"""Every command of a field task."""

OPEN_STATES = _OPEN
"""States in which the task is neither completed nor cancelled."""

BEFORE_WORK = frozenset({UNASSIGNED, ASSIGNED, ACCEPTED, EN_ROUTE})
"""States in which the proof policy may still be amended."""

OFFICE_ROLES = frozenset(
    {Role.INTEGRATION, Role.DISPATCHER, Role.SUPERVISOR, Role.AUDITOR, Role.SYSTEM}
)
"""Roles that see every task of their tenant; a worker sees what he holds or held."""
