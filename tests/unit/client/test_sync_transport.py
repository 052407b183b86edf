"""Talking to a real server on loopback: what counts as an answer, and when a transfer is given up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from support.faults import (
    CUT,
    HALF,
    LOST_REPLY,
    PACKED,
    PORTAL_PAGE,
    TRUNCATED,
    Fault,
    page,
    problem,
    refused,
    serving,
)
from support.loop_time import LoopTime
from support.scripted_server import SYNC, UPLOADS, ScriptedServer, scripted
from support.signing_log import SEED, SigningLog
from workmate_client.config import Settings
from workmate_client.sync.failures import (
    CutError,
    InsecureServerError,
    RefusedError,
    StalledError,
    TransportError,
    UnreachableError,
    UnreadableAnswerError,
)
from workmate_client.sync.progress import StallGuard
from workmate_client.sync.transport import HttpTransport, NewUpload, checked_address
from workmate_shared.wire.dsse import keys_by_id, public_key_of
from workmate_shared.wire.messages import PROTOCOL, DeviceReport, SyncRequest
from workmate_shared.wire.session import PURPOSE, Challenge, sign_challenge

TENANT = "tenant-1"
SETTINGS = Settings(answer_limit_bytes=100_000)
REQUEST = SyncRequest(protocol=PROTOCOL, device=DeviceReport(build="x" * 90))
CONTENT = b"the bytes of a photo"


def upload(**fields: Any) -> NewUpload:
    given: dict[str, Any] = {
        "task_id": "t1",
        "hash": "00" * 32,
        "size_bytes": len(CONTENT),
        "file_name": "Foto Tür.jpg",
        "media_type": "image/jpeg",
    }
    return NewUpload(**(given | fields))


@asynccontextmanager
async def talking() -> AsyncIterator[tuple[ScriptedServer, HttpTransport]]:
    """A server that knows one token, and a transport to it."""
    server = ScriptedServer(SigningLog(TENANT), keys_by_id([public_key_of(SEED)]))
    server.tokens.add("good")
    async with scripted(server), HttpTransport(server.url, SETTINGS) as transport:
        yield server, transport


@asynccontextmanager
async def answering(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> AsyncIterator[HttpTransport]:
    async with serving(handler) as url, HttpTransport(url, SETTINGS) as transport:
        yield transport


async def test_a_sync_goes_there_and_back_packed_or_not() -> None:
    large = msgspec.structs.replace(REQUEST, cursor="c" * 400)
    async with talking() as (server, transport):
        server.fail(SYNC, None, PACKED)
        for request in (REQUEST, large, REQUEST):
            answer = await transport.sync("good", request)
            assert answer.lineage == "l1"
        assert server.requests == [REQUEST, large, REQUEST]


async def test_a_session_is_opened_with_a_signed_challenge() -> None:
    challenge = Challenge(
        purpose=PURPOSE,
        server_key_id="ab" * 32,
        tenant_id=TENANT,
        device_id="d1",
        nonce="n",
    )
    async with talking() as (_, transport):
        answer = await transport.open_session(sign_challenge(challenge, SEED))
        assert answer.device_id == "d1"
        await transport.sync(answer.token, REQUEST)


async def test_waiting_for_changes_says_whether_there_were_any() -> None:
    async with talking() as (_, transport):
        assert await transport.wait("good", "a cursor & more", 5.0)
        assert not await transport.wait("good", None, 5.0)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (PORTAL_PAGE, UnreadableAnswerError),
        (page(200, b"{}", "application/json"), UnreadableAnswerError),
        (page(302, Location="https://portal.example/"), UnreadableAnswerError),
        (page(502), UnreadableAnswerError),
        (
            page(200, b"\x1f\x8b", "application/json", Content_Encoding="gzip"),
            UnreadableAnswerError,
        ),
        (page(200, b" " * 100_001, "application/json"), UnreadableAnswerError),
        (HALF, UnreadableAnswerError),
        (TRUNCATED, CutError),
        (LOST_REPLY, CutError),
        (CUT, CutError),
        (refused(503, "overloaded", Retry_After="9"), RefusedError),
    ],
)
async def test_whatever_is_not_a_whole_answer_of_ours_is_an_unknown_outcome(
    fault: Fault, error: type[TransportError]
) -> None:
    async with talking() as (server, transport):
        server.fail(SYNC, fault)
        with pytest.raises(error):
            await transport.sync("good", REQUEST)
        assert (await transport.sync("good", REQUEST)).lineage == "l1"


async def test_a_problem_says_its_code_and_how_long_to_wait() -> None:
    async with talking() as (server, transport):
        server.fail(SYNC, refused(503, "overloaded", Retry_After="9"), page(413, Retry_After="3"))
        with pytest.raises(RefusedError) as caught:
            await transport.sync("good", REQUEST)
        assert (caught.value.code, caught.value.retry_after_seconds) == ("overloaded", 9.0)
        with pytest.raises(UnreadableAnswerError) as proxied:
            await transport.sync("good", REQUEST)
        assert (proxied.value.status, proxied.value.retry_after_seconds) == (413, 3.0)
        with pytest.raises(RefusedError) as unknown:
            await transport.sync("bad", REQUEST)
        assert unknown.value.status == 401


async def test_nobody_at_the_address_is_told_apart_from_a_connection_that_broke() -> None:
    async with talking() as (_, transport):
        pass
    with pytest.raises(UnreachableError):
        await transport.sync("good", REQUEST)
    await transport.close()


async def test_a_server_that_takes_a_request_and_never_answers_is_given_up() -> None:
    async with talking() as (server, transport):
        time = LoopTime()
        server.on_hang = lambda: time.advance(SETTINGS.stall_timeout_seconds + 1)
        server.fail(SYNC, server.hang())
        with pytest.raises(StalledError):
            await transport.sync("good", REQUEST)


async def test_a_long_poll_is_given_its_time_before_it_counts_as_stalled() -> None:
    async with talking() as (server, transport):
        time = LoopTime()
        server.on_hang = lambda: time.advance(SETTINGS.stall_timeout_seconds + 1)
        hanging = server.hang()

        async def late(_request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
            time.advance(SETTINGS.stall_timeout_seconds + 1)
            return done

        server.fail("/v1/sync/wait", Fault(late, works=True), hanging)
        assert await transport.wait("good", "c", 55.0)
        with pytest.raises(StalledError):
            await transport.wait("good", "c", 0.0)


async def test_a_body_that_comes_slowly_is_awaited_for_as_long_as_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = asyncio.Event()
    progressed = StallGuard.progressed

    def noting(guard: StallGuard) -> None:
        progressed(guard)
        moved.set()

    monkeypatch.setattr(StallGuard, "progressed", noting)
    async with talking() as (server, transport):
        time = LoopTime()

        async def slow(request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
            assert isinstance(done.body, bytes)
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for start in range(0, len(done.body), 32):
                moved.clear()
                await response.write(done.body[start : start + 32])
                await moved.wait()
                time.advance(SETTINGS.stall_timeout_seconds - 1)
            return response

        server.fail(SYNC, Fault(slow, works=True))
        assert (await transport.sync("good", REQUEST)).lineage == "l1"


async def test_a_body_that_nobody_takes_is_given_up() -> None:
    """The peer reads the head and no more; what does not fit into the network's buffers stays."""
    time = LoopTime()
    closing = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        time.advance(SETTINGS.stall_timeout_seconds + 1)
        await closing.wait()
        writer.close()

    listener = await asyncio.start_server(deaf, "127.0.0.1", 0, limit=1024)
    port = listener.sockets[0].getsockname()[1]
    async with listener, HttpTransport(f"http://127.0.0.1:{port}", SETTINGS) as transport:
        try:
            with pytest.raises(StalledError):
                await transport.send_chunk("good", "/v1/uploads/1", 0, bytes(1 << 24))
        finally:
            closing.set()


async def test_an_upload_begins_goes_on_and_ends_at_its_full_length() -> None:
    async with talking() as (server, transport):
        place = await transport.create_upload("good", upload())
        assert (place.url, place.offset) == (f"{UPLOADS}/1", 0)
        assert await transport.send_chunk("good", place.url, 0, CONTENT[:5]) == 5
        assert await transport.upload_offset("good", place.url) == 5
        assert server.uploads[place.url].content == CONTENT[:5]


@pytest.mark.parametrize(("status", "code"), [(401, "unauthenticated"), (404, "not_found")])
async def test_a_head_request_is_refused_by_its_status_alone(status: int, code: str) -> None:
    async with talking() as (server, transport):
        server.fail(f"HEAD {UPLOADS}", refused(status, code))
        with pytest.raises(RefusedError) as caught:
            await transport.upload_offset("good", f"{UPLOADS}/9")
        assert (caught.value.status, caught.value.code) == (status, code)


async def test_an_upload_answer_without_the_marks_of_tus_is_a_page_of_something_else() -> None:
    async with talking() as (server, transport):
        server.fail(UPLOADS, PORTAL_PAGE, page(201), page(204, b""))
        with pytest.raises(UnreadableAnswerError):
            await transport.create_upload("good", upload())
        with pytest.raises(UnreadableAnswerError):
            await transport.create_upload("good", upload())
        with pytest.raises(UnreadableAnswerError):
            await transport.send_chunk("good", f"{UPLOADS}/1", 0, CONTENT)


@pytest.mark.parametrize(
    "location", [None, "", "https://elsewhere.example/v1/uploads/1", "http://[", "/v1/uploads"]
)
async def test_the_token_never_follows_a_location_to_another_server(location: str | None) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        headers = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0"}
        if location is not None:
            headers["Location"] = location
        return web.Response(status=201, headers=headers)

    async with answering(handler) as transport:
        with pytest.raises(UnreadableAnswerError):
            await transport.create_upload("good", upload())


@pytest.mark.parametrize("offset", [None, "", "-1", "1.5", "many"])
async def test_an_offset_that_is_no_number_is_no_answer(offset: str | None) -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        headers = {"Tus-Resumable": "1.0.0"}
        return web.Response(
            status=204, headers=headers | ({"Upload-Offset": offset} if offset else {})
        )

    async with answering(handler) as transport:
        with pytest.raises(UnreadableAnswerError):
            await transport.send_chunk("good", f"{UPLOADS}/1", 0, CONTENT)


async def test_an_enrolment_is_asked_for_and_refused_with_its_code() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        assert (request.method, request.path) == ("POST", "/prefix/v1/enrolments/offer")
        return problem(404, "enrolment_unknown")

    async with serving(handler) as url, HttpTransport(f"{url}/prefix", SETTINGS) as transport:
        with pytest.raises(RefusedError) as caught:
            await transport.offer("ab" * 32)
        assert caught.value.code == "enrolment_unknown"


@pytest.mark.parametrize(
    "url",
    [
        "https://office.example",
        "https://office.example/workmate/",
        "http://localhost:8080",
        "http://127.0.0.1:1",
        "http://127.9.9.9",
        "http://[::1]:8080",
    ],
)
def test_https_or_this_very_machine_is_safe(url: str) -> None:
    assert str(checked_address(url)).startswith(url.rstrip("/"))


@pytest.mark.parametrize(
    "url",
    [
        "http://office.example",
        "http://10.0.0.1",
        "http://localhost.example",
        "http://0.0.0.0",
        "ftp://127.0.0.1",
        "office.example",
        "https://",
        "http://[::1",
        "",
    ],
)
def test_anything_in_the_clear_beyond_this_machine_is_refused(url: str) -> None:
    with pytest.raises(InsecureServerError):
        HttpTransport(url, SETTINGS)
