"""The one way in which the sync engine does blocking work: database, files, hashing, large JSON."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class RunBlocking(Protocol):
    """Runs a blocking function without blocking the event loop, and returns what it returns."""

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it, and raise what it raises."""
        ...


async def run_in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run in a worker thread, as the `RunBlocking` of every program that runs for real."""
    return await asyncio.to_thread(function, *args, **kwargs)
