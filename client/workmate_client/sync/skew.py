"""How far this device's clock is off, as far as a round trip can tell.

The server read its clock at some moment between sending and receiving, so what is measured is an
interval. Only the part that no moment of the round trip explains is certain: a slow link is no
wrong clock (compare RFC 5905, section 8, with the interval in the place of its filter).
"""

from datetime import datetime

from msgspec import Struct


class SkewEstimate(Struct, frozen=True):
    """How many seconds this clock is ahead of the server's: at least, and at most."""

    least_seconds: float
    most_seconds: float

    @property
    def certain_seconds(self) -> float:
        """The part that the round trip does not explain; negative where this clock is behind."""
        if self.least_seconds > 0:
            return self.least_seconds
        return min(self.most_seconds, 0.0)

    def is_doubtful(self, limit_seconds: float) -> bool:
        """Whether the clock is certainly further off than the limit."""
        return abs(self.certain_seconds) > limit_seconds


def estimate_skew(
    received_at: datetime, round_trip_seconds: float, server_time: datetime
) -> SkewEstimate:
    """Compare this clock's time at the answer's arrival with the server's time in the answer.

    `round_trip_seconds` is measured with the monotonic clock, so that a clock that is set in the
    middle of a sync spoils nothing.
    """
    most = (received_at - server_time).total_seconds()
    return SkewEstimate(most - round_trip_seconds, most)
