"""Webhooks and what waits for them, at `/v1/subscriptions`, for administrators.

A secret is shown once, when the subscription is made. Dead letters are what could not be delivered;
`redrive` lets them be tried again.
"""

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Meta, Struct

from workmate_server.http.authentication import authenticate, require_role
from workmate_server.http.cursors import make_cursor, read_cursor
from workmate_server.http.headers import idempotency_key, path_id
from workmate_server.http.parameters import PAGING, Parameters
from workmate_server.http.problems import ProblemError
from workmate_server.http.requests import read_json
from workmate_server.http.responses import json_response, page_response
from workmate_server.http.services import Services, services_of
from workmate_server.identity.authenticate import Caller
from workmate_server.outbox.signing import make_secret, seal_secret
from workmate_server.store import outbox
from workmate_server.store.outbox import Subscription
from workmate_shared.kernel.hashing import derive_uuid8
from workmate_shared.kernel.table import Role

routes = web.RouteTableDef()

SUBSCRIPTION_CONTEXT = "workmate 2026 subscription id"
URL_CHARACTERS_MAX = 2000

_PATH = "/v1/subscriptions"
_ONE = _PATH + "/{subscription_id}"
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_SCOPE = "dead-letters"


class NewSubscription(Struct, frozen=True, forbid_unknown_fields=True):
    """What an administrator asks for: where events are to be posted."""

    url: Annotated[str, Meta(min_length=1, max_length=URL_CHARACTERS_MAX)]


@routes.post(_PATH)
async def create(request: web.Request) -> web.StreamResponse:
    """Make a webhook. A repeat of the request's key answers the same one, without its secret."""
    services, caller = await _administrator(request)
    wanted = await read_json(request, NewSubscription)
    _check_url(wanted.url)
    key = idempotency_key(request)
    body, made = await services.run_blocking(_create, services, caller, wanted.url, key)
    return json_response(
        body,
        status=201 if made else 200,
        headers={"Location": f"{_PATH}/{body['subscription_id']}"} if made else None,
    )


@routes.get(_PATH, allow_head=False)
async def show_all(request: web.Request) -> web.StreamResponse:
    """List the subscriptions, the server's own rules among them, and how much waits for each."""
    services, caller = await _administrator(request)
    found = await services.run_blocking(_list, services, caller)
    return json_response({"items": found, "next": None})


@routes.delete(_ONE)
async def remove(request: web.Request) -> web.StreamResponse:
    """End a webhook; what waited for it is dropped."""
    services, caller = await _administrator(request)
    await services.run_blocking(_remove, services, caller, path_id(request, "subscription_id"))
    return web.Response(status=204)


@routes.get(_ONE + "/dead-letters", allow_head=False)
async def dead_letters(request: web.Request) -> web.StreamResponse:
    """List what could not be delivered, in order of the log, with the last attempt's answer."""
    services, caller = await _administrator(request)
    given = Parameters(request, PAGING)
    subscription_id = path_id(request, "subscription_id")
    limit = given.page(services.settings).items_max
    scope = [_SCOPE, subscription_id]
    place = read_cursor(services, caller, scope, given.text("cursor"))
    after = 0 if place is None else int(place[0])
    items = await services.run_blocking(
        _dead_letters, services, caller, subscription_id, after, limit + 1
    )
    following = None
    if len(items) > limit:
        items = items[:limit]
        following = make_cursor(services, caller, scope, (items[-1]["seq"],))
    return page_response(request, items, following)


@routes.post(_ONE + "/redrive")
async def redrive(request: web.Request) -> web.StreamResponse:
    """Let the dead letters be tried again, and a subscription that had ended work again."""
    services, caller = await _administrator(request)
    revived = await services.run_blocking(
        _redrive, services, caller, path_id(request, "subscription_id")
    )
    return json_response({"redriven": revived})


async def _administrator(request: web.Request) -> tuple[Services, Caller]:
    caller = await authenticate(request)
    require_role(caller, Role.ADMIN)
    return services_of(request), caller


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and "@" not in parts.netloc
            and not parts.fragment
            and _VISIBLE.fullmatch(url) is not None
        )
    except ValueError:
        good = False
    if not good:
        raise ProblemError(
            "invalid_request",
            "It is an http or https address, without a name, password or fragment.",
            path="$.url",
        )


def _create(
    services: Services, caller: Caller, url: str, key: str | None
) -> tuple[dict[str, Any], bool]:
    subscription_id = (
        services.entropy.uuid7()
        if key is None
        else derive_uuid8(SUBSCRIPTION_CONTEXT, caller.tenant_id, caller.principal_id, key)
    )
    secret = make_secret(services.entropy)
    with services.database.write() as connection:
        known = outbox.find_subscription(connection, caller.tenant_id, subscription_id)
        if known is not None:
            if known.target != url:
                raise ProblemError("idempotency_key_reused")
            return {"subscription_id": subscription_id, "url": url, "already_issued": True}, False
        outbox.add_subscription(
            connection,
            Subscription(
                tenant_id=caller.tenant_id,
                subscription_id=subscription_id,
                kind=outbox.WEBHOOK,
                target=url,
                sealed_secret=seal_secret(secret, services.keys.sealing_key, services.entropy),
                active=True,
            ),
        )
    return {"subscription_id": subscription_id, "url": url, "secret": secret}, True


def _list(services: Services, caller: Caller) -> list[dict[str, Any]]:
    with services.database.read() as connection:
        found = outbox.list_subscriptions(connection, caller.tenant_id)
    return [
        {
            "subscription_id": one.subscription_id,
            "kind": one.kind,
            "url": one.target if one.kind == outbox.WEBHOOK else None,
            "active": one.active,
            "pending": counts.get(outbox.PENDING, 0),
            "dead": counts.get(outbox.DEAD, 0),
        }
        for one, counts in found
    ]


def _find(connection: Any, caller: Caller, subscription_id: str) -> Subscription:
    found = outbox.find_subscription(connection, caller.tenant_id, subscription_id)
    if found is None:
        raise ProblemError("not_found")
    return found


def _remove(services: Services, caller: Caller, subscription_id: str) -> None:
    with services.database.write() as connection:
        found = _find(connection, caller, subscription_id)
        # The server's own rules are no webhooks, and nobody ends them from outside.
        if found.kind != outbox.WEBHOOK:
            raise ProblemError("not_found")
        outbox.remove_subscription(connection, caller.tenant_id, subscription_id)


def _dead_letters(
    services: Services, caller: Caller, subscription_id: str, after_seq: int, limit: int
) -> list[dict[str, Any]]:
    with services.database.read() as connection:
        _find(connection, caller, subscription_id)
        rows = outbox.dead_letters(connection, caller.tenant_id, subscription_id, after_seq, limit)
        attempts = outbox.last_attempts(connection, [row.outbox_id for row in rows])
    return [_dead_letter(row, attempts.get(row.outbox_id)) for row in rows]


def _dead_letter(row: Any, attempt: Any) -> dict[str, Any]:
    last = None
    if attempt is not None:
        last = {
            "at": attempt.at,
            "status_code": attempt.status_code,
            "response": attempt.response,
        }
    return {
        "event_id": row.event_id,
        "seq": row.seq,
        "aggregate_id": row.aggregate_id,
        "attempts": row.attempts,
        "last_error": row.last_error,
        "last_attempt": last,
    }


def _redrive(services: Services, caller: Caller, subscription_id: str) -> int:
    with services.database.write() as connection:
        _find(connection, caller, subscription_id)
        return outbox.redrive(connection, caller.tenant_id, subscription_id, services.now())
