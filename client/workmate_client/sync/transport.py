"""Talk to the server over HTTP: the only module of the sync engine that knows how.

A transfer is given up for standing still, never for taking long. Answers are bounded, and believed
only as `answers` says. Nothing follows a redirect, and nothing goes in the clear beyond this machine.
"""

import gzip
import ipaddress
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import aiohttp
from msgspec import Struct
from yarl import URL

from workmate_client.config import Settings
from workmate_client.sync.answers import (
    Inflater,
    RawAnswer,
    check_success,
    read_answer,
    unreadable,
)
from workmate_client.sync.blocking import RunBlocking, run_in_thread
from workmate_client.sync.failures import (
    CutError,
    InsecureServerError,
    RefusedError,
    StalledError,
    TransportError,
    UnreachableError,
)
from workmate_client.sync.progress import StallGuard
from workmate_client.sync.reading import read_sync_answer
from workmate_shared.wire.binary import to_base64
from workmate_shared.wire.codec import encode
from workmate_shared.wire.dsse import Envelope
from workmate_shared.wire.messages import (
    EnrolmentOffer,
    EnrolmentQuery,
    NonceAnswer,
    NonceRequest,
    Outcome,
    SessionAnswer,
    SignedCommand,
    SyncAnswer,
    SyncRequest,
)

T = TypeVar("T")

TUS_VERSION = "1.0.0"
PACK_FROM_BYTES = 1024
"""Requests smaller than this are not packed: it would not pay."""
SEND_PIECE_BYTES = 16 * 1024
"""A body is handed to the network in pieces of this size; each one taken counts as progress."""


# Answers to HEAD have no body that could say more.
_BODILESS_REFUSALS = {401: "unauthenticated", 404: "not_found", 410: "not_found"}


class NewUpload(Struct, frozen=True, kw_only=True):
    """A file to be uploaded: BLAKE3 hash (hex), size in bytes, names, and the task it is for."""

    task_id: str
    hash: str
    size_bytes: int
    file_name: str
    media_type: str


class UploadPlace(Struct, frozen=True):
    """Where an upload goes on: its address within the server, and how many bytes the server has."""

    url: str
    offset: int


class Transport(Protocol):
    """What the sync engine asks of the network. Everything raises TransportError, and only that."""

    async def offer(self, code_hash: str) -> EnrolmentOffer:
        """Ask whom a one-time code enrols and by which keys the server signs."""
        ...

    async def enrol(self, signed: SignedCommand) -> Outcome:
        """Send the signed `enrol` command; the outcome is not verified here."""
        ...

    async def nonce(self, request: NonceRequest) -> NonceAnswer:
        """Ask for a challenge."""
        ...

    async def open_session(self, challenge: Envelope) -> SessionAnswer:
        """Give the signed challenge and get a bearer token."""
        ...

    async def sync(self, token: str, request: SyncRequest) -> SyncAnswer:
        """One round trip; nothing of the answer is verified here."""
        ...

    async def wait(self, token: str, cursor: str | None, timeout_seconds: float) -> bool:
        """Hold a request until something changed after the cursor, or the time is up."""
        ...

    async def create_upload(self, token: str, upload: NewUpload) -> UploadPlace:
        """Begin an upload (tus 1.0.0, creation)."""
        ...

    async def upload_offset(self, token: str, url: str) -> int:
        """Ask how many bytes of an upload the server has (tus 1.0.0, HEAD)."""
        ...

    async def send_chunk(self, token: str, url: str, offset: int, chunk: bytes) -> int:
        """Send bytes from an offset on and return the new offset (tus 1.0.0, PATCH)."""
        ...


class _Changed(Struct, frozen=True):
    changed: bool


class HttpTransport:
    """The `Transport` over HTTP, as an asynchronous context manager."""

    def __init__(
        self, server_url: str, settings: Settings, run_blocking: RunBlocking = run_in_thread
    ) -> None:
        """Check the address. Raises InsecureServerError for plain http beyond this machine."""
        self._base = checked_address(server_url)
        self._settings = settings
        self._run_blocking = run_blocking
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; the transport can be used again afterwards."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def offer(self, code_hash: str) -> EnrolmentOffer:
        """Ask whom a one-time code enrols and by which keys the server signs."""
        return await self._post("v1/enrolments/offer", EnrolmentQuery(code_hash), EnrolmentOffer)

    async def enrol(self, signed: SignedCommand) -> Outcome:
        """Send the signed `enrol` command; the outcome is not verified here."""
        return await self._post("v1/enrolments", signed, Outcome)

    async def nonce(self, request: NonceRequest) -> NonceAnswer:
        """Ask for a challenge."""
        return await self._post("v1/sessions/nonce", request, NonceAnswer)

    async def open_session(self, challenge: Envelope) -> SessionAnswer:
        """Give the signed challenge and get a bearer token."""
        return await self._post("v1/sessions", challenge, SessionAnswer)

    async def sync(self, token: str, request: SyncRequest) -> SyncAnswer:
        """One round trip; nothing of the answer is verified here."""
        raw = await self._post_raw("v1/sync", request, token)
        limit_bytes = self._settings.answer_limit_bytes
        return await self._run_blocking(read_sync_answer, raw, limit_bytes)

    async def wait(self, token: str, cursor: str | None, timeout_seconds: float) -> bool:
        """Hold a request until something changed after the cursor, or the time is up."""
        query = {"timeout": f"{timeout_seconds:g}"} | ({"cursor": cursor} if cursor else {})
        url = (self._base / "v1/sync/wait").with_query(query)
        raw = await self._send("GET", url, token, patience_seconds=timeout_seconds)
        return (await self._read(raw, _Changed)).changed

    async def create_upload(self, token: str, upload: NewUpload) -> UploadPlace:
        """Begin an upload (tus 1.0.0, creation)."""
        metadata = {
            "hash": upload.hash,
            "filename": upload.file_name,
            "filetype": upload.media_type,
            "task_id": upload.task_id,
        }
        pairs = [f"{name} {to_base64(value.encode())}" for name, value in metadata.items()]
        headers = {"Upload-Length": str(upload.size_bytes), "Upload-Metadata": ",".join(pairs)}
        raw = await self._tus("POST", self._base / "v1/uploads", token, headers)
        return UploadPlace(self._own_place(raw), _offset(raw, default=0))

    async def upload_offset(self, token: str, url: str) -> int:
        """Ask how many bytes of an upload the server has (tus 1.0.0, HEAD)."""
        return _offset(await self._tus("HEAD", self._base.join(URL(url)), token, {}))

    async def send_chunk(self, token: str, url: str, offset: int, chunk: bytes) -> int:
        """Send bytes from an offset on and return the new offset (tus 1.0.0, PATCH)."""
        headers = {
            "Upload-Offset": str(offset),
            "Content-Type": "application/offset+octet-stream",
        }
        return _offset(await self._tus("PATCH", self._base.join(URL(url)), token, headers, chunk))

    async def _post(self, path: str, message: object, kind: type[T]) -> T:
        return await self._read(await self._post_raw(path, message), kind)

    async def _post_raw(self, path: str, message: object, token: str | None = None) -> RawAnswer:
        body = await self._run_blocking(encode, message)
        headers = {"Content-Type": "application/json"}
        if len(body) >= PACK_FROM_BYTES:
            body = await self._run_blocking(gzip.compress, body, mtime=0)
            headers["Content-Encoding"] = "gzip"
        return await self._send("POST", self._base / path, token, headers, body)

    async def _read(self, raw: RawAnswer, kind: type[T]) -> T:
        return await self._run_blocking(read_answer, raw, kind, self._settings.answer_limit_bytes)

    async def _tus(
        self, method: str, url: URL, token: str, headers: Mapping[str, str], body: bytes = b""
    ) -> RawAnswer:
        raw = await self._send(method, url, token, {"Tus-Resumable": TUS_VERSION, **headers}, body)
        if method == "HEAD" and raw.status in _BODILESS_REFUSALS:
            raise RefusedError(_BODILESS_REFUSALS[raw.status], raw.status, "upload refused")
        check_success(raw)
        # Bodies of successes mean nothing in tus; a portal's page has no such header.
        if raw.headers.get("tus-resumable") != TUS_VERSION:
            raise unreadable(raw, f"status {raw.status}, not tus {TUS_VERSION}")
        return raw

    def _own_place(self, raw: RawAnswer) -> str:
        """Return the upload's address without the server's; the token goes to no other."""
        try:
            url = (self._base / "v1/uploads").join(URL(raw.headers.get("location", "")))
        except ValueError as error:
            raise unreadable(raw, f"Location: {error}") from error
        if url.origin() != self._base.origin() or url.path == (self._base / "v1/uploads").path:
            raise unreadable(raw, "no Location at our server")
        return url.raw_path_qs

    async def _send(
        self,
        method: str,
        url: URL,
        token: str | None,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        *,
        patience_seconds: float = 0.0,
    ) -> RawAnswer:
        guard = StallGuard(self._settings.stall_timeout_seconds + patience_seconds)
        given = {"Accept-Encoding": "gzip", **headers}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        if body or method in ("POST", "PATCH"):
            given["Content-Length"] = str(len(body))
        options: dict[str, Any] = {"data": _pieces(body, guard)} if body else {}
        try:
            async with (
                guard,
                self._opened().request(
                    method, url, headers=given, allow_redirects=False, **options
                ) as response,
            ):
                guard.progressed()
                return await self._collect(response, guard)
        except TimeoutError as error:
            raise _timeout_error(error) from error
        except aiohttp.ClientConnectorError as error:
            raise UnreachableError(str(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise CutError(f"{type(error).__name__}: {error}") from error

    async def _collect(self, response: aiohttp.ClientResponse, guard: StallGuard) -> RawAnswer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        inflater = Inflater(headers.get("content-encoding"), self._settings.answer_limit_bytes)
        async for piece in response.content.iter_any():
            guard.progressed()
            inflater.feed(piece)
        has_body = response.method != "HEAD"
        return RawAnswer(response.status, headers, inflater.finish() if has_body else b"")

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._settings.connect_timeout_seconds
                ),
            )
        return self._session


async def _pieces(body: bytes, guard: StallGuard) -> AsyncIterator[bytes]:
    for start in range(0, len(body), SEND_PIECE_BYTES):
        guard.progressed()
        yield body[start : start + SEND_PIECE_BYTES]
    guard.progressed()


def _timeout_error(error: TimeoutError) -> TransportError:
    if isinstance(error, aiohttp.ServerTimeoutError):
        return UnreachableError("the connection did not open in time")
    return StalledError("nothing moved on the connection")


def _offset(raw: RawAnswer, default: int | None = None) -> int:
    text = raw.headers.get("upload-offset", "" if default is None else str(default))
    if not (text.isascii() and text.isdigit()):
        raise unreadable(raw, "no Upload-Offset")
    return int(text)


def checked_address(server_url: str) -> URL:
    """Return the server's address. Raises InsecureServerError unless what is sent stays private.

    That is https, or http to this very machine.
    """
    try:
        url = URL(server_url)
    except ValueError as error:
        raise InsecureServerError(f"not an address: {error}") from error
    if url.host and (url.scheme == "https" or (url.scheme == "http" and _is_loopback(url.host))):
        return url.with_query(None).with_fragment(None)
    raise InsecureServerError(f"{server_url!r} is neither https nor on this machine")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
