"""What lists and revocations of tokens and of devices have in common."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from workmate_server.http.administration import (
    AdministrationBody,
    Request,
    decide,
    submission_for,
)
from workmate_server.http.authentication import authenticate, require_role
from workmate_server.http.cursors import make_cursor, read_cursor
from workmate_server.http.headers import expected_version, idempotency_key
from workmate_server.http.parameters import PAGING, Parameters
from workmate_server.http.problems import ProblemError
from workmate_server.http.requests import read_json
from workmate_server.http.responses import page_response
from workmate_server.http.services import Services, services_of
from workmate_server.http.sight import ADMINISTRATION_ROLES
from workmate_server.identity.authenticate import Caller, read_principal
from workmate_server.store import reads_identity
from workmate_server.store.loads import load_snapshots
from workmate_shared.principals.principal import CredentialRecord


class RevocationBody(AdministrationBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a device is also asked to remove its data, after its queue was offered."""

    wipe: bool = False


Item = Callable[[Any, CredentialRecord | None], dict[str, Any]]
"""Shows one credential: its row, and the record that its principal has of it."""


async def list_credentials(request: web.Request, kind: str, item: Item) -> web.StreamResponse:
    """Answer one page of the credentials of a kind, by id, as `item` shows them."""
    caller = await authenticate(request)
    require_role(caller, *ADMINISTRATION_ROLES)
    services = services_of(request)
    parameters = Parameters(request, PAGING)
    return await services.run_blocking(_list, services, caller, request, parameters, kind, item)


def _list(
    services: Services,
    caller: Caller,
    request: web.Request,
    parameters: Parameters,
    kind: str,
    item: Item,
) -> web.StreamResponse:
    page = parameters.page(services.settings)
    scope = ["credentials", kind]
    after = read_cursor(services, caller, scope, parameters.text("cursor")) or ("",)
    with services.database.read() as connection:
        rows = reads_identity.list_credentials(
            connection, caller.tenant_id, kind, after[0], page.look
        )
        shown = rows[: page.items_max]
        owners = load_snapshots(
            connection,
            caller.tenant_id,
            "principal",
            {row.principal_id for row in shown},
            lock=False,
        )
    records = {
        record.credential.credential_id: record
        for snapshot in owners.values()
        for record in read_principal(snapshot).credentials
    }
    items = [item(row, records.get(row.credential_id)) for row in shown]
    more = len(rows) > page.items_max
    cursor = make_cursor(services, caller, scope, (shown[-1].credential_id,)) if more else None
    return page_response(request, items, cursor)


async def revoke_credential(
    request: web.Request, kind: str, credential_id: str, member: str, *, key_needed: bool = False
) -> web.StreamResponse:
    """Revoke a credential of a kind; `member` names its id in the answer.

    Without `key_needed` a request that carries no key is keyed by what it asks for: revoking twice
    is revoking once.
    """
    caller = await authenticate(request)
    body: RevocationBody = await read_json(request, RevocationBody)
    key = idempotency_key(request, body.idempotency_key)
    if key is None and key_needed:
        raise ProblemError("idempotency_key_missing")
    services = services_of(request)
    asked = Request(
        services=services,
        caller=caller,
        key=key or f"revoke:{credential_id}",
        expected_version=expected_version(request),
        body=body,
        plain={"wipe": body.wipe},
    )
    owner = await services.run_blocking(_owner, services, caller, kind, credential_id)
    public = {"credential_id": credential_id, "wipe": body.wipe}
    return await decide(
        services,
        caller,
        lambda: submission_for(asked, "revoke_credential", owner, public),
        lambda _: {member: credential_id, "revoked": True},
    )


def _owner(services: Services, caller: Caller, kind: str, credential_id: str) -> str:
    with services.database.read() as connection:
        owner = reads_identity.owner_of(connection, caller.tenant_id, kind, credential_id)
    if owner is None:
        raise ProblemError("not_found")
    return owner
