"""A field task as its events make it: the state and `evolve`.

The state holds public facts and commitments only; opened values are laid over it when it is shown.
`evolve` is total over every event ever written and never decides.
"""

import base64
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from workmate_shared.kernel.command import Event
from workmate_shared.tasks import events as e
from workmate_shared.tasks import table as t
from workmate_shared.tasks.commands import Window
from workmate_shared.tasks.manifest import ArticleVersion, Manifest, ManifestStatus
from workmate_shared.tasks.policy import ProofPolicy


class ManifestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the task knows of one proof: whose it is, who decided what, and the commitment to why."""

    manifest_id: str
    content_hash: str
    status: ManifestStatus
    author_id: str
    task_version: int
    retention_class: str
    hashes: tuple[str, ...] = ()
    commitments: tuple[str, ...] = ()
    submitted_by: str | None = None
    on_behalf_of: str | None = None
    submitted_at: str | None = None
    decided_by: str | None = None
    reason: str | None = None


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of one field task; `personal` lists commitments, oldest first."""

    tenant_id: str
    task_id: str
    source: str
    external_id: str
    fingerprint: str
    state: str
    version: int
    changed_version: int
    state_entered_at: str
    priority: int
    proof_policy: ProofPolicy
    policy_version: str
    due_at: str | None = None
    window: Window | None = None
    required_skills: tuple[str, ...] = ()
    pinned_articles: tuple[ArticleVersion, ...] = ()
    assignee_id: str | None = None
    visited: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    personal: tuple[str, ...] = ()
    position: str | None = None
    current_manifest_id: str | None = None
    manifests: tuple[ManifestRecord, ...] = ()

    def manifest(self, manifest_id: str | None) -> ManifestRecord | None:
        """Return the record of a manifest, or None."""
        return next((m for m in self.manifests if m.manifest_id == manifest_id), None)

    def known_manifest(self, manifest_id: str | None) -> ManifestRecord:
        """Return the record of a manifest that the task has; raises KeyError for another id."""
        record = self.manifest(manifest_id)
        if record is None:
            raise KeyError(manifest_id)
        return record

    def holds_or_held(self, principal_id: str) -> bool:
        """Whether the principal is or once was the assignee."""
        return principal_id in self.holders


def decode_manifest(text: str) -> Manifest:
    """Return the manifest in base64 text as it stands in commands and events."""
    return msgspec.json.decode(base64.b64decode(text, validate=True), type=Manifest)


def evolve(state: Task | None, event: Event) -> Task:
    """Return the task after `event`; the first event of a stream is `task.created`."""
    if isinstance(event, e.TaskCreated):
        return _created(event)
    if state is None:
        raise ValueError(f"{event.type} cannot begin a task")
    change = _CHANGES[type(event)](state, event)
    if type(event) not in _ANNOTATIONS:
        change["changed_version"] = event.aggregate_version
    if "state" in change:
        change["state_entered_at"] = event.recorded_at
        change.setdefault("visited", (*state.visited, change["state"]))
    return replace(state, version=event.aggregate_version, **change)


def _created(event: e.TaskCreated) -> Task:
    return Task(
        tenant_id=event.tenant_id,
        task_id=event.aggregate_id,
        source=event.source,
        external_id=event.external_id,
        fingerprint=event.fingerprint,
        state=t.UNASSIGNED,
        version=event.aggregate_version,
        changed_version=event.aggregate_version,
        state_entered_at=event.recorded_at,
        priority=event.priority,
        proof_policy=event.proof_policy,
        policy_version=event.policy_version,
        due_at=event.due_at,
        window=event.window,
        required_skills=event.required_skills,
        pinned_articles=event.pinned_articles,
        personal=(event.personal,) if event.personal else (),
        position=event.position,
    )


def _assigned(state: Task, event: e.TaskAssigned) -> dict[str, Any]:
    return {
        "state": t.ASSIGNED,
        "assignee_id": event.worker_id,
        "visited": (t.ASSIGNED,),
        "holders": tuple(dict.fromkeys((*state.holders, event.worker_id))),
    }


def _moves_to(name: str) -> Callable[[Task, Any], dict[str, Any]]:
    return lambda _state, _event: {"state": name}


def _given_back(_state: Task, _event: Event) -> dict[str, Any]:
    return {"state": t.UNASSIGNED, "assignee_id": None, "visited": ()}


def _submitted(state: Task, event: e.ProofSubmitted) -> dict[str, Any]:
    record = _record(state, event, "submitted")
    record = replace(
        record,
        submitted_by=event.actor.id,
        on_behalf_of=event.on_behalf_of,
        submitted_at=event.occurred_at,
    )
    return {
        "state": t.PROOF_PENDING,
        "current_manifest_id": event.manifest_id,
        "manifests": _with(state, record),
    }


def _handed_over(state: Task, event: e.EvidenceHandedOver) -> dict[str, Any]:
    return {"manifests": _with(state, _record(state, event, "handed_over"))}


def _decided(status: ManifestStatus, moves_to: str | None) -> Callable[[Task, Any], dict[str, Any]]:
    def change(state: Task, event: Any) -> dict[str, Any]:
        record = state.known_manifest(event.manifest_id)
        decided = replace(record, status=status, decided_by=event.actor.id, reason=event.personal)
        moved = {"state": moves_to} if moves_to else {}
        return {"manifests": _with(state, decided), **moved}

    return change


def _amended(state: Task, event: e.TaskAmended) -> dict[str, Any]:
    names = (
        "priority",
        "due_at",
        "window",
        "required_skills",
        "pinned_articles",
        "proof_policy",
        "policy_version",
    )
    change = {name: getattr(event, name) for name in names if getattr(event, name) is not UNSET}
    if event.personal is not None:
        change["personal"] = (*state.personal, event.personal)
    if event.position is not None:
        change["position"] = event.position
    return change


def _nothing(_state: Task, _event: Event) -> dict[str, Any]:
    return {}


def _record(
    state: Task, event: e.ProofSubmitted | e.EvidenceHandedOver, status: ManifestStatus
) -> ManifestRecord:
    known = state.manifest(event.manifest_id)
    if known is not None:
        return replace(known, status=status)
    manifest = decode_manifest(event.manifest or "")
    return ManifestRecord(
        manifest_id=event.manifest_id,
        content_hash=event.content_hash,
        status=status,
        author_id=event.author_id,
        task_version=manifest.task_version,
        retention_class=manifest.retention_class,
        hashes=manifest.hashes(),
        commitments=manifest.commitments(),
    )


def _with(state: Task, record: ManifestRecord) -> tuple[ManifestRecord, ...]:
    others = (m for m in state.manifests if m.manifest_id != record.manifest_id)
    return (*others, record)


_CHANGES: dict[type[Event], Callable[[Task, Any], dict[str, Any]]] = {
    e.TaskAssigned: _assigned,
    e.TaskAccepted: _moves_to(t.ACCEPTED),
    e.TaskDeclined: _given_back,
    e.TaskEnRoute: _moves_to(t.EN_ROUTE),
    e.TaskStarted: _moves_to(t.IN_PROGRESS),
    e.ProofSubmitted: _submitted,
    e.TaskCompleted: _decided("approved", t.COMPLETED),
    e.ProofRejected: _decided("rejected", t.IN_PROGRESS),
    e.TaskReleased: _given_back,
    e.TaskAmended: _amended,
    e.TaskCancelled: _moves_to(t.CANCELLED),
    e.TaskObserved: _nothing,
    e.EvidenceStored: _nothing,
    e.EvidenceHandedOver: _handed_over,
    e.EvidenceDismissed: _decided("dismissed", None),
}

_ANNOTATIONS = frozenset(
    kind for kind in _CHANGES if str(kind.__struct_config__.tag) in t.TASK_TABLE.annotation_events()
)
