"""Files of evidence, byte for byte, at `/v1/blobs/{hash}`.

Whoever may see a task for which an uploader stored the file may read it; to everybody else it is
not there. Files come from strangers' cameras and disks: they are handed out to be kept, never to be
run or shown as a page. One range of bytes is served (RFC 9110, section 14).
"""

import re
from collections.abc import Iterator
from typing import Any

from aiohttp import web
from msgspec import Struct

from workmate_server.evidence.layout import is_hash
from workmate_server.evidence.media import SHOWN, UNKNOWN
from workmate_server.http.authentication import authenticate
from workmate_server.http.problems import ProblemError
from workmate_server.http.services import Services, services_of
from workmate_server.http.sight import Sight, sight_of
from workmate_server.identity.authenticate import Caller
from workmate_server.ports import BlobError, BlobMissingError
from workmate_server.store import reads_evidence, reads_tasks

routes = web.RouteTableDef()

_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})")


class Span(Struct, frozen=True):
    """The bytes that are answered: from `start` up to, not including, `stop`."""

    start: int
    stop: int
    partial: bool


@routes.get("/v1/blobs/{hash}", allow_head=True)
async def read(request: web.Request) -> web.StreamResponse:
    """Answer a file or one range of it."""
    services = services_of(request)
    caller = await authenticate(request)
    blob_hash: str = request.match_info["hash"]
    if not is_hash(blob_hash):
        raise ProblemError("not_found")
    row = await services.run_blocking(_find, services, caller, blob_hash)
    tag = f'"{blob_hash}"'
    headers = _headers(row, tag)
    if _is_known(request, tag):
        return web.Response(status=304, headers=headers)
    span = read_range(request, row.size, tag)
    if span.partial:
        headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{row.size}"
    response = web.StreamResponse(status=206 if span.partial else 200, headers=headers)
    response.content_type = row.media_type if row.media_type in SHOWN else UNKNOWN
    response.content_length = span.stop - span.start
    return await _send(request, response, services, caller, blob_hash, span)


def read_range(request: web.Request, size: int, tag: str) -> Span:
    """Return which bytes are asked for; a `Range` that is no single range of bytes is ignored.

    Raises ProblemError `range_not_satisfiable` for one that lies outside the file.
    """
    whole = Span(0, size, partial=False)
    values = request.headers.getall("Range", ())
    found = _RANGE.fullmatch(values[0].strip()) if len(values) == 1 else None
    if found is None or request.headers.get("If-Range", tag) != tag:
        return whole
    first, last = found[1], found[2]
    if not first and not last:
        return whole
    if not first:
        start, stop = max(size - int(last), 0), size
        empty = int(last) == 0
    else:
        start, stop = int(first), min(int(last) + 1 if last else size, size)
        if last and int(last) < start:
            return whole
        empty = start >= size
    if empty or size == 0:
        raise ProblemError("range_not_satisfiable", headers={"Content-Range": f"bytes */{size}"})
    return Span(start, stop, partial=True)


def _find(services: Services, caller: Caller, blob_hash: str) -> Any:
    with services.database.read() as connection:
        row = reads_evidence.find_blob(connection, caller.tenant_id, blob_hash)
        named = reads_evidence.tasks_of_blob(connection, caller.tenant_id, blob_hash)
        tasks = reads_tasks.read_tasks(connection, caller.tenant_id, named)
    visible = any(sight_of(caller, task) is Sight.FULL for task in tasks.values())
    if row is None or not visible:
        raise ProblemError("not_found")
    return row


def _headers(row: Any, tag: str) -> dict[str, str]:
    return {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f'attachment; filename="{row.hash}"',
    }


def _is_known(request: web.Request, tag: str) -> bool:
    named = ",".join(request.headers.getall("If-None-Match", ()))
    tags = {one.strip().removeprefix("W/") for one in named.split(",")}
    return tag in tags or "*" in tags


async def _send(
    request: web.Request,
    response: web.StreamResponse,
    services: Services,
    caller: Caller,
    blob_hash: str,
    span: Span,
) -> web.StreamResponse:
    try:
        content = await services.run_blocking(
            services.blobs.open_range, caller.tenant_id, blob_hash, span.start, span.stop
        )
        # The first piece is read before anything is promised.
        piece = await services.run_blocking(_next, content)
    except BlobMissingError as error:
        raise ProblemError("not_found") from error
    await response.prepare(request)
    try:
        while piece and request.method != "HEAD":
            await response.write(piece)
            piece = await services.run_blocking(_next, content)
    except BlobError as error:
        # No problem can be told in the middle of a file; a cut connection says that bytes miss.
        raise ConnectionResetError("the file could not be read to its end") from error
    await response.write_eof()
    return response


def _next(content: Iterator[bytes]) -> bytes:
    return next(content, b"")
