"""What the journal hands out: the profile, queued commands, their outcomes, evidence, drafts.

Values only, frozen; whoever changes something asks the journal. A command's fields are read from its
signed bytes, so that nothing can say anything else than what goes to the server.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from workmate_shared.kernel.command import Command
from workmate_shared.tasks.values import Fix
from workmate_shared.wire.batch import Receipt
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.dsse import COMMAND_TYPE, Envelope, make_envelope
from workmate_shared.wire.intake import decode_command
from workmate_shared.wire.messages import Limits, SignedCommand, WireEvent

OutcomeStatus = Literal["committed", "unchanged", "conflict", "rejected"]
QueueStatus = Literal["pending", "committed", "unchanged", "conflict", "rejected"]
EvidenceKind = Literal["photo", "signature", "found"]


class Profile(Struct, frozen=True, kw_only=True):
    """Who works here, for which server, and what is known of it.

    `pinned_keys` maps the ids of trusted log keys to raw public keys in hex. `clock_skew_seconds` is
    how far this clock is ahead of the server's (negative: behind). `last_contact_at` is the last
    answer that was proven to be the server's, `last_sync_at` the last sync that went through whole,
    both by this clock. `past_lineages` are those that the server has left. `enrolled` becomes true with the verified receipt of the enrolment;
    `pull_refused` is the code with which the server refuses to tell this device anything.
    `answered_before` are ranges, with both ends, of `device_seq` numbers whose commands had been
    answered before a damaged journal was rebuilt, and are not here any more.
    """

    server_url: str
    tenant_id: str
    worker_id: str
    device_id: str
    lineage: str
    past_lineages: tuple[str, ...] = ()
    pinned_keys: dict[str, str]
    display_name: str | None = None
    enrolled: bool = False
    newest_header: Envelope | None = None
    newest_batch: int = 0
    clock_skew_seconds: float | None = None
    last_server_time: str | None = None
    last_contact_at: str | None = None
    last_sync_at: str | None = None
    limits: Limits | None = None
    pull_refused: str | None = None
    answered_before: tuple[tuple[int, int], ...] = ()

    @property
    def keep_from(self) -> int:
        """The batch number from which on nothing acknowledged may be deleted; 0 keeps all."""
        return self.limits.keep_from if self.limits else 0

    def trusted_keys(self) -> dict[str, bytes]:
        """Return the pinned keys as the verifying functions take them."""
        return {key_id: bytes.fromhex(key) for key_id, key in self.pinned_keys.items()}


class SignedParts(Struct, frozen=True):
    """A command as it was signed: payload, key id, raw signature; and the values beside it."""

    payload: bytes
    key_id: str
    signature: bytes
    disclosures: dict[str, Disclosure] = {}


class RecordedOutcome(Struct, frozen=True, kw_only=True):
    """How a command ended in one lineage; its receipt was verified before it was recorded.

    `current` and `events_since` are what the server showed with a conflict, as it was then.
    `replayed` says that the server had decided before: an earlier reply was lost.
    """

    status: OutcomeStatus
    code: str | None = None
    details: Mapping[str, Any] = {}
    version: int | None = None
    events: tuple[WireEvent, ...] = ()
    receipt: Receipt | None = None
    current: dict[str, Any] | None = None
    events_since: tuple[WireEvent, ...] = ()
    replayed: bool = False
    lineage: str
    recorded_at: str


class QueuedCommand(Struct, frozen=True, kw_only=True):
    """One command of this device, from the moment it was saved, for ever.

    `local_order` counts over all commands here. While pending it may hold why it waits: a code, the
    command it waits for, when to try next (RFC 3339, this clock). `outcome` is that of the present
    lineage. A conflict or rejection may be set aside with a reason.
    """

    command_id: str
    local_order: int
    device_seq: int
    aggregate_kind: str
    aggregate_id: str
    name: str
    lineage: str
    after: str | None
    expected_version: int | None
    occurred_at: str
    supersedes: str | None
    parts: SignedParts
    issued_at: str
    attempts: int = 0
    wait_code: str | None = None
    blocked_by: str | None = None
    next_attempt_at: str | None = None
    outcome: RecordedOutcome | None = None
    set_aside_at: str | None = None
    set_aside_reason: str | None = None
    superseded_by: str | None = None

    @property
    def status(self) -> QueueStatus:
        """`pending`, or how it ended."""
        return self.outcome.status if self.outcome else "pending"

    @property
    def waits(self) -> bool:
        """Whether it is still to be answered; an enrolment that another replaced is not."""
        replaced = self.name == "enrol" and self.superseded_by is not None
        return self.outcome is None and not replaced

    @property
    def needs_decision(self) -> bool:
        """Whether it ended in conflict or rejection and nobody has dealt with it yet."""
        lost = self.status in ("conflict", "rejected")
        return lost and self.set_aside_at is None and self.superseded_by is None

    def command(self) -> Command:
        """Return the decoded command."""
        return decode_command(self.parts.payload)

    def signed(self) -> SignedCommand:
        """Return it as it is sent: always the same bytes."""
        parts = self.parts
        envelope = make_envelope(COMMAND_TYPE, parts.payload, parts.key_id, parts.signature)
        return SignedCommand(envelope, parts.disclosures)


class EvidenceItem(Struct, frozen=True, kw_only=True):
    """One file that was captured for a task: BLAKE3 hash, size in bytes, where it lies sealed.

    `captured_from` says what `captured_at` was read from; absent means not recorded. `uploaded_bytes`
    of `size_bytes` have been acknowledged by the server under `upload_url`. A file is verified by
    the receipt of a `store_evidence` that names it. A quarantined one is no longer tried.
    """

    task_id: str
    hash: str
    size_bytes: int
    sealed_name: str
    kind: EvidenceKind
    media_type: str
    file_name: str | None = None
    slot: str | None = None
    captured_at: str | None = None
    captured_from: str | None = None
    fix: Fix | None = None
    remarks: tuple[str, ...] = ()
    added_at: str
    upload_url: str | None = None
    uploaded_bytes: int = 0
    upload_done_at: str | None = None
    verified_at: str | None = None
    attempts: int = 0
    wait_code: str | None = None
    next_attempt_at: str | None = None
    quarantined: str | None = None

    @property
    def bytes_left(self) -> int:
        """How many bytes the server has not acknowledged yet."""
        done = self.size_bytes if self.upload_done_at else self.uploaded_bytes
        return 0 if self.verified_at else self.size_bytes - done


class Draft(Struct, frozen=True):
    """A half-filled form of a task: its content as JSON bytes, and when it was last saved."""

    task_id: str
    form: str
    content: bytes
    saved_at: str


class Notice(Struct, frozen=True):
    """Something that happened to the stores and that the worker has to be told."""

    notice_id: int
    at: str
    code: str
    detail: str


class Conservation(Struct, frozen=True, kw_only=True):
    """Where every command went in the present lineage: issued is the sum of the other counts.

    An enrolment under a code that could not be used, and that another took the place of, is not
    counted: it was never answered and never will be.

    `lost` lists the `device_seq` numbers that were given out, were not answered as far as anybody
    knows, and are not here any more.
    """

    issued: int
    pending: int
    committed: int
    unchanged: int
    conflict: int
    rejected: int
    lost: tuple[int, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing is missing."""
        answered = self.committed + self.unchanged + self.conflict + self.rejected
        return self.issued == self.pending + answered and not self.lost
