"""Whether the process lives, and whether it can do its work; for whatever watches over it."""

from aiohttp import web

from workmate_server.http.responses import json_response
from workmate_server.http.services import Services, services_of
from workmate_server.store.loads import load_tenants


async def live(_request: web.Request) -> web.StreamResponse:
    """Answer as long as the process answers at all."""
    return json_response({"status": "live"})


async def ready(request: web.Request) -> web.StreamResponse:
    """Answer 200 while the database answers, else the problem `database_away`."""
    services = services_of(request)
    await services.run_blocking(_reach_database, services)
    return json_response({"status": "ready"})


def _reach_database(services: Services) -> None:
    with services.database.read() as connection:
        load_tenants(connection)


routes = [web.get("/health/live", live), web.get("/health/ready", ready)]
"""The addresses of health."""
