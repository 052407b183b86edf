"""A body counts only if it is whole, bounded, typed, and our server's."""

import gzip

import pytest

from workmate_client.sync.answers import (
    Inflater,
    RawAnswer,
    check_success,
    read_answer,
    retry_after_seconds,
)
from workmate_client.sync.failures import RefusedError, UnreadableAnswerError
from workmate_shared.wire.messages import NonceAnswer

JSON = {"content-type": "application/json; charset=utf-8"}
PROBLEM = {"content-type": "application/problem+json"}
NONCE = b'{"nonce":"aa","server_key_id":"%s","expires_at":"2026-03-01T09:00:00Z","new":1}'
BODY = NONCE % (b"ab" * 32)


def read(body: bytes, headers: dict[str, str] = JSON, status: int = 200) -> NonceAnswer:
    return read_answer(RawAnswer(status, headers, body), NonceAnswer, 10_000)


def test_a_whole_json_answer_is_read_and_fields_of_later_versions_are_ignored() -> None:
    assert read(BODY).nonce == "aa"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (BODY, {}),
        (BODY, {"content-type": "text/html"}),
        (BODY[:-1], JSON),
        (b"", JSON),
        (b"<html>", JSON),
        (b"[]", JSON),
        (b"{}", JSON),
        (BODY.replace(b'"nonce"', b'"nonce":"bb","nonce"'), JSON),
        (BODY + b" " * 10_000, JSON),
        (b'{"nonce":NaN}', JSON),
        (b"\xff", JSON),
    ],
)
def test_anything_else_is_an_unknown_outcome(body: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(UnreadableAnswerError):
        read(body, headers)


def test_a_success_without_a_body_is_no_answer_where_one_was_asked_for() -> None:
    with pytest.raises(UnreadableAnswerError):
        read(b"", {}, 204)


@pytest.mark.parametrize("status", [301, 302, 401, 404, 413, 500, 502, 511])
def test_a_page_of_something_on_the_way_is_never_our_servers_word(status: int) -> None:
    with pytest.raises(UnreadableAnswerError) as caught:
        check_success(RawAnswer(status, {"content-type": "text/html", "retry-after": "7"}, b"<p>"))
    assert caught.value.status == status
    assert caught.value.retry_after_seconds == 7.0


def problem(**fields: object) -> bytes:
    given = {
        "type": "urn:workmate:problem:too_many",
        "code": "too_many",
        "title": "t",
        "status": 429,
        "detail": "slowly",
    }
    return str(given | fields).replace("'", '"').encode()


def test_a_problem_of_ours_gives_its_code_and_when_to_come_back() -> None:
    answer = RawAnswer(429, PROBLEM | {"retry-after": "12"}, problem())
    with pytest.raises(RefusedError) as caught:
        check_success(answer)
    assert (caught.value.code, caught.value.status) == ("too_many", 429)
    assert (caught.value.retry_after_seconds, caught.value.detail) == (12.0, "slowly")


@pytest.mark.parametrize(
    "type_", ["about:blank", "urn:workmate:problem:other", "https://x/too_many"]
)
def test_a_problem_of_another_kind_is_not_our_servers(type_: str) -> None:
    with pytest.raises(UnreadableAnswerError):
        check_success(RawAnswer(429, PROBLEM, problem(type=type_)))


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("0", "", 0.0),
        ("120", "", 120.0),
        ("Sun, 01 Mar 2026 09:01:00 GMT", "Sun, 01 Mar 2026 09:00:00 GMT", 60.0),
        ("Sun, 01 Mar 2026 09:00:00 GMT", "Sun, 01 Mar 2026 09:01:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 09:01:00 GMT", "", None),
        ("Sun, 01 Mar 2026 09:01:00 -0000", "Sun, 01 Mar 2026 09:00:00 GMT", None),
        ("-5", "", None),
        ("1.5", "", None),
        ("soon", "", None),
        ("²", "", None),
        ("", "", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date_beside_the_answers_own(
    value: str, date: str, seconds: float | None
) -> None:
    assert retry_after_seconds(value, date) == seconds


def unpacked(pieces: list[bytes], encoding: str | None = "gzip", limit: int = 1000) -> bytes:
    inflater = Inflater(encoding, limit)
    for piece in pieces:
        inflater.feed(piece)
    return inflater.finish()


def test_a_packed_body_is_unpacked_piece_by_piece() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert unpacked([packed[:7], packed[7:]]) == b"x" * 1000
    assert unpacked([b"ab", b"c"], None) == b"abc"
    assert unpacked([b"abc"], "identity") == b"abc"


def test_a_body_over_the_limit_is_given_up_however_small_it_was_packed() -> None:
    with pytest.raises(UnreadableAnswerError):
        unpacked([gzip.compress(bytes(10_000_000))])
    with pytest.raises(UnreadableAnswerError):
        unpacked([b"x" * 1001], None)


@pytest.mark.parametrize("pieces", [[], [b"not gzip"], [gzip.compress(b"x" * 100)[:-9]]])
def test_a_packed_body_without_its_end_or_of_another_kind_is_unreadable(
    pieces: list[bytes],
) -> None:
    with pytest.raises(UnreadableAnswerError):
        unpacked(pieces)
    with pytest.raises(UnreadableAnswerError):
        unpacked([b"x"], "br")
