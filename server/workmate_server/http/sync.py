"""Sync: one round trip carries commands up, outcomes and changes down, at `/v1/sync`.

A refused pull costs no command its outcome, and no command the pull. `/v1/sync/wait` is a hint that
there is something to pull, never the only way to learn it.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
from aiohttp import web
from msgspec.structs import replace

from workmate_server.engine.model import Decided
from workmate_server.http.authentication import authenticate
from workmate_server.http.parameters import Parameters
from workmate_server.http.problems import ProblemError
from workmate_server.http.pull import (
    audience_of,
    key_notice,
    pull_page,
    pull_refused,
    read_place,
)
from workmate_server.http.requests import read_json_bytes
from workmate_server.http.responses import json_response
from workmate_server.http.services import Services, services_of
from workmate_server.http.stopping import unless_stopping
from workmate_server.http.sync_commands import Taken, decide, take, tell
from workmate_server.http.sync_request import Asked, read_sync
from workmate_server.identity.authenticate import Caller
from workmate_server.store import loads, reads_feed, reads_identity
from workmate_server.store.database import Connection, DatabaseAwayError
from workmate_shared.kernel.instants import format_instant, seconds_between
from workmate_shared.wire.batch import decode_header
from workmate_shared.wire.codec import MalformedError, encode
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, SignatureError, open_envelope
from workmate_shared.wire.messages import (
    PROTOCOL,
    PROTOCOL_MINIMUM,
    DeviceReport,
    KeyNotice,
    Limits,
    Outcome,
    ProtocolRange,
    Pull,
    SyncAnswer,
)

LOG = logging.getLogger(__name__)

routes = web.RouteTableDef()


@routes.post("/v1/sync")
async def sync(request: web.Request) -> web.StreamResponse:
    """Decide the commands of a request, then answer with their outcomes and a page of changes."""
    services = services_of(request)
    caller = await authenticate(request, noted_later=True)
    data = await read_json_bytes(request)
    asked, taken = await services.run_blocking(_read, services, caller, data)
    decided = await decide(services, caller, taken)
    return await services.run_blocking(_respond, services, caller, asked, taken, decided)


@routes.get("/v1/sync/wait", allow_head=False)
async def wait(request: web.Request) -> web.StreamResponse:
    """Answer as soon as something changed for the caller, or when the time is over."""
    services = services_of(request)
    caller = await authenticate(request)
    if caller.barred:
        raise ProblemError("access_not_allowed")
    given = Parameters(request, ("cursor", "timeout"))
    cursor, longest = given.text("cursor"), services.settings.long_poll_max_seconds
    asked = given.number("timeout")
    timeout = longest if asked is None else min(float(asked), longest)
    deadline = services.clock.monotonic() + timeout
    while True:
        changed, newest = await services.run_blocking(_look, services, caller, cursor)
        left = deadline - services.clock.monotonic()
        if changed or left <= 0:
            return json_response({"changed": changed})
        waiting = services.engine.wait_for_change(caller.tenant_id, newest, left)
        await unless_stopping(request, waiting)


def _read(services: Services, caller: Caller, data: bytes) -> tuple[Asked, list[Taken]]:
    asked = read_sync(data, services.settings)
    return asked, take(services, caller, asked.commands)


def _respond(
    services: Services,
    caller: Caller,
    asked: Asked,
    taken: Sequence[Taken],
    decided: Sequence[Decided],
) -> web.Response:
    outcomes = tell(services, caller, asked.commands, taken, decided)
    return json_response(_answer(services, caller, asked, outcomes))


def _answer(
    services: Services, caller: Caller, asked: Asked, outcomes: Sequence[Outcome]
) -> SyncAnswer:
    now, settings = services.now(), services.settings
    oldest = services.clock.now() - timedelta(seconds=settings.keep_from_age_seconds)
    with services.database.read() as connection:
        head: Any = loads.load_head(connection, caller.tenant_id)
        pull = _pull(services, connection, caller, head, asked)
        newest = _newest_batch(connection, head, asked.request.newest_header)
        keys = _new_keys(connection, head, newest)
        keep_from = reads_feed.newest_batch_before(
            connection, caller.tenant_id, head.batch, format_instant(oldest)
        )
        contact = reads_feed.load_contact(connection, caller.tenant_id, caller.credential_id)
    if caller.device_id is not None:
        _note_contact(services, caller, asked, contact, now)
    busy = any(outcome.code == "overloaded" for outcome in outcomes)
    return SyncAnswer(
        protocol=ProtocolRange(PROTOCOL_MINIMUM, PROTOCOL),
        lineage=head.lineage,
        server_time=now,
        limits=Limits(
            commands=settings.sync_commands_max,
            request_bytes=settings.request_bytes_max,
            upload_bytes=settings.upload_bytes_max,
            keep_from=max(keep_from, 1),
        ),
        pull=pull,
        keys=tuple(keys),
        backoff=settings.retry_after_seconds if busy else 0.0,
        outcomes=tuple(outcomes),
    )


def _pull(
    services: Services, connection: Connection, caller: Caller, head: Any, asked: Asked
) -> Pull:
    refused = pull_refused(connection, caller)
    if refused is not None:
        return refused
    if asked.fault is not None:
        return Pull(refused=asked.fault)
    request = asked.request
    if request.protocol < PROTOCOL_MINIMUM:
        return Pull(refused="protocol_too_old")
    limit = min(request.limit, services.settings.list_page_max)
    try:
        return pull_page(services, connection, caller, head, request.cursor, limit)
    except ProblemError as problem:
        return Pull(refused=problem.code)


def _newest_batch(connection: Connection, head: Any, envelope: Envelope | None) -> int:
    """Return the batch up to which a device knows the log, 0 where it shows nothing of this life."""
    if envelope is None:
        return 0
    known = reads_identity.log_keys(connection, head.tenant_id)
    keys = {name: bytes.fromhex(key) for name, key in known.items()}
    try:
        header = decode_header(open_envelope(envelope, BATCH_TYPE, keys))
    except (SignatureError, MalformedError):
        return 0
    if (header.tenant_id, header.lineage) != (head.tenant_id, head.lineage):
        return 0
    if header.batch > head.batch:
        LOG.error(
            "a device holds batch %d of tenant %s, and the log ends at batch %d: was it restored?",
            header.batch,
            head.tenant_id,
            head.batch,
        )
    return header.batch


def _new_keys(connection: Connection, head: Any, after_batch: int) -> list[KeyNotice]:
    rows = reads_feed.load_log_key_events(connection, head.tenant_id, after_batch)
    return [key_notice(connection, row) for row in rows]


def _note_contact(services: Services, caller: Caller, asked: Asked, known: Any, now: str) -> None:
    """Keep what a device says of itself, where that is worth a transaction.

    Its clock alone is not, and neither is what changes with each request of one that hands in its
    queue, but for once in the interval.
    """
    told = encode(asked.request.device).decode()
    if known is not None and known.report is not None:
        recent = seconds_between(known.last_used_at, now)
        same = _without_clock(known.report.encode()) == _without_clock(told.encode())
        if (same or asked.commands) and recent < services.settings.token_use_interval_seconds:
            return
    try:
        with services.database.write() as connection:
            reads_feed.note_contact(
                services.database,
                connection,
                caller.tenant_id,
                caller.credential_id,
                at=now,
                report=told,
            )
    except DatabaseAwayError:
        # The outcomes are worth more than the note.
        LOG.warning("could not note the contact of %s", caller.credential_id, exc_info=True)


def _without_clock(report: bytes) -> DeviceReport:
    return replace(msgspec.json.decode(report, type=DeviceReport), clock=None)


def _look(services: Services, caller: Caller, cursor: str | None) -> tuple[bool, int]:
    """Return whether anything changed for the caller after his cursor, and the log's newest seq."""
    with services.database.read() as connection:
        head: Any = loads.load_head(connection, caller.tenant_id)
        after_seq = read_place(services, caller, head, cursor)
        audience = audience_of(caller)
        changed = bool(audience) and reads_feed.changed_after(
            connection, caller.tenant_id, audience, after_seq
        )
    return changed, head.seq
