"""The personal values and positions that commands commit to, and what each command needs of them.

Text that names or describes people lies in `personal`, any fix in `position`; nothing of either
stands in signed bytes. Positions are integers of 1e-7 degree (WGS 84), accuracy is in metres.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from workmate_shared.kernel.ids import Identifier
from workmate_shared.kernel.instants import Instant, check_instant
from workmate_shared.tasks.policy import Decimals, ShortText, Text

Latitude = Annotated[int, Meta(ge=-900_000_000, le=900_000_000)]
Longitude = Annotated[int, Meta(ge=-1_800_000_000, le=1_800_000_000)]
Reason = Annotated[str, Meta(min_length=1, max_length=4000, pattern=r"\S")]
MapplsPin = Annotated[str, Meta(pattern=r"^[A-Z0-9]{6}$(?!\n)")]

FixSource = Literal["gps", "network", "manual", "exif", "mock", "none"]


class _Value(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class TaskPersonal(_Value, frozen=True, kw_only=True):
    """Client, site and instructions of a task; null takes a value away."""

    client: ShortText | None = None
    site_name: ShortText | None = None
    address: ShortText | None = None
    instructions: Text | None = None


class OverridePersonal(_Value, frozen=True, kw_only=True):
    """Why a supervisor acts for somebody."""

    override_reason: Reason | None = None


class ReasonPersonal(OverridePersonal, frozen=True, kw_only=True):
    """Why."""

    reason: Reason


class SelectionPersonal(_Value, frozen=True, kw_only=True):
    """Why this worker."""

    selection_reason: Reason


class NotePersonal(_Value, frozen=True, kw_only=True):
    """What was noticed."""

    note: Text


class ManifestPersonal(_Value, frozen=True, kw_only=True):
    """The answers, the names of signers and the notes of one manifest.

    `answers` maps checklist item ids to yes/no or text (numbers as decimal strings, dates as
    `YYYY-MM-DD`); `names` maps signature and consent item ids to the name given.
    """

    answers: dict[Identifier, bool | Text] = {}
    names: dict[Identifier, ShortText] = {}
    notes: Text | None = None


class SitePosition(_Value, frozen=True, kw_only=True):
    """Where the job is: coordinates, a Mappls Pin, or both. A pin is opaque text."""

    lat_e7: Latitude | None = None
    lon_e7: Longitude | None = None
    mappls_pin: MapplsPin | None = None

    def __post_init__(self) -> None:
        """Refuse half a coordinate and an empty position."""
        if (self.lat_e7 is None) != (self.lon_e7 is None):
            raise ValueError("lat_e7 and lon_e7 come together")
        if self.lat_e7 is None and self.mappls_pin is None:
            raise ValueError("a position needs coordinates or a pin")


class Fix(_Value, frozen=True, kw_only=True):
    """Where somebody or something was, how well that is known, and from what."""

    lat_e7: Latitude
    lon_e7: Longitude
    accuracy_m: Annotated[int, Meta(ge=0, le=10**7)] | None = None
    source: FixSource
    at: Instant | None = None

    def __post_init__(self) -> None:
        """Refuse an instant that no calendar has."""
        check_instant(self.at)


Fixes = dict[Identifier, Fix]
"""The fixes of a manifest, by item id."""

PERSONAL_KINDS: dict[str, Any] = {
    "create_task": TaskPersonal,
    "amend": TaskPersonal,
    "assign": SelectionPersonal,
    "accept": OverridePersonal,
    "start_travel": OverridePersonal,
    "arrive": OverridePersonal,
    "submit_proof": OverridePersonal,
    "decline": ReasonPersonal,
    "release": ReasonPersonal,
    "cancel": ReasonPersonal,
    "reject_proof": ReasonPersonal,
    "dismiss_handover": ReasonPersonal,
    "observe": NotePersonal,
}
"""The type of each command's personal value; a command that is not here has none."""

POSITION_KINDS: dict[str, Any] = {
    "create_task": SitePosition,
    "amend": SitePosition,
    "arrive": Fix,
    "observe": Fix | tuple[Fix, ...],
}
"""The type of each command's position; a command that is not here has none."""


def read_value(kind: Any, value: bytes | str) -> Any:
    """Return an opened value as its struct; raises msgspec.ValidationError where it breaks a rule."""
    return msgspec.json.decode(value, type=kind)


def merge_personal(values: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the personal values of a task: later ones replace earlier ones, null takes away."""
    merged: dict[str, Any] = {}
    for value in values:
        merged.update(value)
    return {name: text for name, text in merged.items() if text is not None}


__all__ = [
    "PERSONAL_KINDS",
    "POSITION_KINDS",
    "Decimals",
    "Fix",
    "Fixes",
    "ManifestPersonal",
    "MapplsPin",
    "NotePersonal",
    "OverridePersonal",
    "ReasonPersonal",
    "SelectionPersonal",
    "SitePosition",
    "TaskPersonal",
    "merge_personal",
    "read_value",
]
