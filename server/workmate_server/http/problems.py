"""Problems: every refusal of the API as `application/problem+json` (RFC 9457).

`code` is the stable part and stands in the catalogue; status and title come from there and nowhere
else. Outcome and receipt are members exactly when a decision was recorded. What callers must never
see (stack traces, statements, other people's values) never becomes a `detail`.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from aiohttp import web
from msgspec import UNSET

from workmate_server.config import Settings
from workmate_server.engine.engine import OverloadedError, StoppingError
from workmate_server.ports import BlobStoreUnavailableError
from workmate_server.store.database import DatabaseAwayError, DuplicateError
from workmate_shared.kernel.catalogue import CATALOGUE
from workmate_shared.wire.codec import MAX_DETAIL, MalformedError, encode
from workmate_shared.wire.dsse import SignatureError
from workmate_shared.wire.intake import MessageError
from workmate_shared.wire.messages import Problem

PROBLEM_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:workmate:problem:"
BUSY_STATUSES = frozenset({429, 503})
"""Statuses that carry `Retry-After`."""

_BUSY_ERRORS: dict[type[Exception], str] = {
    OverloadedError: "overloaded",
    StoppingError: "shutting_down",
    DatabaseAwayError: "database_away",
    # Two requests met at one row; the second try finds the row there.
    DuplicateError: "overloaded",
    BlobStoreUnavailableError: "database_away",
}


class ProblemError(Exception):
    """A refusal: a code of the catalogue, one plain sentence, headers, and members of `Problem`.

    Without a sentence the catalogue's is used. Raises KeyError for a code that the catalogue lacks.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.entry = CATALOGUE[code]
        self.code = code
        self.detail = detail or self.entry.happened
        self.headers = dict(headers or {})
        self.members = members

    def problem(self) -> Problem:
        """Return the body of the answer."""
        return Problem(
            type=TYPE_PREFIX + self.code,
            code=self.code,
            title=self.entry.title,
            status=self.entry.status,
            detail=self.detail,
            **self.members,
        )

    def response(self, settings: Settings) -> web.Response:
        """Return the answer; 429 and 503 say how long to wait."""
        headers = dict(self.headers)
        if self.entry.status in BUSY_STATUSES:
            headers.setdefault("Retry-After", str(ceil(settings.retry_after_seconds)))
        return web.Response(
            body=encode(self.problem()),
            status=self.entry.status,
            content_type=PROBLEM_TYPE,
            headers=headers,
        )


def too_large(limit: int) -> ProblemError:
    """Return the refusal of something larger than `limit` bytes."""
    return ProblemError("too_large", f"More than {limit} bytes.", limit=limit)


def problem_for(error: Exception) -> ProblemError | None:
    """Return the problem that an expected error stands for; None for one that nobody expects."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, MessageError | MalformedError):
        return ProblemError(error.code, error.detail, path=error.path)
    if isinstance(error, SignatureError):
        return ProblemError("signature_invalid", error.detail)
    if isinstance(error, web.HTTPException):
        return _problem_for_http(error)
    if isinstance(error, web.RequestPayloadError):
        return ProblemError("invalid_request", "The body could not be read to its end.")
    busy = next((code for kind, code in _BUSY_ERRORS.items() if isinstance(error, kind)), None)
    return None if busy is None else ProblemError(busy)


def _problem_for_http(error: web.HTTPException) -> ProblemError | None:
    match error:
        case web.HTTPNotFound():
            return ProblemError("not_found")
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            return ProblemError("method_not_allowed", headers={"Allow": allowed})
        case web.HTTPRequestEntityTooLarge():
            return ProblemError("too_large")
        case web.HTTPClientError():
            return ProblemError("invalid_request", (error.text or error.reason)[:MAX_DETAIL])
        case _:
            return None


__all__ = ["UNSET", "ProblemError", "problem_for", "too_large"]
