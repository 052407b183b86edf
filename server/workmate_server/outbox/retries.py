"""When a delivery that failed is tried again: exponential backoff with full jitter.

The wait is drawn between nothing and a ceiling that doubles with each attempt, so that receivers
which come back are not met by everybody at once. A receiver's `Retry-After` (RFC 9110) is a lower
bound, up to the last ceiling.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from workmate_server.config import Settings
from workmate_server.ports import Entropy

_RANDOM_BYTES = 4
_RANDOM_RANGE = 1 << (8 * _RANDOM_BYTES)


def backoff_seconds(
    attempts: int, retry_after_seconds: float | None, settings: Settings, entropy: Entropy
) -> float:
    """Return how many seconds to wait after the attempt number `attempts` (from 1)."""
    last = settings.webhook_backoff_max_seconds
    doublings = min(max(attempts - 1, 0), 64)
    ceiling = min(settings.webhook_backoff_base_seconds * 2.0**doublings, last)
    drawn = int.from_bytes(entropy.token_bytes(_RANDOM_BYTES)) / _RANDOM_RANGE * ceiling
    return max(drawn, min(retry_after_seconds or 0.0, last))


def read_retry_after(text: str | None, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` header asks for; None where it says nothing."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - now).total_seconds(), 0.0)
