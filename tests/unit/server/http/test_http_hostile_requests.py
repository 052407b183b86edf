"""Hostile and broken requests end as 4xx problems, cost no memory, and record nothing."""

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.office import Answer, Office, Person, assert_problem, open_office
from workmate_server.config import Settings
from workmate_shared.kernel.table import Role

# Nothing here changes anything, so that one office serves all.
pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}
LIMIT = Settings().request_bytes_max


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    async with open_office(tmp_path_factory.mktemp("office")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def sender(office: Office) -> Person:
    return await office.somebody(Role.INTEGRATION)


async def send(sender: Person, data: bytes, **headers: str) -> Answer:
    sent = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
    key = sender.office.make_key()
    return await sender.call("POST", "/v1/tasks", data=data, headers=sent, key=key)


def creation(sender: Person, size: int = 0) -> bytes:
    """Return the body of a new creation, filled up with blanks to a size."""
    start = b'{"external_id":"%s"' % sender.office.make_key().encode()
    return start + b" " * (size - len(start) - 1) + b"}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b'{"external_id":"a"}{}',
        b'{"external_id":"a","external_id":"b"}',
        b'{"external_id":"a","personal":{"client":"a","client":"b"}}',
        b'{"external_id":NaN}',
        b'{"external_id":"a","priority":1.5}',
        b'{"external_id":"a","priority":1e400}',
        b'{"external_id":"a","priority":"1"}',
        b'{"external_id":"a","priority":10}',
        b'{"external_id":"a","priority":123456789012345678901234567890}',
        b'{"external_id":1}',
        b'{"external_id":null}',
        b'{"external_id":"a","source":null}',
        b'{"external_id":"a","unknown":1}',
        b'{"external_id":"a","tenant_id":"t"}',
        b'{"external_id":"a","actor":{"id":"x","role":"admin"}}',
        b'{"external_id":"a","command_id":"x"}',
        b'{"external_id":"a","lineage":"x"}',
        b'{"external_id":"a","expected_version":0}',
        b'{"external_id":"a","personal":"aa"}',
        b'{"external_id":"a","personal":{"override_reason":"x"}}',
        b'{"external_id":"a","personal":{"unknown":1}}',
        b'{"external_id":"a","position":{}}',
        b'{"external_id":"a","position":{"lat_e7":1}}',
        b'{"external_id":"a","position":{"lat_e7":1.5,"lon_e7":2}}',
        b'{"external_id":"a","position":{"lat_e7":900000001,"lon_e7":2}}',
        b'{"external_id":"a","position":{"mappls_pin":"TOOLONG"}}',
        b'{"external_id":"a","due_at":"2026-02-31T00:00:00Z"}',
        b'{"external_id":"a","due_at":"yesterday"}',
        b'{"external_id":"a","occurred_at":"2026-02-31T00:00:00Z"}',
        b'{"external_id":"a","occurred_at":null}',
        b'{"external_id":"a","idempotency_key":""}',
        b'{"external_id":"a b"}',
        b'{"external_id":"' + b"e" * 201 + b'"}',
        b'{"external_id":"a","proof_policy":{"checklist":[{"kind":"other"}]}}',
        b'{"external_id":"a","personal":{"client":"\\ud800"}}',
        b'{"external_id":"\xff"}',
        b"\xef\xbb\xbf{}",
        b"\x00",
        b"[" * 10_000,
        b'{"a":' * 40 + b"1" + b"}" * 40,
    ],
)
async def test_what_is_no_creation_is_an_invalid_command_with_its_path(
    office: Office, sender: Person, body: bytes
) -> None:
    before = (await office.admin.get("/v1/log/batches?limit=500")).body
    answer = await send(sender, body)
    problem = assert_problem(answer, "invalid_command")
    assert problem["path"].startswith("$")
    assert len(answer.body) < 1500
    assert (await office.admin.get("/v1/log/batches?limit=500")).body == before


async def test_the_path_of_a_fault_leads_to_the_field(sender: Person) -> None:
    body = b'{"external_id":"a","proof_policy":{"photos":[{"slot":"s","prompt":"p","min":-1}]}}'
    problem = assert_problem(await send(sender, body), "invalid_command")
    assert problem["path"] == "$.proof_policy.photos[0].min"


async def test_a_body_is_taken_up_to_its_limit_and_refused_past_it(sender: Person) -> None:
    fitting = creation(sender, LIMIT)
    assert len(fitting) == LIMIT
    assert (await send(sender, fitting)).status == 201
    problem = assert_problem(await send(sender, fitting + b" "), "too_large")
    assert problem["limit"] == LIMIT


async def test_packed_bodies_are_unpacked_and_count_as_what_they_unpack_to(
    sender: Person,
) -> None:
    fitting = creation(sender, LIMIT)
    answer = await send(sender, gzip.compress(fitting), Content_Encoding="gzip")
    assert answer.status == 201
    answer = await send(sender, gzip.compress(fitting + b" "), Content_Encoding="gzip")
    assert assert_problem(answer, "too_large")["limit"] == LIMIT


async def test_a_bomb_is_refused_when_it_passes_the_limit(sender: Person) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()
    assert len(bomb) < LIMIT
    assert_problem(await send(sender, bomb, Content_Encoding="gzip"), "too_large")


@pytest.mark.parametrize(
    "body",
    [
        b"not gzip at all",
        gzip.compress(b"{}", mtime=0)[:-4],
        gzip.compress(b"{}", mtime=0)[:12],
        gzip.compress(b"{}", mtime=0) + b"more",
        gzip.compress(b"{}", mtime=0) + gzip.compress(b"{}", mtime=0),
        gzip.compress(b"{}", mtime=0)[:-8] + b"\x00" * 8,
    ],
)
async def test_broken_gzip_is_an_invalid_request(sender: Person, body: bytes) -> None:
    assert_problem(await send(sender, body, Content_Encoding="gzip"), "invalid_request")


@pytest.mark.parametrize("coding", ["br", "deflate", "zstd", "gzip, gzip", "x-gzip", "compress"])
async def test_other_codings_are_refused(sender: Person, coding: str) -> None:
    assert_problem(await send(sender, b"{}", Content_Encoding=coding), "wrong_type")


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/json; charset=latin-1",
        "",
    ],
)
async def test_a_body_that_is_not_declared_as_json_is_refused(sender: Person, kind: str) -> None:
    answer = await send(sender, creation(sender), Content_Type=kind)
    assert_problem(answer, "wrong_type")


async def test_json_may_say_its_charset(sender: Person) -> None:
    kind = "application/json; charset=UTF-8"
    assert (await send(sender, creation(sender), Content_Type=kind)).status == 201


@pytest.mark.parametrize("key", ["a b", "ä", "k" * 256, '""', '" "'])
async def test_a_key_that_is_none_is_refused(sender: Person, key: str) -> None:
    answer = await sender.call(
        "POST",
        "/v1/tasks",
        json_body={"external_id": "a"},
        headers={"Idempotency-Key": key},
    )
    assert assert_problem(answer, "invalid_request")["path"] == "Idempotency-Key"


async def test_an_address_that_is_not_there_is_a_problem(office: Office) -> None:
    for path in ("/", "/v1", "/v2/tasks", "/v1/tasks/x/unknown-command", "/v1/tasks/"):
        assert_problem(await office.admin.get(path), "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/tasks", "GET, HEAD, POST"),
        ("GET", "/v1/tasks/x/accept", "POST"),
        ("POST", "/health/live", "GET, HEAD"),
        ("PATCH", "/v1/tokens/x", "DELETE"),
    ],
)
async def test_a_method_that_an_address_lacks_comes_with_those_it_has(
    office: Office, method: str, path: str, allowed: str
) -> None:
    answer = await office.admin.call(method, path)
    assert_problem(answer, "method_not_allowed")
    assert answer.headers["Allow"] == allowed


async def test_head_answers_like_get_without_a_body(office: Office) -> None:
    job = await office.job()
    supervisor = await office.somebody(Role.SUPERVISOR)
    whole = await supervisor.get(f"/v1/tasks/{job.task_id}")
    head = await supervisor.call("HEAD", f"/v1/tasks/{job.task_id}")
    assert head.status == 200
    assert head.body == b""
    assert head.headers["ETag"] == whole.headers["ETag"]
    missing = await supervisor.call("HEAD", "/v1/tasks/none")
    assert (missing.status, missing.body) == (404, b"")


@pytest.mark.parametrize("path", ["/health/live", "/v1/tasks", "/nowhere"])
async def test_every_answer_says_that_nothing_in_it_may_be_run_or_guessed(
    office: Office, path: str
) -> None:
    answer = await office.stranger.get(path)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Server"] == "workmate"


async def test_a_request_keeps_its_id_and_gets_one_without(office: Office) -> None:
    given = await office.stranger.get("/health/live", headers={"X-Request-Id": "abc-1"})
    assert given.headers["X-Request-Id"] == "abc-1"
    made = await office.stranger.get("/health/live", headers={"X-Request-Id": "no good id"})
    assert len(made.headers["X-Request-Id"]) == 36
    other = await office.stranger.get("/nowhere")
    assert other.headers["X-Request-Id"] != made.headers["X-Request-Id"]


async def test_long_answers_are_packed_for_those_who_take_gzip(office: Office) -> None:
    schema = "/v1/schemas/create_task"
    plain = await office.stranger.get(schema, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    packed = await office.stranger.get(schema, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert packed.body == plain.body, "the client unpacks it"
    refused = await office.stranger.get(schema, headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers
    short = await office.stranger.get("/health/live", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in short.headers


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=-1",
        "limit=1.5",
        "limit=%D9%A1",
        "limit=",
        "limit=1&limit=2",
        "limt=1",
        "state=unknown",
        "sort=size",
        "due_before=today",
        "due_before=2026-02-31T00:00:00Z",
        "changed_since=soon",
        "q=",
        "q=" + "x" * 501,
    ],
)
async def test_a_parameter_that_breaks_its_rule_is_refused(office: Office, query: str) -> None:
    supervisor = await office.somebody(Role.SUPERVISOR)
    problem = assert_problem(await supervisor.get(f"/v1/tasks?{query}"), "invalid_request")
    assert problem["path"] == query.partition("=")[0]


async def test_a_body_without_a_length_is_counted_while_it_comes(
    office: Office, sender: Person
) -> None:
    with socket.create_connection((office.client.host, office.client.port)) as connection:
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        head = (
            "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {sender.token}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        await loop.sock_sendall(connection, head.encode())
        piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for _ in range(LIMIT // 0x10000 + 1):
            await loop.sock_sendall(connection, piece)
        answer = await loop.sock_recv(connection, 4096)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"too_large" in answer


async def test_a_fault_is_logged_and_told_without_its_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_office(tmp_path) as broken:
        job, supervisor = await broken.job(), await broken.somebody(Role.SUPERVISOR)
        with broken.services.database.write() as connection:
            connection.exec_driver_sql("UPDATE task_snapshot SET snapshot = x'00'")
        answer = await supervisor.get(
            f"/v1/tasks/{job.task_id}", headers={"X-Request-Id": "the-request"}
        )
    problem = assert_problem(answer, "internal")
    assert problem["detail"] == "The server failed in a way that it did not expect."
    assert "the-request" in caplog.text
    assert "DecodeError" in caplog.text
    assert job.task_id not in caplog.text
