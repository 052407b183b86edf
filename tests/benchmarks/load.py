"""Send sync requests, so many at once, and take the time."""

import asyncio
from collections import deque
from contextlib import AbstractAsyncContextManager
from time import perf_counter

import aiohttp
from msgspec import Struct

from benchmarks.signed_work import Device

_HEADERS = {
    "Content-Type": "application/json",
    "Content-Encoding": "gzip",
    "Accept-Encoding": "gzip",
}


class Mode(Struct, frozen=True):
    """How a round is sent: commands in a request, requests in flight, requests in all."""

    commands: int
    in_flight: int
    requests: int


class Sent(Struct, frozen=True):
    """A round that was sent: how long it took, each request's latency, and the bodies as sent."""

    commands: int
    seconds: float
    latencies: list[float]
    bodies: list[bytes]

    @property
    def per_second(self) -> float:
        """Commands answered in a second."""
        return self.commands / self.seconds


def open_client() -> AbstractAsyncContextManager[aiohttp.ClientSession]:
    """Return a client that keeps a connection open for every request in flight."""
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


async def send(client: aiohttp.ClientSession, url: str, devices: deque[Device], mode: Mode) -> Sent:
    """Let devices sync, the one that waits longest first; each has one request in flight at most."""
    latencies, bodies = list[float](), list[bytes]()
    begun = perf_counter()

    async def keep_sending() -> None:
        while len(bodies) < mode.requests:
            device = devices.popleft()
            body = device.request(mode.commands)
            bodies.append(body)
            asked = perf_counter()
            answer = await _post(client, url, body, device.token)
            latencies.append(perf_counter() - asked)
            device.hear(answer, mode.commands)
            devices.append(device)

    await asyncio.gather(*(keep_sending() for _ in range(mode.in_flight)))
    return Sent(mode.commands * mode.requests, perf_counter() - begun, latencies, bodies)


async def echo(client: aiohttp.ClientSession, url: str, sent: Sent, in_flight: int) -> Sent:
    """Send the bodies of a round to a server that only gives them back."""
    waiting, latencies = deque(sent.bodies), list[float]()
    begun = perf_counter()

    async def keep_sending() -> None:
        while waiting:
            body = waiting.popleft()
            asked = perf_counter()
            await _post(client, url, body, "nobody")
            latencies.append(perf_counter() - asked)

    await asyncio.gather(*(keep_sending() for _ in range(in_flight)))
    return Sent(sent.commands, perf_counter() - begun, latencies, [])


async def _post(client: aiohttp.ClientSession, url: str, body: bytes, token: str) -> bytes:
    headers = {**_HEADERS, "Authorization": f"Bearer {token}"}
    async with client.post(f"{url}/v1/sync", data=body, headers=headers) as response:
        answer = await response.read()
        assert response.status == 200, answer
        return answer
