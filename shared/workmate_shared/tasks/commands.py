"""The commands of a field task: frozen structs that are domain value, wire message and schema.

Only public fields stand here; `personal` and `position` hold commitments (see `values`).
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from workmate_shared.kernel.command import Command
from workmate_shared.kernel.ids import Commitment, HashHex, Identifier
from workmate_shared.kernel.instants import Instant, check_instant, parse_instant
from workmate_shared.tasks.manifest import ArticleVersion
from workmate_shared.tasks.policy import ProofPolicy, ShortText

MANIFEST_BASE64_MAX = 350_000
EVIDENCE_MAX = 500

Skill = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.-]*$(?!\n)", max_length=64)]
Skills = Annotated[tuple[Skill, ...], Meta(max_length=50)]
Articles = Annotated[tuple[ArticleVersion, ...], Meta(max_length=50)]
Priority = Annotated[int, Meta(ge=0, le=9)]
Source = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]*$(?!\n)", max_length=100)]
"""The system that a job comes from: an id without a colon, so that `<source>:<external_id>` is one job."""

ExternalId = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$(?!\n)")]
Hashes = Annotated[tuple[HashHex, ...], Meta(max_length=EVIDENCE_MAX)]
ManifestBase64 = Annotated[str, Meta(max_length=MANIFEST_BASE64_MAX)]


class Window(Struct, frozen=True, forbid_unknown_fields=True):
    """The service window: start and end instants, the end not before the start."""

    start: Instant
    end: Instant

    def __post_init__(self) -> None:
        """Refuse a window that ends before it starts."""
        if parse_instant(self.end) < parse_instant(self.start):
            raise ValueError("the window ends before it starts")


class CreateTask(Command, frozen=True, tag="create_task", kw_only=True):
    """Create the task of one upstream job."""

    source: Source
    external_id: ExternalId
    priority: Priority = 3
    due_at: Instant | None = None
    window: Window | None = None
    required_skills: Skills = ()
    pinned_articles: Articles = ()
    proof_policy: ProofPolicy = ProofPolicy()

    def __post_init__(self) -> None:
        """Refuse instants that no calendar has."""
        super().__post_init__()
        check_instant(self.due_at)


class Assign(Command, frozen=True, tag="assign", kw_only=True):
    """Give the task to a worker; the reason for the choice is personal."""

    worker_id: Identifier
    personal: Commitment


class Accept(Command, frozen=True, tag="accept", kw_only=True):
    """The assignee takes the task on."""


class Decline(Command, frozen=True, tag="decline", kw_only=True):
    """The assignee gives the task back, with a reason code and a personal reason."""

    reason_code: Literal["nobody_home", "unsafe", "no_parts", "not_my_skill", "other"]
    personal: Commitment


class StartTravel(Command, frozen=True, tag="start_travel", kw_only=True):
    """The assignee sets out."""


class Arrive(Command, frozen=True, tag="arrive", kw_only=True):
    """The assignee is there: a fix in the position, or why there is none."""

    evidence: Hashes = ()
    no_fix_reason: ShortText | None = None

    def __post_init__(self) -> None:
        """Demand a fix or the reason for its absence, and not both."""
        super().__post_init__()
        if (self.position is None) == (self.no_fix_reason is None):
            raise ValueError("arrive needs either a position or a no_fix_reason")


class _CarriesManifest(Command, frozen=True, kw_only=True):
    manifest: ManifestBase64 | None = None
    content_hash: HashHex | None = None

    def __post_init__(self) -> None:
        """Demand the hash beside the bytes."""
        super().__post_init__()
        if (self.manifest is None) != (self.content_hash is None):
            raise ValueError("manifest and content_hash come together")


class SubmitProof(_CarriesManifest, frozen=True, tag="submit_proof", kw_only=True):
    """Submit a manifest, or take over the handed-over one named by `manifest_id`."""

    manifest_id: Identifier | None = None

    def __post_init__(self) -> None:
        """Demand the manifest's bytes or the id of a known one, and not both."""
        super().__post_init__()
        if (self.manifest is None) == (self.manifest_id is None):
            raise ValueError("submit_proof needs either a manifest or a manifest_id")


class ApproveProof(Command, frozen=True, tag="approve_proof", kw_only=True):
    """Complete the task on the proof named."""

    manifest_id: Identifier


class RejectProof(Command, frozen=True, tag="reject_proof", kw_only=True):
    """Send the proof named back, with a personal reason."""

    manifest_id: Identifier
    personal: Commitment


class Release(Command, frozen=True, tag="release", kw_only=True):
    """Take the task from its assignee, with a personal reason."""

    personal: Commitment


class Amend(Command, frozen=True, tag="amend", kw_only=True):
    """Change what the task says; only what is present changes, null takes a value away."""

    priority: Priority | UnsetType = UNSET
    due_at: Instant | UnsetType | None = UNSET
    window: Window | UnsetType | None = UNSET
    required_skills: Skills | UnsetType = UNSET
    pinned_articles: Articles | UnsetType = UNSET
    proof_policy: ProofPolicy | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse an amendment that changes nothing."""
        super().__post_init__()
        if isinstance(self.due_at, str):
            check_instant(self.due_at)
        if self.personal is None and self.position is None and not self.changes():
            raise ValueError("amend needs something to change")

    def changes(self) -> dict[str, object]:
        """Return the public fields that are present, by name."""
        fields = {name: getattr(self, name) for name in AMENDABLE}
        return {name: value for name, value in fields.items() if value is not UNSET}


AMENDABLE = (
    "priority",
    "due_at",
    "window",
    "required_skills",
    "pinned_articles",
    "proof_policy",
)
"""The public fields that `amend` may change."""


class Cancel(Command, frozen=True, tag="cancel", kw_only=True):
    """End the task without completion, with a personal reason."""

    personal: Commitment


class _Reading(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    at: Instant

    def __post_init__(self) -> None:
        """Refuse instants that no calendar has."""
        check_instant(self.at)


class Eta(_Reading, frozen=True, tag="eta", kw_only=True):
    """When the worker expects to arrive."""

    arrive_at: Instant

    def __post_init__(self) -> None:
        """Refuse instants that no calendar has."""
        super().__post_init__()
        check_instant(self.arrive_at)


class PositionReading(_Reading, frozen=True, tag="position", kw_only=True):
    """That a fix was taken; the fix itself lies in the position."""


class RouteDeviation(_Reading, frozen=True, tag="route_deviation", kw_only=True):
    """How far off the route, in metres."""

    metres: Annotated[int, Meta(ge=0, le=10**8)]


class Note(_Reading, frozen=True, tag="note", kw_only=True):
    """That a note was made; its text is personal."""


class Finding(_Reading, frozen=True, tag="finding", kw_only=True):
    """Something that automatic validation noticed about files."""

    code: Identifier
    hashes: Hashes = ()


class Purge(_Reading, frozen=True, tag="purge", kw_only=True):
    """What was purged under which rule: hashes of files and commitments of values."""

    rule: Identifier
    hashes: Hashes = ()
    commitments: Hashes = ()


class SlaRisk(_Reading, frozen=True, tag="sla_risk", kw_only=True):
    """The deadline is near, or no longer near."""

    due_at: Instant
    withdrawn: bool = False

    def __post_init__(self) -> None:
        """Refuse instants that no calendar has."""
        super().__post_init__()
        check_instant(self.due_at)


class SlaBreach(_Reading, frozen=True, tag="sla_breach", kw_only=True):
    """The deadline has passed, or a late report showed that it had been kept."""

    due_at: Instant
    withdrawn: bool = False

    def __post_init__(self) -> None:
        """Refuse instants that no calendar has."""
        super().__post_init__()
        check_instant(self.due_at)


Reading = Eta | PositionReading | RouteDeviation | Note | Finding | Purge | SlaRisk | SlaBreach
SYSTEM_READINGS = (Finding, Purge, SlaRisk, SlaBreach)
"""Kinds of reading that only the system records."""


def reading_kind(reading: Reading) -> str:
    """Return the wire name of a reading's kind, e.g. `eta`."""
    return str(reading.__struct_config__.tag)


class Observe(Command, frozen=True, tag="observe", kw_only=True):
    """Record readings about the task; moves nothing."""

    readings: Annotated[tuple[Reading, ...], Meta(min_length=1, max_length=500)]

    def __post_init__(self) -> None:
        """Refuse a note without words and a fix without a place."""
        super().__post_init__()
        kinds = {type(reading) for reading in self.readings}
        if Note in kinds and self.personal is None:
            raise ValueError("a note needs its words in personal")
        if PositionReading in kinds and self.position is None:
            raise ValueError("a position reading needs a position")


class StoreEvidence(Command, frozen=True, tag="store_evidence", kw_only=True):
    """Say that the uploads of these files have ended."""

    hashes: Annotated[tuple[HashHex, ...], Meta(min_length=1, max_length=EVIDENCE_MAX)]


class HandOver(_CarriesManifest, frozen=True, tag="hand_over", kw_only=True):
    """Give a manifest to the office to look at."""

    manifest: ManifestBase64
    content_hash: HashHex


class DismissHandover(Command, frozen=True, tag="dismiss_handover", kw_only=True):
    """End a hand-over without using it, with a personal reason."""

    manifest_id: Identifier
    personal: Commitment


TaskCommand = (
    CreateTask
    | Assign
    | Accept
    | Decline
    | StartTravel
    | Arrive
    | SubmitProof
    | ApproveProof
    | RejectProof
    | Release
    | Amend
    | Cancel
    | Observe
    | StoreEvidence
    | HandOver
    | DismissHandover
)
"""Every command of a field task, told apart by `type`."""


def named_hashes(command: Command, manifest_hashes: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the evidence hashes that a command names, itself or through its manifest."""
    own: tuple[str, ...] = ()
    if isinstance(command, Arrive):
        own = command.evidence
    elif isinstance(command, StoreEvidence):
        own = command.hashes
    return tuple(dict.fromkeys((*own, *manifest_hashes)))
