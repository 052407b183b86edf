"""Principals: create, change, deactivate, list.

An organisation's own id may be given; otherwise the id is derived from the request's key, so that a
repeat names the same principal.
"""

from aiohttp import web
from msgspec import UNSET, UnsetType

from workmate_server.engine.model import Submission
from workmate_server.http.administration import (
    AdministrationBody,
    Request,
    decide,
    read_request,
    refuse_system_role,
    submission_for,
)
from workmate_server.http.authentication import authenticate, require_role
from workmate_server.http.cursors import make_cursor, read_cursor
from workmate_server.http.headers import matches, path_id, version_tag
from workmate_server.http.parameters import PAGING, Parameters
from workmate_server.http.problems import ProblemError
from workmate_server.http.rendering import rendering
from workmate_server.http.responses import json_response, page_response
from workmate_server.http.services import Services, services_of
from workmate_server.http.sight import ADMINISTRATION_ROLES
from workmate_server.identity.authenticate import Caller, read_principal
from workmate_server.store import reads_identity
from workmate_server.store.loads import load_snapshots
from workmate_shared.kernel.ids import Identifier, principal_id_for
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import Kind, Names, Roles

_READERS = (*ADMINISTRATION_ROLES, Role.DISPATCHER, Role.SUPERVISOR)
_SCOPE = ["principals"]


class NewPrincipal(AdministrationBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person or a service to be known from now on."""

    principal_id: Identifier | None = None
    kind: Kind
    display_name: str
    roles: Roles = ()
    skills: Names = ()
    domains: Names = ()


class ChangedPrincipal(AdministrationBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to change; lists are replaced whole."""

    display_name: str | UnsetType = UNSET
    roles: Roles | UnsetType = UNSET
    skills: Names | UnsetType = UNSET
    domains: Names | UnsetType = UNSET
    away: bool | UnsetType = UNSET


async def create_principal(request: web.Request) -> web.StreamResponse:
    """Create a principal; answers `{principal_id}` beside the outcome."""
    asked = await read_request(request, NewPrincipal)
    return await decide(
        asked.services,
        asked.caller,
        lambda: _creation(asked),
        lambda decided: {"principal_id": decided.aggregate_id},
        created_below="/v1/principals",
    )


def _creation(asked: Request) -> Submission:
    body: NewPrincipal = asked.body
    refuse_system_role(body.roles)
    principal_id = body.principal_id or principal_id_for(
        asked.caller.tenant_id, asked.caller.principal_id, asked.key
    )
    public = {
        "kind": body.kind,
        "roles": body.roles,
        "skills": body.skills,
        "domains": body.domains,
    }
    personal = {"display_name": body.display_name}
    return submission_for(asked, "create_principal", principal_id, public, personal)


async def change_principal(request: web.Request) -> web.StreamResponse:
    """Change what the body names."""
    principal_id = path_id(request, "principal_id")
    asked = await read_request(request, ChangedPrincipal)
    return await decide(
        asked.services,
        asked.caller,
        lambda: _change(asked, principal_id),
        lambda _: {"principal_id": principal_id},
    )


def _change(asked: Request, principal_id: str) -> Submission:
    body: ChangedPrincipal = asked.body
    if body.roles is not UNSET:
        refuse_system_role(body.roles)
    values = {
        "roles": body.roles,
        "skills": body.skills,
        "domains": body.domains,
        "away": body.away,
    }
    public = {name: value for name, value in values.items() if value is not UNSET}
    named = body.display_name
    personal = None if named is UNSET else {"display_name": named}
    return submission_for(asked, "change_principal", principal_id, public, personal)


async def deactivate_principal(request: web.Request) -> web.StreamResponse:
    """End what a principal may do; what its devices still hold is taken in and handed over."""
    principal_id = path_id(request, "principal_id")
    asked = await read_request(request, AdministrationBody)
    return await decide(
        asked.services,
        asked.caller,
        lambda: submission_for(asked, "deactivate_principal", principal_id, {}),
        lambda _: {"principal_id": principal_id},
    )


async def list_principals(request: web.Request) -> web.StreamResponse:
    """List the principals of the tenant, by id."""
    caller = await authenticate(request)
    require_role(caller, *_READERS)
    services = services_of(request)
    parameters = Parameters(request, PAGING)
    return await services.run_blocking(_list, services, caller, request, parameters)


def _list(
    services: Services, caller: Caller, request: web.Request, parameters: Parameters
) -> web.StreamResponse:
    page = parameters.page(services.settings)
    after = read_cursor(services, caller, _SCOPE, parameters.text("cursor")) or ("",)
    with rendering(services, caller) as renderer:
        found = reads_identity.list_principals(
            renderer.connection, caller.tenant_id, after[0], page.look
        )
        principals = [read_principal(data) for data in found[: page.items_max]]
        items = [renderer.principal(principal) for principal in principals]
    more = len(found) > page.items_max
    last = (principals[-1].principal_id,) if more else None
    cursor = make_cursor(services, caller, _SCOPE, last) if last else None
    return page_response(request, items, cursor)


async def show_principal(request: web.Request) -> web.StreamResponse:
    """Show one principal; everybody may see himself."""
    caller = await authenticate(request)
    services = services_of(request)
    return await services.run_blocking(
        _show, services, caller, request, path_id(request, "principal_id")
    )


def _show(
    services: Services, caller: Caller, request: web.Request, principal_id: str
) -> web.StreamResponse:
    if principal_id != caller.principal_id and caller.roles.isdisjoint(_READERS):
        raise ProblemError("not_found")
    with rendering(services, caller) as renderer:
        found = load_snapshots(
            renderer.connection, caller.tenant_id, "principal", [principal_id], lock=False
        )
        if principal_id not in found:
            raise ProblemError("not_found")
        principal = read_principal(found[principal_id])
        view = renderer.principal(principal)
    headers = {"ETag": version_tag(principal.version), "Cache-Control": "private, no-cache"}
    if matches(request, principal.version):
        return web.Response(status=304, headers=headers)
    return json_response(view, headers=headers)


routes = [
    web.post("/v1/principals", create_principal),
    web.get("/v1/principals", list_principals),
    web.get("/v1/principals/{principal_id}", show_principal),
    web.post("/v1/principals/{principal_id}/change", change_principal),
    web.post("/v1/principals/{principal_id}/deactivate", deactivate_principal),
]
"""The addresses of principals."""
