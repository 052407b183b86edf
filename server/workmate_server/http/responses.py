"""Answers: JSON from structs, and pages of lists.

A page is `{"items": …, "next": …}` with the same `next` as a `Link` header (RFC 8288), relative, so
that no header of the request can lead a caller elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from workmate_shared.wire.codec import encode

JSON_TYPE = "application/json"


def json_response(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return an answer with a value that msgspec encodes."""
    return web.Response(body=encode(value), status=status, content_type=JSON_TYPE, headers=headers)


def page_response(
    request: web.Request,
    items: Sequence[Any],
    cursor: str | None,
    *,
    name: str = "items",
    parameter: str = "cursor",
) -> web.Response:
    """Return one page of a list; `cursor` is what the parameter asks the next page with."""
    headers = {}
    if cursor is not None:
        following = request.rel_url.update_query({parameter: cursor})
        headers["Link"] = f'<{following}>; rel="next"'
    return json_response({name: items, "next": cursor}, headers=headers)
