"""Give a transfer up when nothing moves, however long it takes as long as something does."""

import asyncio
from types import TracebackType
from typing import Self


class StallGuard:
    """An asynchronous context that raises TimeoutError after `seconds` without progress."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout: asyncio.Timeout | None = None

    def progressed(self) -> None:
        """Say that something moved: the time starts again. Does nothing once the context is left."""
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)

    async def __aenter__(self) -> Self:
        self._timeout = await asyncio.timeout(self._seconds).__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            await timeout.__aexit__(kind, error, trace)
