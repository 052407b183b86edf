"""Bodies of requests: read within bounds, unpacked within bounds, decoded strictly.

Bytes are counted while they arrive, before and after unpacking, so that neither a body without a
length nor one that unpacks to a thousand times its size costs more than the limit. Only gzip is
unpacked (RFC 1952, one member); every other coding is refused.
"""

import zlib
from typing import Any

from aiohttp import web

from workmate_server.http.problems import ProblemError, too_large
from workmate_server.http.services import services_of
from workmate_shared.wire.codec import decode

JSON_TYPE = "application/json"
NO_BODY = b"{}"
"""What a request without a body says: nothing of what it could have said."""

_GZIP = 31
_TEXT_CODINGS = (None, "utf-8", "utf8")


class _Unpacker:
    """Unpacks one gzip member up to a limit of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unpacked = zlib.decompressobj(_GZIP)
        self.data = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Add packed bytes; raises ProblemError `too_large` or `invalid_request`."""
        room = self._limit - len(self.data) + 1
        try:
            self.data += self._unpacked.decompress(chunk, room)
        except zlib.error as error:
            raise ProblemError("invalid_request", "The body is not gzip.") from error
        if len(self.data) > self._limit:
            raise too_large(self._limit)
        if self._unpacked.unused_data:
            raise ProblemError("invalid_request", "Something follows the gzip data.")

    def finish(self) -> bytes:
        """Return what was unpacked; raises ProblemError where the end is missing."""
        if not self._unpacked.eof:
            raise ProblemError("invalid_request", "The gzip data ends too early.")
        return bytes(self.data)


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """Return a request's body, unpacked, of at most `max_bytes`.

    Raises ProblemError: `too_large` with the limit, `wrong_type` for a coding other than gzip,
    `invalid_request` for a body that does not unpack.
    """
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in {"identity", "gzip"}:
        raise ProblemError("wrong_type", "The only content coding taken is gzip.")
    if request.content_length is not None and request.content_length > max_bytes:
        raise too_large(max_bytes)
    # A server that was told to unpack by itself hands out bytes that are unpacked already.
    packed = coding == "gzip" and request.content.total_compressed_bytes is None
    unpacker = _Unpacker(max_bytes)
    received = 0
    body = bytearray()
    async for chunk in request.content.iter_any():
        received += len(chunk)
        if received > max_bytes:
            raise too_large(max_bytes)
        if packed:
            unpacker.feed(chunk)
        else:
            body += chunk
    return unpacker.finish() if packed and received else bytes(body)


async def read_json_bytes(request: web.Request, max_bytes: int | None = None) -> bytes:
    """Return the bytes of a JSON body, not decoded yet; `{}` where there is no body.

    `max_bytes` is the server's limit for requests unless given. Raises ProblemError like
    `read_body`, and `wrong_type` for a body that is not declared as JSON in UTF-8.
    """
    limit = services_of(request).settings.request_bytes_max if max_bytes is None else max_bytes
    if request.body_exists and not _is_json(request):
        raise ProblemError("wrong_type", f"A body must be {JSON_TYPE}.")
    return await read_body(request, limit) or NO_BODY


async def read_json(request: web.Request, kind: Any, max_bytes: int | None = None) -> Any:
    """Return a JSON body decoded as `kind`.

    Raises ProblemError like `read_json_bytes`, and MalformedError with the path of the fault.
    """
    data = await read_json_bytes(request, max_bytes)
    depth = services_of(request).settings.json_depth_max
    return decode(data, kind, max_bytes=len(data), max_depth=depth)


def _is_json(request: web.Request) -> bool:
    charset = request.charset
    known = charset.lower() if charset else None
    return request.content_type == JSON_TYPE and known in _TEXT_CODINGS
