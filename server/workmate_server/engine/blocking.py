"""The one port through which blocking work leaves the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class RunBlocking(Protocol):
    """Runs a function that blocks, and gives its result or its exception."""

    def __call__(
        self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]:
        """Return an awaitable of `function(*args, **kwargs)`."""
        ...


class WorkerThreads:
    """A small pool of worker threads behind the port."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="workmate")

    async def __call__(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function in a worker thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Let running work end and take no more."""
        self._pool.shutdown(wait=True)
