"""What happens to every request: an id, problems for errors, headers for safety, compression.

An error that nobody expected is logged with the request's id and answered as `internal`; its text
stays in the log. Headers are set when an answer is prepared, so that streamed ones have them too.
"""

import logging
import re
import zlib

from aiohttp import web
from aiohttp.typedefs import Handler

from workmate_server.http.headers import takes_gzip
from workmate_server.http.problems import ProblemError, problem_for
from workmate_server.http.services import services_of

LOG = logging.getLogger(__name__)

REQUEST_ID = "X-Request-Id"
ID_KEY = web.RequestKey("request_id", str)

_GIVEN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_GZIP = 31
_FAST = 1
_INLINE_BYTES_MAX = 64 * 1024
"""Answers up to here are compressed at once; larger ones in a worker thread."""

SAFETY_HEADERS = {
    "Server": "workmate",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every answer. Nothing here is a page, so nothing may be run, framed or guessed."""

_HSTS = "max-age=31536000"


@web.middleware
async def answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id and turn every error into a problem."""
    given = request.headers.get(REQUEST_ID, "")
    services = services_of(request)
    request[ID_KEY] = given if _GIVEN_ID.fullmatch(given) else services.entropy.uuid7()
    try:
        return await handler(request)
    except web.HTTPException as error:
        problem = problem_for(error)
        if problem is None:
            raise
        return problem.response(services.settings)
    except ConnectionError:
        raise
    except Exception as error:
        problem = problem_for(error)
        if problem is None:
            LOG.exception("request %s, %s %s", request[ID_KEY], request.method, _route(request))
            problem = ProblemError("internal")
        return problem.response(services.settings)


@web.middleware
async def compress_answers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Compress JSON answers of some size for callers that take gzip."""
    response = await handler(request)
    least = services_of(request).settings.answer_compressed_bytes_min
    if not isinstance(response, web.Response) or "json" not in response.content_type:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    body = response.body
    if isinstance(body, bytes) and len(body) >= least and takes_gzip(request):
        if len(body) <= _INLINE_BYTES_MAX:
            response.body = _gzip(body)
        else:
            response.body = await services_of(request).run_blocking(_gzip, body)
        response.headers["Content-Encoding"] = "gzip"
    return response


async def add_safety_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add what every answer carries; a `Cache-Control` that is there stays."""
    response.headers.update(SAFETY_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    if ID_KEY in request:
        response.headers[REQUEST_ID] = request[ID_KEY]
    if request.secure:
        response.headers["Strict-Transport-Security"] = _HSTS


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(_FAST, wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "(no route)"
