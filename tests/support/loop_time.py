"""Moves an event loop's clock, so that timeouts are tested without waiting for them."""

import asyncio


class LoopTime:
    """The running loop's time: the real one, and whatever a test has added to it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._added = 0.0
        real = loop.time
        loop.time = lambda: real() + self._added  # type: ignore[method-assign]

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once; what is due by then runs when the loop is next reached."""
        self._added += seconds
        asyncio.get_running_loop().call_soon(lambda: None)
