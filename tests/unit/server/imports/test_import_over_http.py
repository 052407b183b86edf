"""Jobs go over HTTP until they are answered by a Workmate server, and have one effect."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from workmate_server.config import Settings
from workmate_server.imports.convert import Job
from workmate_server.imports.handing_in import Answer
from workmate_server.imports.over_http import HttpOffice, ServerUrlError, office_over_http
from workmate_server.telemetry.system import SystemClock

Reply = tuple[int, Any, dict[str, str]]

CREATED: Reply = (201, {"outcome": "committed"}, {})
REPLAYED: Reply = (201, {"outcome": "committed"}, {"Idempotency-Replayed": "true"})
UNCHANGED: Reply = (200, {"outcome": "unchanged"}, {})
PORTAL_PAGE: Reply = (200, "<html>Please sign in</html>", {})
BUSY: Reply = (503, {"code": "overloaded", "detail": "busy"}, {"Retry-After": "7"})


class HastyClock(SystemClock):
    """The host's clock, for which nobody waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, delay_seconds: float) -> None:
        self.waits.append(delay_seconds)


class FarSide:
    """A server that gives the replies of a list, one after the other, and keeps what came."""

    def __init__(self, *replies: Reply | None) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[str, dict[str, str], Any]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.path, dict(request.headers), await request.json()))
        reply = self.replies.pop(0)
        if reply is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        status, body, headers = reply
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers=headers)


@asynccontextmanager
async def office_of(
    far_side: FarSide, clock: SystemClock, **limits: Any
) -> AsyncIterator[HttpOffice]:
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]] = far_side.answer
    application = web.Application()
    application.router.add_route("*", "/base/v1/tasks", handler)
    settings = replace(Settings(), **limits)
    async with TestServer(application) as server:
        url = str(server.make_url("/base"))
        async with office_over_http(url, "wmt_secret", settings, clock) as office:
            yield office


async def hand_in(far_side: FarSide, clock: SystemClock | None = None, **limits: Any) -> Answer:
    async with office_of(far_side, clock or HastyClock(), **limits) as office:
        [answer] = await office.hand_in([Job("src", "1", {"external_id": "1"})])
    return answer


async def test_a_job_goes_out_with_the_token_and_without_a_key_of_its_own() -> None:
    far_side = FarSide(CREATED)
    assert (await hand_in(far_side)).status == "created"
    [(path, headers, body)] = far_side.requests
    assert (path, body) == ("/base/v1/tasks", {"external_id": "1"})
    assert headers["Authorization"] == "Bearer wmt_secret"
    assert "Idempotency-Key" not in headers


@pytest.mark.parametrize("reply", [UNCHANGED, REPLAYED])
async def test_what_was_there_before_is_unchanged(reply: Reply) -> None:
    assert (await hand_in(FarSide(reply))).status == "unchanged"


async def test_a_busy_server_is_asked_again_after_the_time_that_it_names() -> None:
    clock, far_side = HastyClock(), FarSide(BUSY, BUSY, CREATED)
    assert (await hand_in(far_side, clock)).status == "created"
    assert clock.waits == [0.0, 7.0, 7.0]
    assert len({json.dumps(body) for _, _, body in far_side.requests}) == 1


async def test_a_cut_connection_is_an_unknown_outcome_and_the_same_goes_out_again() -> None:
    far_side = FarSide(None, REPLAYED)
    assert (await hand_in(far_side)).status == "unchanged"
    assert far_side.requests[0][2] == far_side.requests[1][2]


async def test_a_page_that_is_no_answer_of_a_server_counts_for_nothing() -> None:
    answer = await hand_in(FarSide(PORTAL_PAGE, PORTAL_PAGE), import_attempts_max=2)
    assert (answer.status, answer.rule) == ("not_sent", "not_sent")


async def test_an_answer_that_comes_in_pieces_is_read_to_its_end() -> None:
    padded: Reply = (201, {"padding": "x" * 300_000, "outcome": "committed"}, {})
    assert (await hand_in(FarSide(padded))).status == "created"


async def test_a_redirect_is_not_followed() -> None:
    moved: Reply = (302, "", {"Location": "http://192.0.2.1/"})
    far_side = FarSide(moved)
    assert (await hand_in(far_side, import_attempts_max=1)).status == "not_sent"
    assert len(far_side.requests) == 1


async def test_after_the_last_attempt_nothing_more_is_sent() -> None:
    far_side = FarSide(BUSY, BUSY, CREATED)
    async with office_of(far_side, HastyClock(), import_attempts_max=2) as office:
        jobs = [Job("src", name, {"external_id": name}) for name in ("1", "2")]
        first = await office.hand_in(jobs[:1])
        second = await office.hand_in(jobs[1:])
    assert [answer.status for answer in (*first, *second)] == ["not_sent", "not_sent"]
    assert len(far_side.requests) == 2


@pytest.mark.parametrize(
    ("status", "code"), [(401, "unauthenticated"), (403, "creation_not_allowed")]
)
async def test_a_refusal_that_every_job_would_get_is_not_asked_for_again(
    status: int, code: str
) -> None:
    far_side = FarSide((status, {"code": code, "detail": "no"}, {}))
    answer = await hand_in(far_side)
    assert (answer.status, answer.rule, len(far_side.requests)) == ("not_sent", code, 1)


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ((400, {"code": "invalid_command", "detail": "d"}, {}), "invalid_command"),
        ((409, {"code": "external_id_conflict", "detail": "d"}, {}), "external_id_conflict"),
        ((422, {"code": "idempotency_key_reused", "detail": "d"}, {}), "external_id_conflict"),
        ((413, "<html>nginx</html>", {}), "too_large"),
        ((500, {"code": "internal", "detail": "d"}, {}), "internal"),
    ],
)
async def test_a_refusal_of_one_job_is_told_and_ends_nothing(reply: Reply, rule: str) -> None:
    answer = await hand_in(FarSide(reply))
    assert (answer.status, answer.rule) == ("refused", rule)


@pytest.mark.parametrize(
    "url",
    ["office.example", "ftp://127.0.0.1", "http://office.example", "http://10.0.0.1", "https://"],
)
async def test_a_url_over_which_no_token_may_go_is_refused(url: str) -> None:
    with pytest.raises(ServerUrlError):
        async with office_over_http(url, "t", Settings(), HastyClock()):
            pass


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"])
async def test_plain_http_stays_on_this_machine(url: str) -> None:
    limits = replace(Settings(), import_attempts_max=1)
    async with office_over_http(url, "t", limits, HastyClock()) as office:
        [answer] = await office.hand_in([Job("src", "1", {"external_id": "1"})])
    assert answer.status == "not_sent"
