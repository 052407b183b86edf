"""The log over HTTP: events after a seq, and batches with all their leaves.

`after` is a place in the log; `next` gives the one to go on from. Whoever reads events of tasks
sees their values only in the roles that may open them; whoever holds every header and leaf can check
the whole log by himself.
"""

from aiohttp import web

from workmate_server.http.authentication import authenticate, require_role
from workmate_server.http.parameters import Parameters
from workmate_server.http.rendering import rendering
from workmate_server.http.responses import page_response
from workmate_server.http.services import Services, services_of
from workmate_server.http.sight import (
    ADMINISTRATION_ROLES,
    BATCH_ROLES,
    TASK_LOG_ROLES,
)
from workmate_server.identity.authenticate import Caller
from workmate_server.store import reads_log
from workmate_shared.wire.dsse import BATCH_TYPE, make_envelope

_PLACE = ("after", "limit")


async def list_log(request: web.Request) -> web.StreamResponse:
    """List events after a seq; those of principals only for administrators and auditors."""
    caller = await authenticate(request)
    require_role(caller, *TASK_LOG_ROLES)
    services = services_of(request)
    parameters = Parameters(request, _PLACE)
    return await services.run_blocking(_list_log, services, caller, request, parameters)


def _list_log(
    services: Services, caller: Caller, request: web.Request, parameters: Parameters
) -> web.StreamResponse:
    kinds = ["task", "principal"] if caller.roles & ADMINISTRATION_ROLES else ["task"]
    page = parameters.page(services.settings)
    with rendering(services, caller) as renderer:
        found, more = reads_log.list_log(
            renderer.connection, caller.tenant_id, kinds, parameters.number("after") or 0, page
        )
        events = renderer.events(found)
    following = str(found[-1].seq) if more else None
    return page_response(request, events, following, name="events", parameter="after")


async def list_batches(request: web.Request) -> web.StreamResponse:
    """List batches after a number: their signed headers and the text of all their leaves."""
    caller = await authenticate(request)
    require_role(caller, *BATCH_ROLES)
    services = services_of(request)
    parameters = Parameters(request, _PLACE)
    return await services.run_blocking(_list_batches, services, caller, request, parameters)


def _list_batches(
    services: Services, caller: Caller, request: web.Request, parameters: Parameters
) -> web.StreamResponse:
    page = parameters.page(services.settings)
    with services.database.read() as connection:
        found, more = reads_log.list_batches(
            connection, caller.tenant_id, parameters.number("after") or 0, page
        )
    items = [
        {
            "batch": one.batch,
            "header": make_envelope(BATCH_TYPE, one.header, one.keyid, one.signature),
            "leaves": [leaf.decode() for leaf in one.leaves],
        }
        for one in found
    ]
    following = str(found[-1].batch) if more else None
    return page_response(request, items, following, parameter="after")


routes = [
    web.get("/v1/log", list_log),
    web.get("/v1/log/batches", list_batches),
]
"""The addresses of the log."""
