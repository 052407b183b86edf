"""The JSON Schemas (draft 2020-12) of every command and event, for anybody."""

from aiohttp import web

from workmate_server.http.problems import ProblemError
from workmate_server.http.responses import page_response
from workmate_shared.wire.codec import encode
from workmate_shared.wire.schemas import schema_names, schema_of

SCHEMA_TYPE = "application/schema+json"


async def list_schemas(request: web.Request) -> web.StreamResponse:
    """List the wire names of all commands and events."""
    return page_response(request, schema_names(), None)


async def show_schema(request: web.Request) -> web.StreamResponse:
    """Show one schema."""
    name = request.match_info["name"]
    if name not in schema_names():
        raise ProblemError("not_found")
    return web.Response(body=encode(schema_of(name)), content_type=SCHEMA_TYPE)


routes = [
    web.get("/v1/schemas", list_schemas),
    web.get("/v1/schemas/{name}", show_schema),
]
"""The addresses of schemas."""
