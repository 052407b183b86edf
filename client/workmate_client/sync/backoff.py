"""How long to wait after something went wrong, and what each failure means for the run.

Waiting times are drawn with full jitter under a bound that doubles; contact resets them. A failure
of the link or of the whole server stops a run at once; one of a single item never does.
"""

from enum import Enum

from msgspec import Struct

from workmate_client.config import Settings
from workmate_client.sync.failures import (
    CutError,
    RefusedError,
    StalledError,
    TransportError,
)

DELAY_MIN_SECONDS = 0.05
"""Not even the luckiest draw sends the same thing again in the same instant."""

_DOUBLINGS_MAX = 64
"""Beyond this many doublings every bound has been reached; larger powers only cost time."""


def backoff_bound_seconds(failures: int, settings: Settings) -> float:
    """Return the bound under which the wait after that many failures in a row is drawn."""
    doublings = min(max(failures - 1, 0), _DOUBLINGS_MAX)
    return min(settings.backoff_first_seconds * 2.0**doublings, settings.backoff_limit_seconds)


def delay_seconds(
    failures: int, fraction: float, settings: Settings, at_least_seconds: float | None = None
) -> float:
    """Return how long to wait after that many failures in a row.

    `fraction` is a fresh random number from 0 to 1. `at_least_seconds` is what the server asked for
    (RFC 9110, section 10.2.3), believed up to a limit; the jitter then comes on top of it, so that
    devices told the same do not come back at once.
    """
    asked = min(max(at_least_seconds or 0.0, 0.0), settings.retry_after_limit_seconds)
    return asked + max(DELAY_MIN_SECONDS, fraction * backoff_bound_seconds(failures, settings))


def longest_delay_seconds(settings: Settings) -> float:
    """Return the longest wait that `delay_seconds` can give; a later time is a clock that jumped."""
    return settings.retry_after_limit_seconds + settings.backoff_limit_seconds


class Link(Struct, frozen=True):
    """The way to the server: failures in a row, why, and before when nothing is to be tried.

    `not_before` is seconds since the epoch by this clock, 0 for now.
    """

    failures: int = 0
    code: str | None = None
    not_before: float = 0.0

    def failed(
        self, error: TransportError, now: float, fraction: float, settings: Settings
    ) -> "Link":
        """Return the link after one more failure."""
        failures = self.failures + 1
        wait = delay_seconds(failures, fraction, settings, error.retry_after_seconds)
        return Link(failures, error.code, now + wait)


LINK_UP = Link()
"""A link over which the server has just answered."""


def asked_to_wait(seconds: float, now: float, settings: Settings) -> Link:
    """Return the link after an answer that asks for a pause of `seconds` before the next sync."""
    if seconds <= 0:
        return LINK_UP
    return Link(0, "server_busy", now + min(seconds, settings.retry_after_limit_seconds))


class Reaction(Enum):
    """What a failure means. Whatever it is, nothing that was sent counts as answered."""

    RENEW = "open a new session and try again"
    SHRINK = "send less at a time and try again"
    ITEM = "this item waits, others go on"
    STOP = "the run ends; nothing more is tried before the link's time"


_UNAUTHENTICATED = 401
_TOO_LARGE = 413
_TOO_MANY = 429
_SERVER_FAULT = 500


def reaction_to(error: TransportError) -> Reaction:
    """Return what a failed sync request means."""
    if isinstance(error, StalledError | CutError) or error.status == _TOO_LARGE:
        return Reaction.SHRINK
    if isinstance(error, RefusedError) and error.status == _UNAUTHENTICATED:
        return Reaction.RENEW
    return Reaction.STOP


def reaction_to_upload(error: TransportError) -> Reaction:
    """Return what a failed upload request means; refusals by our server concern the one file."""
    if isinstance(error, StalledError | CutError):
        return Reaction.SHRINK
    if not isinstance(error, RefusedError):
        return Reaction.ITEM if error.status == _TOO_LARGE else Reaction.STOP
    if error.status == _UNAUTHENTICATED:
        return Reaction.RENEW
    if error.status == _TOO_MANY or error.status >= _SERVER_FAULT:
        return Reaction.STOP
    return Reaction.ITEM
