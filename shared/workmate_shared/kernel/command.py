"""The part of commands and events that is the same in every lifecycle.

Signed bytes hold public fields and, in `personal` and `position`, only commitments; the values
travel beside them as disclosures.
"""

from typing import Annotated

from msgspec import Meta, Struct

from workmate_shared.kernel.ids import CommandId, Commitment, Identifier
from workmate_shared.kernel.instants import Instant, check_instant, seconds_between
from workmate_shared.kernel.table import Role

COMMAND_SCHEMA = 1
"""The newest schema version of every command."""

CLOCK_TOLERANCE_SECONDS = 300.0
"""How far a device's time may lie outside what the server knows before it is flagged."""

Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class Actor(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who acts: the principal's id, the role claimed, and the device for signed commands."""

    id: Identifier
    role: Role
    device_id: Identifier | None = None


class DeviceReading(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a device knew of order and time when its worker acted.

    `device_seq` counts 1, 2, 3 … over all commands of the device; `monotonic_ms` is milliseconds
    of the boot named by `boot_id`; `last_server_time` is the last server time heard.
    """

    device_seq: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    monotonic_ms: Count
    boot_id: Identifier
    last_server_time: Instant | None = None


class Override(Struct, frozen=True, forbid_unknown_fields=True):
    """A supervisor acts for somebody; the reason lies in the message's personal value."""

    on_behalf_of: Identifier


class Command(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="type",
):
    """What every command carries; subclasses add the command's own fields and its wire name."""

    schema_version: Annotated[int, Meta(ge=1, le=COMMAND_SCHEMA)]
    tenant_id: Identifier
    aggregate_id: Identifier
    actor: Actor
    command_id: CommandId
    lineage: Identifier
    occurred_at: Instant
    expected_version: Count | None = None
    after: CommandId | None = None
    device: DeviceReading | None = None
    override: Override | None = None
    supersedes: CommandId | None = None
    personal: Commitment | None = None
    position: Commitment | None = None

    def __post_init__(self) -> None:
        """Refuse instants that no calendar has."""
        check_instant(self.occurred_at)
        if self.device is not None:
            check_instant(self.device.last_server_time)

    @property
    def name(self) -> str:
        """The wire name, e.g. `start_travel`."""
        return str(self.__struct_config__.tag)

    def commitments(self) -> tuple[str, ...]:
        """Return the commitments whose disclosures must travel with this command."""
        return tuple(c for c in (self.personal, self.position) if c is not None)

    def clock_doubtful(self, now: str) -> bool:
        """Whether the actor's time contradicts the server's `now` or the last time it heard."""
        if seconds_between(now, self.occurred_at) > CLOCK_TOLERANCE_SECONDS:
            return True
        heard = self.device.last_server_time if self.device else None
        return heard is not None and (
            seconds_between(self.occurred_at, heard) > CLOCK_TOLERANCE_SECONDS
        )


class Event(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="type",
):
    """What every event carries: which aggregate moved to which version, by whom, when.

    `occurred_at` is the actor's claim, `recorded_at` the server's own time, `clock_doubtful` says
    that the two cannot both be right.
    """

    schema_version: Annotated[int, Meta(ge=1)]
    event_id: Identifier
    tenant_id: Identifier
    aggregate_id: Identifier
    aggregate_version: Annotated[int, Meta(ge=1)]
    actor: Actor
    command_id: CommandId
    occurred_at: Instant
    recorded_at: Instant
    clock_doubtful: bool = False
    on_behalf_of: Identifier | None = None
    personal: Commitment | None = None
    position: Commitment | None = None

    @property
    def type(self) -> str:
        """The wire name, e.g. `task.accepted`."""
        return str(self.__struct_config__.tag)

    def commitments(self) -> tuple[str, ...]:
        """Return the commitments that this event refers to."""
        return tuple(c for c in (self.personal, self.position) if c is not None)
