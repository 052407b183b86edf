"""Hand jobs in to a server over its API, with an access token of an integration.

Each job is one `POST /v1/tasks` without a key of its own, so that source and external id are the
key: a repeat after a lost answer has no second effect. What a busy server refuses is tried again, and
so is an answer that no Workmate server gave; the first refusal that every further job would get too
ends the import. The token goes over TLS or stays on this machine, and follows no redirect.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from msgspec import Struct

from workmate_server.config import Settings
from workmate_server.imports.convert import Job
from workmate_server.imports.handing_in import CONFLICT, NOT_SENT, Answer
from workmate_server.ports import Clock
from workmate_shared.wire.codec import encode

T = TypeVar("T", bound=Struct)

_BUSY = frozenset({408, 425, 429, 502, 503, 504})
_NOT_LET_IN = frozenset({401, 403, 404})
_DONE = frozenset({"committed", "unchanged"})
_TOO_LARGE = 413
_CREATED = 201
_OK = 200
_JSON = {"Content-Type": "application/json"}
_WAIT_SECONDS_MAX = 60.0
_ANSWER_BYTES_MAX = 1024 * 1024


class ServerUrlError(Exception):
    """A server's URL that cannot be used, or over which no token may be sent."""


class _Problem(Struct, frozen=True):
    code: str = ""
    detail: str = ""


class _Accepted(Struct, frozen=True):
    outcome: str = ""


class HttpOffice:
    """A server behind its API; see `office_over_http`."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings, clock: Clock) -> None:
        self._session = session
        self._settings = settings
        self._clock = clock
        self._stopped: Answer | None = None

    @property
    def jobs_at_once(self) -> int:
        """How many jobs are under way at once."""
        return self._settings.import_in_flight_max

    async def hand_in(self, jobs: Sequence[Job]) -> list[Answer]:
        """Return what became of each job; see `Office.hand_in`."""
        return list(await asyncio.gather(*(self._hand_in(job) for job in jobs)))

    async def _hand_in(self, job: Job) -> Answer:
        body = encode(job.body)
        answer, wait_seconds = Answer("not_sent", NOT_SENT), 0.0
        for attempt in range(self._settings.import_attempts_max):
            await self._clock.sleep(wait_seconds)
            if self._stopped is not None:
                return Answer("not_sent", NOT_SENT, "an earlier job could not be sent")
            try:
                answer, asked_seconds = await self._post(body)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                detail = str(error) or type(error).__name__
                answer, asked_seconds = Answer("not_sent", NOT_SENT, detail), None
            if answer.rule != NOT_SENT:
                break
            wait_seconds = _wait(attempt, asked_seconds)
        if answer.status == "not_sent":
            self._stopped = answer
        return answer

    async def _post(self, body: bytes) -> tuple[Answer, float | None]:
        """Post one job; return what became of it, and how long the server asks to wait."""
        async with self._session.post(
            "v1/tasks", data=body, headers=_JSON, allow_redirects=False
        ) as response:
            content = await _read_some(response)
            replayed = response.headers.get("Idempotency-Replayed") == "true"
            asked = response.headers.get("Retry-After", "")
        wait_seconds = float(asked) if asked.isascii() and asked.isdigit() else None
        return _judge(response.status, content, replayed=replayed), wait_seconds


async def _read_some(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer; what is too long to be one of ours is cut, and so is none."""
    content = b""
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _ANSWER_BYTES_MAX:
            break
    return content


def _judge(status: int, content: bytes, *, replayed: bool) -> Answer:
    """Return what an answer means; one that no Workmate server gave means nothing."""
    if status in (_OK, _CREATED) and _read(content, _Accepted).outcome in _DONE:
        return Answer("created" if status == _CREATED and not replayed else "unchanged")
    problem = _read(content, _Problem)
    detail = problem.detail or f"the answer {status} is not one of a Workmate server"
    if status == _TOO_LARGE:
        return Answer("refused", "too_large", detail)
    if status in _BUSY or not problem.code:
        return Answer("not_sent", NOT_SENT, detail)
    if status in _NOT_LET_IN:
        return Answer("not_sent", problem.code, detail)
    code = CONFLICT if problem.code == "idempotency_key_reused" else problem.code
    return Answer("refused", code, detail)


@asynccontextmanager
async def office_over_http(
    url: str, token: str, settings: Settings, clock: Clock
) -> AsyncIterator[HttpOffice]:
    """Open the connections to a server. Raises ServerUrlError."""
    base = _checked(url)
    async with aiohttp.ClientSession(
        base_url=base,
        headers={"Authorization": f"Bearer {token}"},
        timeout=aiohttp.ClientTimeout(total=settings.import_timeout_seconds),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield HttpOffice(session, settings, clock)


def _checked(url: str) -> str:
    """Return the base URL of a server, ending in a slash."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ServerUrlError(f"{url} is no URL of a server; it begins with https://")
    if parts.scheme == "http" and not _is_this_machine(parts.hostname):
        raise ServerUrlError(f"{url}: a token goes over https only, except on this machine")
    return url.rstrip("/") + "/"


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(content: bytes, kind: type[T]) -> T:
    """Return the answer as a struct, which is empty if it is none."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return kind()


def _wait(attempt: int, asked_seconds: float | None) -> float:
    """Return how long to wait after an attempt (from 0): what was asked, else doubling."""
    wait_seconds = 0.5 * 2**attempt if asked_seconds is None else asked_seconds
    return min(wait_seconds, _WAIT_SECONDS_MAX)
