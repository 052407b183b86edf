"""A webhook receiver on the loopback, and a server clock that a test can put forward."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from workmate_server.telemetry.system import SystemClock


class Received:
    """One request as it came."""

    def __init__(self, headers: dict[str, str], body: bytes) -> None:
        self.headers = headers
        self.body = body

    @property
    def event(self) -> dict[str, Any]:
        """The body, read as JSON."""
        value: dict[str, Any] = json.loads(self.body)
        return value


Answer = Callable[[Received], Awaitable[web.StreamResponse]]


async def accept(_received: Received) -> web.StreamResponse:
    """Take everything."""
    return web.Response(status=204)


class Receiver:
    """Keeps what was posted to it, in order, and answers as it was told."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answer: Answer = accept
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Keep a request and answer it."""
        received = Received(
            {name.lower(): value for name, value in request.headers.items()}, await request.read()
        )
        self.received.append(received)
        return await self.answer(received)

    def told(self) -> list[tuple[str, str]]:
        """Return aggregate and type of each event received."""
        return [(one.event["subject"], one.event["type"]) for one in self.received]


@asynccontextmanager
async def open_receiver() -> AsyncIterator[Receiver]:
    """Listen on a free port of the loopback."""
    receiver = Receiver()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()


class ForwardClock(SystemClock):
    """The host's clock, put forward by as much as a test says."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        """Return the host's time and what it was put forward by."""
        return super().now() + self.ahead

    def forward(self, seconds: float) -> None:
        """Put the clock forward."""
        self.ahead += timedelta(seconds=seconds)
