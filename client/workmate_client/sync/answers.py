"""Read answers of the server: bounded, typed, and nothing else taken for one.

A body counts only if it is whole, of a JSON media type, and decodes into what was asked for; a
problem only if its type is one of ours (RFC 9457). Anything else is an unknown outcome.
"""

import zlib
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from msgspec import Struct

from workmate_client.sync.failures import RefusedError, UnreadableAnswerError
from workmate_shared.wire.codec import MalformedError, decode
from workmate_shared.wire.messages import Problem

T = TypeVar("T")

PROBLEM_TYPE = "urn:workmate:problem:"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_SUCCESS = range(200, 300)
_EXCERPT_CHARACTERS = 200


class RawAnswer(Struct, frozen=True):
    """An answer as it came: status, headers (names in lower case), unpacked body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Inflater:
    """Takes a body in pieces, unpacks it if it is packed, and keeps it under a limit in bytes.

    Raises UnreadableAnswerError when the limit is passed, however small the packed body is.
    """

    def __init__(self, encoding: str | None, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._body = bytearray()
        self._gzip = None
        if encoding == "gzip":
            self._gzip = zlib.decompressobj(_GZIP_WINDOW)
        elif encoding not in (None, "identity"):
            raise UnreadableAnswerError(f"packed as {encoding[:_EXCERPT_CHARACTERS]!r}")

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        if self._gzip is not None:
            room = self._limit_bytes - len(self._body) + 1
            try:
                piece = self._gzip.decompress(piece, room)
            except zlib.error as error:
                raise UnreadableAnswerError(f"not gzip: {error}") from error
        self._body += piece
        if len(self._body) > self._limit_bytes:
            raise UnreadableAnswerError(f"more than {self._limit_bytes} bytes")

    def finish(self) -> bytes:
        """Return the whole body. Raises UnreadableAnswerError if its end is missing."""
        if self._gzip is not None and not self._gzip.eof:
            raise UnreadableAnswerError("the packed body has no end")
        return bytes(self._body)


def read_answer(answer: RawAnswer, kind: type[T], limit_bytes: int) -> T:
    """Return a success's body as the struct asked for.

    Raises RefusedError for a problem of our server and UnreadableAnswerError for anything else.
    """
    check_success(answer)
    if _media_type(answer) != "application/json":
        raise unreadable(answer, f"{_media_type(answer)!r} instead of JSON")
    try:
        return decode(answer.body, kind, max_bytes=limit_bytes, floats=True)
    except MalformedError as error:
        raise unreadable(answer, str(error)) from error


def check_success(answer: RawAnswer) -> None:
    """Raise RefusedError or UnreadableAnswerError unless the status is a success (2xx)."""
    if answer.status in _SUCCESS:
        return
    if _media_type(answer) in ("application/problem+json", "application/json"):
        try:
            problem = decode(answer.body, Problem, max_bytes=len(answer.body), floats=True)
        except MalformedError as error:
            raise unreadable(answer, f"status {answer.status}, {error}") from error
        if problem.type == PROBLEM_TYPE + problem.code:
            raise RefusedError(problem.code, answer.status, problem.detail, _retry_after(answer))
    raise unreadable(answer, f"status {answer.status}, not a problem of our server")


def unreadable(answer: RawAnswer, detail: str) -> UnreadableAnswerError:
    """Return the error for an answer that is not our server's."""
    return UnreadableAnswerError(detail, answer.status, _retry_after(answer))


def _media_type(answer: RawAnswer) -> str:
    stated = answer.headers.get("content-type", "")
    return stated.partition(";")[0].strip().lower()[:_EXCERPT_CHARACTERS]


def _retry_after(answer: RawAnswer) -> float | None:
    return retry_after_seconds(
        answer.headers.get("retry-after", ""), answer.headers.get("date", "")
    )


def retry_after_seconds(value: str, date: str) -> float | None:
    """Return what `Retry-After` asks for in seconds, or None where it cannot be read.

    A date is taken relative to the answer's own `Date`, so that no clock of ours matters.
    """
    if value.isascii() and value.isdigit():
        return float(value)
    until, sent = _http_date(value), _http_date(date)
    return max((until - sent).total_seconds(), 0.0) if until and sent else None


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
