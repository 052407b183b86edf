"""The events of a field task, under wire names that never change.

An event repeats whatever later readers need, so that the log alone rebuilds every task.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from workmate_shared.kernel.command import Event
from workmate_shared.kernel.ids import Commitment, HashHex, Identifier
from workmate_shared.kernel.instants import Instant
from workmate_shared.tasks.commands import (
    Articles,
    ExternalId,
    Hashes,
    ManifestBase64,
    Priority,
    Reading,
    Skills,
    Window,
)
from workmate_shared.tasks.policy import ProofPolicy, ShortText


class TaskCreated(Event, frozen=True, tag="task.created", kw_only=True):
    """A job became a task."""

    fingerprint: HashHex
    source: Identifier
    external_id: ExternalId
    priority: Priority
    due_at: Instant | None = None
    window: Window | None = None
    required_skills: Skills = ()
    pinned_articles: Articles = ()
    proof_policy: ProofPolicy
    policy_version: HashHex


class TaskAssigned(Event, frozen=True, tag="task.assigned", kw_only=True):
    """The task was given to a worker."""

    worker_id: Identifier
    personal: Commitment


class TaskAccepted(Event, frozen=True, tag="task.accepted", kw_only=True):
    """The assignee took it on."""


class TaskDeclined(Event, frozen=True, tag="task.declined", kw_only=True):
    """The assignee gave it back."""

    worker_id: Identifier
    reason_code: Literal["nobody_home", "unsafe", "no_parts", "not_my_skill", "other"]
    personal: Commitment


class TaskEnRoute(Event, frozen=True, tag="task.en_route", kw_only=True):
    """The assignee set out."""


class TaskStarted(Event, frozen=True, tag="task.started", kw_only=True):
    """The assignee arrived and work began."""

    evidence: Hashes = ()
    no_fix_reason: ShortText | None = None


class ProofSubmitted(Event, frozen=True, tag="task.proof_submitted", kw_only=True):
    """A proof waits for a decision; `manifest` is there unless it was handed over before."""

    manifest_id: Identifier
    content_hash: HashHex
    author_id: Identifier
    manifest: ManifestBase64 | None = None


class TaskCompleted(Event, frozen=True, tag="task.completed", kw_only=True):
    """The proof was approved and the task is done."""

    manifest_id: Identifier
    content_hash: HashHex


class ProofRejected(Event, frozen=True, tag="task.proof_rejected", kw_only=True):
    """The proof was sent back; it stays readable."""

    manifest_id: Identifier
    content_hash: HashHex
    manifest_version: Annotated[int, Meta(ge=0)]
    personal: Commitment


class TaskReleased(Event, frozen=True, tag="task.released", kw_only=True):
    """The office took the task from its assignee."""

    worker_id: Identifier
    personal: Commitment


class TaskAmended(Event, frozen=True, tag="task.amended", kw_only=True):
    """What the task says was changed; only what changed is present."""

    priority: Priority | UnsetType = UNSET
    due_at: Instant | UnsetType | None = UNSET
    window: Window | UnsetType | None = UNSET
    required_skills: Skills | UnsetType = UNSET
    pinned_articles: Articles | UnsetType = UNSET
    proof_policy: ProofPolicy | UnsetType = UNSET
    policy_version: HashHex | UnsetType = UNSET


class TaskCancelled(Event, frozen=True, tag="task.cancelled", kw_only=True):
    """The task ended without completion."""

    personal: Commitment


class TaskObserved(Event, frozen=True, tag="task.observed", kw_only=True):
    """Readings about the task; an annotation."""

    readings: tuple[Reading, ...]


class EvidenceStored(Event, frozen=True, tag="evidence.stored", kw_only=True):
    """The files named are held and verified; an annotation."""

    hashes: Hashes


class EvidenceHandedOver(Event, frozen=True, tag="evidence.handed_over", kw_only=True):
    """A manifest waits for the office to look at it; an annotation.

    `because` is the code of the refusal that it came with, if any.
    """

    manifest_id: Identifier
    content_hash: HashHex
    author_id: Identifier
    manifest: ManifestBase64
    because: Identifier | None = None


class EvidenceDismissed(Event, frozen=True, tag="evidence.dismissed", kw_only=True):
    """A hand-over was ended without use; an annotation."""

    manifest_id: Identifier
    content_hash: HashHex
    personal: Commitment


TaskEvent = (
    TaskCreated
    | TaskAssigned
    | TaskAccepted
    | TaskDeclined
    | TaskEnRoute
    | TaskStarted
    | ProofSubmitted
    | TaskCompleted
    | ProofRejected
    | TaskReleased
    | TaskAmended
    | TaskCancelled
    | TaskObserved
    | EvidenceStored
    | EvidenceHandedOver
    | EvidenceDismissed
)
"""Every event of a field task, told apart by `type`."""
