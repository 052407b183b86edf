"""How a server on loopback goes wrong: each fault answers one request, before or after its work."""

import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web
from msgspec import Struct

from workmate_shared.wire.codec import encode
from workmate_shared.wire.messages import SyncAnswer

Spoil = Callable[[web.BaseRequest, web.Response], Awaitable[web.StreamResponse]]
"""Given a request and the answer of the work (an empty one if it was not done), answers."""

PORTAL = b"<html><body>Welcome to the airport. Accept the terms.</body></html>"


class Fault(Struct, frozen=True):
    """What is answered instead; `works` says whether the server does the work before."""

    spoil: Spoil
    works: bool


def answered_with(make: Callable[[], web.StreamResponse]) -> Fault:
    """Nothing is done; the answer is what `make` makes."""

    async def spoil(_request: web.BaseRequest, _done: web.Response) -> web.StreamResponse:
        return make()

    return Fault(spoil, works=False)


def problem(status: int, code: str, **headers: str) -> web.Response:
    """Return a problem document of our own (RFC 9457)."""
    body = {
        "type": f"urn:workmate:problem:{code}",
        "code": code,
        "title": code,
        "status": status,
        "detail": "as the script says",
    }
    given = {"Content-Type": "application/problem+json", **headers}
    return web.Response(status=status, body=encode(body), headers=given)


def refused(status: int, code: str, **headers: str) -> Fault:
    """The server refuses; underscores in header names stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return answered_with(lambda: problem(status, code, **named))


def page(status: int, body: bytes = PORTAL, kind: str = "text/html", **headers: str) -> Fault:
    """Something on the way answers with a page of its own."""
    given = {"Content-Type": kind} | {k.replace("_", "-"): v for k, v in headers.items()}
    return answered_with(lambda: web.Response(status=status, body=body, headers=given))


def _body_of(done: web.Response) -> bytes:
    assert isinstance(done.body, bytes)
    return done.body


async def _cut(request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return done


async def _truncated(request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
    body = _body_of(done)
    response = web.StreamResponse(headers={"Content-Type": done.content_type})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    return await _cut(request, done)


async def _half(_request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
    body = _body_of(done)
    return web.Response(body=body[: len(body) // 2], content_type=done.content_type)


async def _packed(_request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
    packed = gzip.compress(_body_of(done))
    headers = {"Content-Type": done.content_type, "Content-Encoding": "gzip"}
    return web.Response(body=packed, headers=headers)


LOST_REPLY = Fault(_cut, works=True)
"""The server does the work and the connection breaks before the answer."""
CUT = Fault(_cut, works=False)
"""The connection breaks before the server has done anything."""
TRUNCATED = Fault(_truncated, works=True)
"""The connection breaks in the middle of the answer."""
HALF = Fault(_half, works=True)
"""The answer is only half there, and its length says so too."""
PACKED = Fault(_packed, works=True)
"""The answer comes packed with gzip, which is no fault at all."""
PORTAL_PAGE = page(200)
"""A captive portal answers 200 with a page."""


def forged(change: Callable[[SyncAnswer], SyncAnswer]) -> Fault:
    """The answer to a sync is changed on its way."""

    async def spoil(_request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
        return json_answer(change(msgspec.json.decode(_body_of(done), type=SyncAnswer)))

    return Fault(spoil, works=True)


def json_answer(message: object, status: int = 200) -> web.Response:
    """Return a JSON answer."""
    return web.Response(status=status, body=encode(message), content_type="application/json")


@asynccontextmanager
async def serving(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """Serve every request with one handler on loopback; yields the address."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
