"""A small real server on loopback that decides, signs and keeps files, and misbehaves as it is told.

It speaks the device's part of the API over HTTP, for one tenant with one device. Every try of every
command is kept as it came, so that a test can compare the bytes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from blake3 import blake3
from msgspec.structs import replace

from support.faults import Fault, json_answer, problem, serving
from support.signing_log import NOW, SigningLog
from workmate_shared.wire.binary import from_base64
from workmate_shared.wire.codec import encode
from workmate_shared.wire.dsse import COMMAND_TYPE, SESSION_TYPE, Envelope, open_envelope
from workmate_shared.wire.messages import (
    Change,
    KeyNotice,
    Limits,
    NonceAnswer,
    NonceRequest,
    Outcome,
    ProtocolRange,
    Pull,
    SessionAnswer,
    SignedCommand,
    SyncAnswer,
    SyncRequest,
)
from workmate_shared.wire.session import decode_challenge

SYNC = "/v1/sync"
UPLOADS = "/v1/uploads"
ENROLMENTS = "/v1/enrolments"
_TUS = {"Tus-Resumable": "1.0.0"}


class Upload(msgspec.Struct):
    """An upload that was begun, and the bytes that have come so far."""

    hash: str
    size: int
    task_id: str
    content: bytes = b""


class ScriptedServer:
    """What it decides is said by `decisions`, what goes wrong by `fail`.

    `decisions` maps a command's name or id to what `SigningLog.decide` is given; a code alone makes
    it a retry. `effects` counts how often each command was decided; `tries` has its bytes, one for
    each time it came. `allowed` lists the tasks for which uploads are taken, None for all. `refuse`
    answers certain requests without doing anything, `hang_on` names those that never get an answer.
    """

    def __init__(self, log: SigningLog, device_keys: dict[str, bytes]) -> None:
        self.log = log
        self.device_keys = device_keys
        self.lineage = log.lineage
        self.decisions: dict[str, dict[str, Any] | str] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.effects: dict[str, int] = {}
        self.requests: list[SyncRequest] = []
        self.tries: dict[str, list[bytes]] = {}
        self.calls: list[str] = []
        self.tokens: set[str] = set()
        self.uses_left: int | None = None
        self.limits = Limits(commands=500, request_bytes=1 << 20, upload_bytes=1 << 30, keep_from=0)
        self.keys: tuple[KeyNotice, ...] = ()
        self.backoff = 0.0
        self.server_time = NOW
        self.pull: Callable[[SyncRequest], Pull] = _nothing_new
        self.uploads: dict[str, Upload] = {}
        self.held: dict[str, bytes] = {}
        self.allowed: set[str] | None = None
        self.refuse: Callable[[SyncRequest], web.Response | None] = lambda _request: None
        self.hang_on: Callable[[SyncRequest], bool] = lambda _request: False
        self.on_hang: Callable[[], None] = lambda: None
        self.closing = asyncio.Event()
        self.url = ""
        self._script: dict[str, list[Fault | None]] = {}

    def fail(self, path: str, *faults: Fault | None) -> None:
        """Let the next requests to a path (or "METHOD path") go wrong; None lets one go well."""
        self._script.setdefault(path, []).extend(faults)

    def hang(self) -> Fault:
        """Return a fault that takes the request and never answers; `on_hang` hears of it."""

        async def spoil(_request: web.BaseRequest, done: web.Response) -> web.StreamResponse:
            self.on_hang()
            await self.closing.wait()
            return done

        return Fault(spoil, works=False)

    def serve_pages(self, *pages: tuple[Change, ...]) -> None:
        """Serve these pages, one after the other, to whoever starts without a cursor."""

        def serve(request: SyncRequest) -> Pull:
            number = int(request.cursor or 0)
            if number >= len(pages):
                return _nothing_new(request)
            return Pull(
                changes=pages[number],
                since=request.cursor,
                cursor=str(number + 1),
                more=number + 1 < len(pages),
            )

        self.pull = serve

    def differing_tries(self) -> list[str]:
        """Return the commands of which two tries were not the same bytes; there must be none."""
        return [name for name, tries in self.tries.items() if len(set(tries)) != 1]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, as the script says."""
        self.calls.append(f"{request.method} {request.path}")
        path = UPLOADS if request.path.startswith(UPLOADS) else request.path
        waiting = self._script.get(f"{request.method} {path}") or self._script.get(path) or []
        fault = waiting.pop(0) if waiting else None
        done = web.Response() if fault and not fault.works else await self._work(request, path)
        return done if fault is None else await fault.spoil(request, done)

    async def _work(self, request: web.BaseRequest, path: str) -> web.Response:
        body = await request.read()
        if path == "/v1/sessions/nonce":
            nonce = msgspec.json.decode(body, type=NonceRequest)
            assert nonce.tenant_id == self.log.tenant_id
            return json_answer(NonceAnswer("aa" * 16, next(iter(self.log.keys)), NOW))
        if path == "/v1/sessions":
            return self._open_session(msgspec.json.decode(body, type=Envelope))
        if path == ENROLMENTS:
            return json_answer(self._decide(msgspec.json.decode(body, type=SignedCommand)))
        if not self._is_known(request):
            return problem(401, "unauthenticated")
        if path == UPLOADS:
            return self._upload(request, body)
        if path == "/v1/sync/wait":
            return json_answer({"changed": "cursor" in request.query})
        asked = msgspec.json.decode(body, type=SyncRequest)
        if self.hang_on(asked):
            self.on_hang()
            await self.closing.wait()
        return self.refuse(asked) or self._sync(asked)

    def _open_session(self, envelope: Envelope) -> web.Response:
        challenge = decode_challenge(open_envelope(envelope, SESSION_TYPE, self.device_keys))
        token = f"token-{len(self.calls)}"
        self.tokens.add(token)
        names = (challenge.tenant_id, "usr", challenge.device_id)
        return json_answer(SessionAnswer(token, NOW, *names))

    def _is_known(self, request: web.BaseRequest) -> bool:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            return False
        if self.uses_left is not None:
            self.uses_left -= 1
            if not self.uses_left:
                self.tokens.clear()
                self.uses_left = None
        return True

    def _sync(self, request: SyncRequest) -> web.Response:
        self.requests.append(request)
        answer = SyncAnswer(
            protocol=ProtocolRange(1, 1),
            lineage=self.lineage,
            server_time=self.server_time,
            limits=self.limits,
            keys=self.keys,
            backoff=self.backoff,
            outcomes=tuple(self._decide(command) for command in request.commands),
            pull=self.pull(request),
        )
        return json_answer(answer)

    def _decide(self, command: SignedCommand) -> Outcome:
        payload = open_envelope(command.envelope, COMMAND_TYPE, self.device_keys)
        said = msgspec.json.decode(payload)
        name, kind = said["command_id"], said["type"]
        self.tries.setdefault(name, []).append(encode(command))
        if name in self.outcomes:
            return replace(self.outcomes[name], replayed=True)
        missing = [h for h in said.get("hashes", ()) if h not in self.held]
        decision = self.decisions.get(name, self.decisions.get(kind, {}))
        if isinstance(decision, str) or missing:
            return Outcome(
                command_id=name,
                status="retry",
                code=decision if isinstance(decision, str) else "bytes_missing",
                details={"hashes": missing},
            )
        self.outcomes[name] = self.log.decide(payload, **decision)
        self.effects[name] = self.effects.get(name, 0) + 1
        return self.outcomes[name]

    def _upload(self, request: web.BaseRequest, body: bytes) -> web.Response:
        if request.method == "POST":
            return self._create_upload(request)
        upload = self.uploads.get(request.path)
        if upload is None:
            return problem(404, "not_found")
        if request.method == "PATCH":
            if int(request.headers["Upload-Offset"]) != len(upload.content):
                return problem(409, "upload_conflict")
            upload.content += body
            if len(upload.content) == upload.size and not self._keep(request.path, upload):
                return problem(460, "hash_mismatch")
        status = 204 if request.method == "PATCH" else 200
        headers = _TUS | {"Upload-Offset": str(len(upload.content))}
        return web.Response(status=status, headers=headers)

    def _keep(self, place: str, upload: Upload) -> bool:
        if blake3(upload.content).hexdigest() != upload.hash:
            del self.uploads[place]
            return False
        self.held[upload.hash] = upload.content
        return True

    def _create_upload(self, request: web.BaseRequest) -> web.Response:
        pairs = (pair.split(" ") for pair in request.headers["Upload-Metadata"].split(","))
        metadata = {name: from_base64(value).decode() for name, value in pairs}
        if self.allowed is not None and metadata["task_id"] not in self.allowed:
            return problem(404, "not_found")
        size = int(request.headers["Upload-Length"])
        place = f"{UPLOADS}/{len(self.calls)}"
        self.uploads[place] = Upload(metadata["hash"], size, metadata["task_id"])
        offset = size if metadata["hash"] in self.held else 0
        headers = _TUS | {"Location": place, "Upload-Offset": str(offset)}
        return web.Response(status=201, headers=headers)


def _nothing_new(request: SyncRequest) -> Pull:
    return Pull(since=request.cursor, cursor=request.cursor or "0")


@asynccontextmanager
async def scripted(server: ScriptedServer) -> AsyncIterator[ScriptedServer]:
    """Serve a scripted server on loopback."""
    async with serving(server.handle) as server.url:
        try:
            yield server
        finally:
            server.closing.set()
