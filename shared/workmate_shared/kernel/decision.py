"""What a decision can be: events, unchanged, conflict, rejection or retry.

The first four are outcomes and are recorded for ever under the command's key. A retry records
nothing: whoever sent the command keeps it and sends the same bytes again.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from workmate_shared.kernel.catalogue import CATALOGUE, Recorded
from workmate_shared.kernel.command import Event

Details = Mapping[str, Any]
"""Public inputs of a rule: ids, versions, states, codes and hashes, never a personal value."""


class Committed(Struct, frozen=True):
    """The command has its effect: these events, in order."""

    events: tuple[Event, ...]

    status = "committed"


class Unchanged(Struct, frozen=True):
    """The effect was already there; only the outcome is written."""

    details: Details = {}

    status = "unchanged"
    code = None


class Conflict(Struct, frozen=True):
    """The world had moved on; the sender must look and choose. Annotations may come with it."""

    code: str
    details: Details = {}
    annotations: tuple[Event, ...] = ()

    status = "conflict"


class Rejection(Struct, frozen=True):
    """A rule forbids it. Annotations may come with it."""

    code: str
    details: Details = {}
    annotations: tuple[Event, ...] = ()

    status = "rejected"


class Retry(Struct, frozen=True):
    """Nothing was decided and nothing recorded; the same bytes may be sent again."""

    code: str
    details: Details = {}
    blocked_by: str | None = None

    status = "retry"


Refused = Conflict | Rejection | Retry
Decision = Committed | Unchanged | Refused


class Refusal(Struct, frozen=True):
    """A failed check before anyone knows whether annotations come with it."""

    code: str
    details: Details = {}
    blocked_by: str | None = None


def refuse(refusal: Refusal, annotations: tuple[Event, ...] = ()) -> Refused:
    """Turn a failed check into the kind of decision that the catalogue gives its code."""
    match CATALOGUE[refusal.code].recorded:
        case Recorded.CONFLICT:
            return Conflict(refusal.code, refusal.details, annotations)
        case Recorded.REJECTED:
            return Rejection(refusal.code, refusal.details, annotations)
        case _:
            return Retry(refusal.code, refusal.details, refusal.blocked_by)
