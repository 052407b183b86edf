"""Uploads of evidence: tus 1.0.0, core protocol and creation, at `/v1/uploads`.

Bytes are streamed and never held whole. An upload of somebody else is not found, like one that is
not there.
"""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
from aiohttp import web

from workmate_server.evidence.uploads import Uploader, UploadError, Uploads
from workmate_server.http import tus
from workmate_server.http.authentication import authenticate
from workmate_server.http.headers import path_id
from workmate_server.http.problems import ProblemError, problem_for, too_large
from workmate_server.http.services import Services, services_of
from workmate_server.ports import BlobStoreUnavailableError
from workmate_server.store.database import DatabaseAwayError, DuplicateError

routes = web.RouteTableDef()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_PATH = "/v1/uploads"
_ONE = _PATH + "/{upload_id}"
_EXPECTED = (ProblemError, DatabaseAwayError, DuplicateError, BlobStoreUnavailableError)


def _speaks_tus(handler: Handler) -> Handler:
    """Refuse other versions of the protocol, and name ours in every answer, problems included."""

    @functools.wraps(handler)
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            tus.require_version(request)
            response = await handler(request)
        except UploadError as error:
            raise _tell(_problem(error)) from error
        except ConnectionError as error:
            # Nobody is there to read it; it ends the request without a fault in the log.
            raise _tell(ProblemError("invalid_request", "The body was cut off.")) from error
        except _EXPECTED as error:
            raise _tell(problem_for(error)) from error
        response.headers[tus.RESUMABLE] = tus.VERSION
        return response

    return answer


def _tell(problem: ProblemError | None) -> ProblemError:
    told = problem or ProblemError("internal")
    told.headers[tus.RESUMABLE] = tus.VERSION
    return told


def _problem(error: UploadError) -> ProblemError:
    return too_large(error.limit) if error.code == "too_large" else ProblemError(error.code)


def uploads_of(services: Services) -> Uploads:
    """Return the uploads of this server."""
    return Uploads(
        database=services.database,
        blobs=services.blobs,
        settings=services.settings,
        clock=services.clock,
        entropy=services.entropy,
        run_blocking=services.run_blocking,
    )


async def _uploader(request: web.Request) -> Uploader:
    caller = await authenticate(request)
    return Uploader(caller.tenant_id, caller.principal_id, may_act=not caller.barred)


@routes.options(_PATH)
@routes.options(_ONE)
async def describe(request: web.Request) -> web.StreamResponse:
    """Say which versions, extensions and sizes are taken; nobody needs to sign in to ask."""
    return web.Response(
        status=204,
        headers={
            tus.RESUMABLE: tus.VERSION,
            "Tus-Version": tus.VERSION,
            "Tus-Extension": tus.EXTENSIONS,
            "Tus-Max-Size": str(services_of(request).settings.upload_bytes_max),
        },
    )


@routes.post(_PATH)
@_speaks_tus
async def create(request: web.Request) -> web.StreamResponse:
    """Begin an upload; `Upload-Offset` says how much of the file needs no sending."""
    uploader = await _uploader(request)
    announced = tus.announced(request)
    upload, offset = await uploads_of(services_of(request)).begin(uploader, announced)
    headers = {"Location": f"{_PATH}/{upload.upload_id}", tus.OFFSET: str(offset)}
    return web.Response(status=201, headers=headers)


@routes.head(_ONE)
@_speaks_tus
async def show(request: web.Request) -> web.StreamResponse:
    """Say how much of an upload is held."""
    uploader = await _uploader(request)
    uploads = uploads_of(services_of(request))
    upload, offset = await uploads.find(uploader, path_id(request, "upload_id"))
    return web.Response(headers=tus.progress_headers(upload, offset))


@routes.patch(_ONE)
@_speaks_tus
async def append(request: web.Request) -> web.StreamResponse:
    """Take bytes from an offset on; with the last one the hash is verified."""
    services = services_of(request)
    uploader = await _uploader(request)
    if request.content_type != tus.OFFSET_TYPE:
        raise ProblemError("wrong_type", f"The body must be {tus.OFFSET_TYPE}.")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ProblemError("wrong_type", "Files are taken as they are, without a coding.")
    offset = tus.number(request, tus.OFFSET)
    uploads = uploads_of(services)
    upload, held = await uploads.find(uploader, path_id(request, "upload_id"))
    if offset != held:
        raise ProblemError("upload_conflict", headers={tus.OFFSET: str(held)})
    if offset + (request.content_length or 0) > upload.size:
        raise too_large(upload.size)
    content = _content(request, services.settings.upload_read_bytes)
    end = await uploads.append(upload, offset, content)
    return web.Response(status=204, headers={tus.OFFSET: str(end)})


@routes.post(_ONE)
async def override(request: web.Request) -> web.StreamResponse:
    """Do what `X-HTTP-Method-Override` says, for networks that let only GET and POST pass."""
    method = request.headers.get(tus.OVERRIDE, "").upper()
    handler = {"PATCH": append, "HEAD": show}.get(method)
    if handler is None:
        raise web.HTTPMethodNotAllowed("POST", ["HEAD", "OPTIONS", "PATCH"])
    return await handler(request)


async def _content(request: web.Request, read_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body as it comes; a body that is cut off is a connection that was."""
    try:
        async for chunk in request.content.iter_chunked(read_bytes):
            yield chunk
    except (web.RequestPayloadError, aiohttp.ClientPayloadError) as error:
        raise ConnectionResetError("the body was cut off") from error
