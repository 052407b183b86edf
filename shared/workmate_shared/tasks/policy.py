"""The proof policy: what a finished job must show, as pure data.

A policy is declared at creation and known by the hash of its content, so that the same words are
always the same policy. Numbers are decimal strings; no rule needs a float.
"""

import re
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from workmate_shared.kernel.hashing import blake3_hex
from workmate_shared.kernel.ids import Identifier

POLICY_DOMAIN = "workmate.policy.v1"

DECIMAL_PATTERN = r"-?[0-9]{1,18}(\.[0-9]{1,18})?"

Decimals = Annotated[str, Meta(pattern=rf"^{DECIMAL_PATTERN}$(?!\n)")]
"""A decimal number as text, at most 18 digits either side of the point."""

Text = Annotated[str, Meta(max_length=4000)]
ShortText = Annotated[str, Meta(max_length=500)]
DATE_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
DateText = Annotated[str, Meta(pattern=rf"^{DATE_PATTERN}$(?!\n)")]
RetentionClass = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$(?!\n)")]
Signer = Literal["worker", "customer"]


def is_date(text: str) -> bool:
    """Whether the text is a day of the calendar in the form `YYYY-MM-DD` (RFC 3339 full-date)."""
    if re.fullmatch(DATE_PATTERN, text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


class _Item(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    item_id: Identifier
    prompt: ShortText
    required: bool = False


class ConfirmItem(_Item, frozen=True, tag="confirm", kw_only=True):
    """A yes or no; `passes` is the answer that passes where only one does."""

    passes: bool | None = None


class NumberItem(_Item, frozen=True, tag="number", kw_only=True):
    """A reading in `unit`, between `min` and `max` where they are given, both included."""

    unit: ShortText | None = None
    min: Decimals | None = None
    max: Decimals | None = None
    passes: Decimals | None = None

    def __post_init__(self) -> None:
        """Refuse bounds that no number can meet."""
        if self.min is not None and self.max is not None and Decimal(self.min) > Decimal(self.max):
            raise ValueError("min is greater than max")


class ChoiceItem(_Item, frozen=True, tag="choice", kw_only=True):
    """One of `options`."""

    options: Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=100)]
    passes: ShortText | None = None

    def __post_init__(self) -> None:
        """Refuse an answer that passes and cannot be given."""
        if self.passes is not None and self.passes not in self.options:
            raise ValueError("passes is none of the options")


class TextItem(_Item, frozen=True, tag="text", kw_only=True):
    """Free text; a required one is not blank."""

    passes: Text | None = None


class DateItem(_Item, frozen=True, tag="date", kw_only=True):
    """A calendar day without a time, which no zone moves."""

    passes: DateText | None = None

    def __post_init__(self) -> None:
        """Refuse an answer that passes and is no day."""
        if self.passes is not None and not is_date(self.passes):
            raise ValueError("passes is no day of the calendar")


class BarcodeItem(_Item, frozen=True, tag="barcode", kw_only=True):
    """What a scanner or the worker reads off a label."""

    passes: ShortText | None = None


ChecklistItem = ConfirmItem | NumberItem | ChoiceItem | TextItem | DateItem | BarcodeItem


class PhotoSlot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many photos of what; `max_age_seconds` counts from capture to submission."""

    slot: Identifier
    prompt: ShortText
    min: Annotated[int, Meta(ge=0, le=500)] = 1
    max: Annotated[int, Meta(ge=1, le=500)] = 1
    position_required: bool = False
    max_age_seconds: Annotated[int, Meta(ge=1, le=10**9)] | None = None

    def __post_init__(self) -> None:
        """Refuse a slot that can never be right."""
        if self.min > self.max:
            raise ValueError("min is greater than max")


class ConsentText(Struct, frozen=True, forbid_unknown_fields=True):
    """The exact text that is agreed to, and the name of its version."""

    text_version: Identifier
    text: Text


class Retention(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """The retention class of each kind of evidence."""

    photo: RetentionClass = "contract_7y"
    signature: RetentionClass = "contract_7y"
    personal: RetentionClass = "contract_7y"
    position: RetentionClass = "operational_90d"


_USUAL_RETENTION = Retention()


class ProofPolicy(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Checklist, photos, signatures, consent, place, who decides, and how long it is kept."""

    checklist: Annotated[tuple[ChecklistItem, ...], Meta(max_length=500)] = ()
    photos: Annotated[tuple[PhotoSlot, ...], Meta(max_length=100)] = ()
    signature: Annotated[tuple[Signer, ...], Meta(max_length=2)] = ()
    consent: ConsentText | None = None
    geofence_m: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    geofence_enforce: bool = False
    validation: Literal["supervisor", "automatic"] = "supervisor"
    retention: Retention = _USUAL_RETENTION

    def __post_init__(self) -> None:
        """Refuse two items, two slots or two signers under one name."""
        for what, names in (
            ("checklist item", [item.item_id for item in self.checklist]),
            ("photo slot", [slot.slot for slot in self.photos]),
            ("signer", list(self.signature)),
        ):
            if len(names) != len(set(names)):
                raise ValueError(f"two of one {what}")


def policy_version(policy: ProofPolicy) -> str:
    """Return the policy's version: BLAKE3 hex over its JSON with sorted keys, domain-tagged.

    What equals its default is left out, whether or not the author wrote it.
    """
    if policy.retention == _USUAL_RETENTION:
        policy = replace(policy, retention=_USUAL_RETENTION)
    return blake3_hex(POLICY_DOMAIN, msgspec.json.encode(policy, order="sorted"))
