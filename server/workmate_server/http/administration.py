"""Administration: commands of the same engine on the principal aggregate, asked for over HTTP.

Every POST needs an idempotency key. Answers carry receipt and events like those of task commands,
beside the members that each address documents. The principal `system` is the server itself: nobody
administers it from outside.
"""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from msgspec import Struct

from workmate_server.engine.model import Decided, Submission
from workmate_server.engine.workspace import SYSTEM_ID
from workmate_server.http.authentication import authenticate
from workmate_server.http.headers import expected_version, idempotency_key, require_key
from workmate_server.http.problems import ProblemError
from workmate_server.http.render import command_response
from workmate_server.http.requests import read_json_bytes
from workmate_server.http.services import Services, services_of
from workmate_server.http.translate import Asked, submission_of
from workmate_server.identity.authenticate import Caller, read_principal
from workmate_server.store.database import Connection
from workmate_server.store.loads import load_snapshots
from workmate_shared.kernel.ids import CommandId
from workmate_shared.kernel.table import Role
from workmate_shared.principals.principal import Principal
from workmate_shared.principals.table import PRINCIPAL_TABLE
from workmate_shared.tasks.policy import Retention
from workmate_shared.wire.codec import decode
from workmate_shared.wire.commitment import SALT_BYTES, make_disclosure
from workmate_shared.wire.intake import MessageError


class AdministrationBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every body of administration may carry."""

    idempotency_key: CommandId | None = None


class Request(Struct, frozen=True, kw_only=True):
    """One request of administration, read and authenticated."""

    services: Services
    caller: Caller
    key: str
    expected_version: int | None
    body: Any
    plain: Mapping[str, Any]


async def read_request(request: web.Request, kind: type[Struct]) -> Request:
    """Return a request with its body decoded as `kind`.

    Raises ProblemError or MalformedError for what breaks a rule, among it a missing key.
    """
    caller = await authenticate(request)
    data = await read_json_bytes(request)
    services = services_of(request)
    depth = services.settings.json_depth_max
    plain = decode(data, dict[str, Any], max_bytes=len(data), max_depth=depth)
    body = decode(data, kind, max_bytes=len(data), max_depth=depth)
    key = idempotency_key(request, getattr(body, "idempotency_key", None))
    return Request(
        services=services,
        caller=caller,
        key=require_key(key),
        expected_version=expected_version(request),
        body=body,
        plain=plain,
    )


async def decide(
    services: Services,
    caller: Caller,
    prepare: Callable[[], Submission],
    documented: Callable[[Decided], Mapping[str, Any]],
    *,
    created_below: str | None = None,
) -> web.StreamResponse:
    """Prepare, submit and answer; `documented` gives the members that the address promises."""
    submission = await services.run_blocking(prepare)
    [decided] = await services.engine.submit(caller.tenant_id, [submission])
    created = None if created_below is None else f"{created_below}/{decided.aggregate_id}"
    return await services.run_blocking(
        command_response,
        services,
        caller,
        decided,
        created_at=created,
        documented=documented(decided),
    )


def submission_for(
    asked: Request,
    command: str,
    principal_id: str,
    public: Mapping[str, Any],
    personal: Mapping[str, Any] | None = None,
) -> Submission:
    """Return the submission of a command on a principal, its personal value committed. Blocks.

    Raises ProblemError `not_found` for the server's own principal, MessageError for a field that
    breaks its rule.
    """
    if principal_id == SYSTEM_ID:
        raise ProblemError("not_found")
    services, row = asked.services, PRINCIPAL_TABLE.row(command)
    given = {}
    fields_given = dict(public)
    if personal:
        salt = services.entropy.token_bytes(SALT_BYTES)
        commitment, disclosure = make_disclosure(personal, salt, Retention().personal)
        fields_given["personal"], given[commitment] = commitment, disclosure
    version = 0 if row.creates else asked.expected_version
    return submission_of(
        services,
        Asked(
            caller=asked.caller,
            row=row,
            aggregate_id=principal_id,
            key=asked.key,
            expected_version=version,
            body=asked.plain,
        ),
        fields_given,
        given,
    )


def refuse_system_role(roles: tuple[Role, ...]) -> None:
    """Raise MessageError where a body asks for the role that only the server itself has."""
    if Role.SYSTEM in roles:
        raise MessageError("invalid_command", "$.roles", "Nobody but the server has this role.")


def stored_principal(connection: Connection, tenant_id: str, principal_id: str) -> Principal | None:
    """Return a principal as it is now, or None."""
    found = load_snapshots(connection, tenant_id, "principal", [principal_id], lock=False)
    data = found.get(principal_id)
    return None if data is None else read_principal(data)
