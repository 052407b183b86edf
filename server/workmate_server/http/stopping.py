"""Requests that wait for something to happen do not hold up a server that is told to stop."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiohttp import web

from workmate_server.engine.engine import StoppingError

T = TypeVar("T")

STOPPING = web.AppKey("stopping", asyncio.Event)
"""Where the application keeps whether it was told to stop."""


def watch_for_stop(app: web.Application) -> None:
    """Let the application know when its server stops taking connections."""
    app[STOPPING] = asyncio.Event()
    app.on_shutdown.append(_stop)


async def unless_stopping(request: web.Request, waiting: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns; raises StoppingError once the server is told to stop."""
    waited = asyncio.ensure_future(waiting)
    stopped = asyncio.ensure_future(request.config_dict[STOPPING].wait())
    try:
        await asyncio.wait({waited, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if waited.done():
            return waited.result()
        raise StoppingError
    finally:
        waited.cancel()
        stopped.cancel()


async def _stop(app: web.Application) -> None:
    app[STOPPING].set()
