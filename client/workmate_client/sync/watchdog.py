"""Notice a sync that looks alive and gets nothing done: pending work, answers, and no outcome.

Times are readings of the monotonic clock in seconds, so that a clock that is set raises no alarm.
"""

from msgspec import Struct


class Alarm(Struct, frozen=True, kw_only=True):
    """The evidence: for how long, how many commands wait, when the server last answered."""

    quiet_seconds: float
    pending: int
    since_answer_seconds: float
    code: str | None


class Watchdog:
    """Told of every answer and of every failure; raises the alarm after `limit_seconds`."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._quiet_since: float | None = None
        self._answered_at: float | None = None
        self._pending = 0
        self._code: str | None = None

    def answered(self, now: float, pending: int, outcomes: int, code: str | None) -> None:
        """Note an answer of the server: what is pending after it, and how many outcomes it brought.

        `code` is why the oldest pending command waits.
        """
        gap = self._answered_at is None or now - self._answered_at > self._limit_seconds
        self._answered_at, self._pending, self._code = now, pending, code
        if outcomes or not pending:
            self._quiet_since = None
        elif self._quiet_since is None or gap:
            self._quiet_since = now

    def alarm(self, now: float) -> Alarm | None:
        """Return the alarm if there is one now."""
        if self._quiet_since is None or self._answered_at is None:
            return None
        quiet, silence = now - self._quiet_since, now - self._answered_at
        if quiet < self._limit_seconds or silence > self._limit_seconds:
            return None
        return Alarm(
            quiet_seconds=quiet,
            pending=self._pending,
            since_answer_seconds=silence,
            code=self._code,
        )
