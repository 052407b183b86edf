"""Tell who waits that something was committed: at once in this process, by polling otherwise.

A wake-up is a hint. What was committed is read from the database; a missed hint costs one poll.
"""

import asyncio
from collections.abc import Awaitable, Callable

from workmate_server.ports import Clock


class ChangeBoard:
    """The newest committed seq of each tenant, and those who wait for a newer one."""

    def __init__(
        self, clock: Clock, poll: Callable[[str], Awaitable[int]], poll_seconds: float
    ) -> None:
        self._clock = clock
        self._poll = poll
        self._poll_seconds = poll_seconds
        self._newest: dict[str, int] = {}
        self._polled_at: dict[str, float] = {}
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def post(self, tenant_id: str, seq: int) -> None:
        """Say that `seq` is committed; wakes everybody who waits for the tenant."""
        if seq > self._newest.get(tenant_id, -1):
            self._newest[tenant_id] = seq
            for event in self._waiting.get(tenant_id, ()):
                event.set()

    async def wait(self, tenant_id: str, after_seq: int, timeout_seconds: float) -> int:
        """Return the newest seq as soon as it is above `after_seq`, or when the time is over."""
        deadline = self._clock.monotonic() + timeout_seconds
        event = asyncio.Event()
        waiting = self._waiting.setdefault(tenant_id, set())
        waiting.add(event)
        try:
            while True:
                await self._look(tenant_id)
                newest = self._newest.get(tenant_id, 0)
                left = deadline - self._clock.monotonic()
                if newest > after_seq or left <= 0:
                    return newest
                await wait_until(event, self._clock, min(left, self._poll_seconds))
                event.clear()
        finally:
            waiting.discard(event)

    async def _look(self, tenant_id: str) -> None:
        # One look serves everybody who waits for the tenant, however many they are.
        now = self._clock.monotonic()
        if now - self._polled_at.get(tenant_id, float("-inf")) >= self._poll_seconds:
            self._polled_at[tenant_id] = now
            self.post(tenant_id, await self._poll(tenant_id))


async def wait_until(event: asyncio.Event, clock: Clock, seconds: float) -> None:
    """Return when the event is set, or after so many seconds."""
    woken = asyncio.ensure_future(event.wait())
    slept = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({woken, slept}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (woken, slept):
            task.cancel()
