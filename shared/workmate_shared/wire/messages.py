"""The messages of sync, sessions and enrolment, and the parts that all answers share.

Envelopes, requests and answers ignore unknown fields, so that versions can move, servers first;
commands and events refuse them. Only an outcome whose receipt verifies consumes a command.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from workmate_shared.kernel.ids import HashHex, Identifier
from workmate_shared.kernel.instants import Instant
from workmate_shared.principals.commands import PublicKeyHex
from workmate_shared.tasks.task import Task
from workmate_shared.wire.batch import Receipt
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.dsse import Envelope

PROTOCOL = 1
"""The protocol version that this code speaks."""

PROTOCOL_MINIMUM = 1
"""The oldest protocol version that this code answers with a pull."""

NotNegative = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Status = Literal["committed", "unchanged", "conflict", "rejected", "retry"]


class SignedCommand(Struct, frozen=True):
    """A command as a device signed it, and the values that its commitments stand for."""

    envelope: Envelope
    disclosures: dict[HashHex, Disclosure] = {}


class WireEvent(Struct, frozen=True):
    """An event as it is told: its place in the log, and its payload's exact bytes as text."""

    seq: int
    aggregate_version: int
    type: str
    payload: str
    disclosures: dict[str, Disclosure] = {}


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one command ended, standing alone: a device need not wait for the pull to learn it.

    With status `retry` there is no receipt; `after` is the number of seconds to wait. `current`
    and `events_since` show what this actor may see now.
    """

    command_id: str
    status: Status
    code: str | None = None
    details: dict[str, Any] = {}
    version: int | None = None
    events: tuple[WireEvent, ...] = ()
    receipt: Receipt | None = None
    current: dict[str, Any] | None = None
    events_since: tuple[WireEvent, ...] = ()
    replayed: bool = False
    blocked_by: str | None = None
    after: float | None = None


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The latest state of one object that this worker may see, or that it left his sight and why.

    `task` is the kernel's state, so that a device applies its own pending commands to it;
    `disclosures` open what the worker may see of it.
    """

    kind: Literal["task"]
    id: str
    seq: int
    task: Task | None = None
    disclosures: dict[str, Disclosure] = {}
    removed: str | None = None


class Pull(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One page of changes, or the code why there is none.

    The page covers everything after `since` up to `cursor`; pages must join. A refusal may carry
    the receipt, with its event, that orders it (a revocation with or without `wipe`).
    """

    changes: tuple[Change, ...] = ()
    since: str | None = None
    cursor: str | None = None
    more: bool = False
    refused: str | None = None
    receipt: Receipt | None = None
    event: WireEvent | None = None


class DeviceReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a device says of itself with every sync; counts, bytes, and its own clock."""

    build: Annotated[str, Meta(max_length=100)] = ""
    pending: NotNegative = 0
    oldest_pending_at: Instant | None = None
    upload_bytes_left: NotNegative = 0
    disk_free: NotNegative | None = None
    clock: Instant | None = None


class SyncRequest(Struct, frozen=True, kw_only=True):
    """One round trip: commands up, outcomes and changes down.

    `newest_header` is the newest batch header that the device holds. `commands` are decoded one by
    one, so that one that cannot be read holds up no other.
    """

    protocol: int
    newest_header: Envelope | None = None
    cursor: Annotated[str, Meta(max_length=400)] | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 500
    device: DeviceReport = DeviceReport()
    commands: Annotated[tuple[SignedCommand, ...], Meta(max_length=500)] = ()


class ProtocolRange(Struct, frozen=True):
    """The protocol versions that the server answers."""

    minimum: int
    current: int


class Limits(Struct, frozen=True, kw_only=True):
    """What a device must keep to: commands and bytes a request, and the batch number `keep_from`.

    A device deletes no acknowledged item of batch `keep_from` or later.
    """

    commands: int
    request_bytes: int
    upload_bytes: int
    keep_from: int


class KeyNotice(Struct, frozen=True):
    """A log key newer than the device's newest header: the event that added it, and its receipt."""

    event: WireEvent
    receipt: Receipt


class SyncAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a sync: outcomes in the order of the request, and one page of the pull.

    `backoff` is the number of seconds that the server asks the device to wait before the next sync.
    """

    protocol: ProtocolRange
    lineage: str
    server_time: Instant
    limits: Limits
    pull: Pull
    keys: tuple[KeyNotice, ...] = ()
    backoff: float = 0.0
    outcomes: tuple[Outcome, ...] = ()


class CommandAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON API's answer to a decided command; `command_bytes` is what the leaf hashes."""

    outcome: Status
    version: int | None
    events: tuple[WireEvent, ...]
    receipt: Receipt
    command_bytes: str
    disclosures: dict[str, Disclosure] = {}
    code: str | None = None
    task: Any = UNSET
    principal: Any = UNSET


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An RFC 9457 problem; outcome and receipt are there exactly when a decision was recorded."""

    type: str
    code: str
    title: str
    status: int
    detail: str
    outcome: Status | UnsetType = UNSET
    version: int | UnsetType = UNSET
    receipt: Receipt | UnsetType = UNSET
    command_bytes: str | UnsetType = UNSET
    details: Mapping[str, Any] | UnsetType = UNSET
    current: Any = UNSET
    events: tuple[WireEvent, ...] | UnsetType = UNSET
    events_since: tuple[WireEvent, ...] | UnsetType = UNSET
    findings: tuple[Mapping[str, Any], ...] | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    rule: str | UnsetType = UNSET
    path: str | UnsetType = UNSET


class NonceRequest(Struct, frozen=True):
    """A device asks for a challenge."""

    tenant_id: Identifier
    device_id: Identifier


class NonceAnswer(Struct, frozen=True):
    """A nonce in hex, to be signed before `expires_at`, and the server's key id to name."""

    nonce: str
    server_key_id: HashHex
    expires_at: Instant


class SessionAnswer(Struct, frozen=True):
    """A short-lived bearer token for one device."""

    token: str
    expires_at: Instant
    tenant_id: str
    principal_id: str
    device_id: str


class EnrolmentQuery(Struct, frozen=True):
    """A device asks whom a one-time code enrols; `code_hash` is the hash of the code."""

    code_hash: HashHex


class EnrolmentOffer(Struct, frozen=True):
    """Whom the code enrols, and the server's keys, of which the device pins the one it was told."""

    tenant_id: str
    principal_id: str
    lineage: str
    display_name: str | None
    server_keys: dict[HashHex, PublicKeyHex]
    server_time: Instant
