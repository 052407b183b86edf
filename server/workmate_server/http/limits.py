"""How often one network address may try: sliding windows in memory.

Each server process counts by itself, and forgets when it ends; what is bounded is load and guessing,
not a quota. The number of addresses remembered is bounded as well.
"""

from collections import OrderedDict, deque
from math import ceil

from aiohttp import web

from workmate_server.config import Settings
from workmate_server.http.problems import ProblemError
from workmate_server.ports import Clock


class SlidingWindow:
    """Counts attempts by address over the last `window_seconds`."""

    def __init__(
        self, clock: Clock, attempts_max: int, window_seconds: float, addresses_max: int
    ) -> None:
        self._clock = clock
        self._attempts_max = attempts_max
        self._window_seconds = window_seconds
        self._addresses_max = addresses_max
        self._attempts: OrderedDict[str, deque[float]] = OrderedDict()

    def admit(self, address: str) -> float:
        """Count an attempt; return 0, or the seconds until the next one will be admitted.

        An attempt that is not admitted is not counted.
        """
        now = self._clock.monotonic()
        attempts = self._attempts.setdefault(address, deque())
        self._attempts.move_to_end(address)
        while attempts and attempts[0] <= now - self._window_seconds:
            attempts.popleft()
        if len(attempts) >= self._attempts_max:
            return attempts[0] + self._window_seconds - now
        attempts.append(now)
        while len(self._attempts) > self._addresses_max:
            self._attempts.popitem(last=False)
        return 0.0


class UseNotes:
    """Remembers which credentials were noted lately, so that not every request writes."""

    def __init__(self, clock: Clock, interval_seconds: float, credentials_max: int) -> None:
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._credentials_max = credentials_max
        self._noted: OrderedDict[tuple[str, str], float] = OrderedDict()

    def due(self, tenant_id: str, credential_id: str) -> bool:
        """Whether a use is to be noted now; if so, the next one is due an interval later."""
        now = self._clock.monotonic()
        key = (tenant_id, credential_id)
        noted = self._noted.get(key)
        if noted is not None and now - noted < self._interval_seconds:
            return False
        self._noted[key] = now
        self._noted.move_to_end(key)
        while len(self._noted) > self._credentials_max:
            self._noted.popitem(last=False)
        return True


class Guards:
    """What one server process counts: enrolment, device sessions, unknown tokens, uses."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        window, most = settings.attempts_window_seconds, settings.addresses_counted_max
        self.enrolment = SlidingWindow(clock, settings.enrolment_attempts_max, window, most)
        self.sessions = SlidingWindow(clock, settings.session_attempts_max, window, most)
        self.unknown_tokens = SlidingWindow(clock, settings.token_failures_max, window, most)
        self.uses = UseNotes(clock, settings.token_use_interval_seconds, most)


GUARDS = web.AppKey("guards", Guards)
"""Where the application keeps its counts."""


def admit(request: web.Request, window: SlidingWindow) -> None:
    """Count a request's address; raises ProblemError `too_many` with the time to wait."""
    wait_seconds = window.admit(request.remote or "")
    if wait_seconds > 0:
        raise ProblemError("too_many", headers={"Retry-After": str(ceil(wait_seconds))})
