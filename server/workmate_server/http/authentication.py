"""Find out who sends a request: a bearer token (RFC 6750) against what the log says now.

A session of somebody who may no longer act reaches the addresses under which a device hands in what
it recorded before, and nothing else. A wrong token is answered in one way, whatever is wrong with it.
"""

from aiohttp import web
from msgspec.structs import replace

from workmate_server.http.headers import location_purpose
from workmate_server.http.limits import GUARDS, admit
from workmate_server.http.problems import ProblemError
from workmate_server.http.services import Services, services_of
from workmate_server.identity.authenticate import Caller, identify, known
from workmate_server.store import reads_identity
from workmate_shared.kernel.table import Role

OPEN_TO_BARRED = ("/v1/sync", "/v1/uploads")
"""What a deactivated worker's or a revoked device's session may still reach."""

_REALM = 'Bearer realm="workmate"'
_SCHEME = "bearer"
_TOKEN_CHARACTERS_MAX = 200


async def authenticate(request: web.Request, *, noted_later: bool = False) -> Caller:
    """Return who sent the request; that he used his credential is noted now and then.

    `noted_later`: a device's use is noted by the one who asks, with what the device says of itself.
    Raises ProblemError: `unauthenticated`, `too_many` after too many unknown tokens from one
    address, or `location_purpose_refused`.
    """
    services = services_of(request)
    text = _bearer(request)
    caller, unknown = await services.run_blocking(_identify, services, text)
    if caller is None:
        if unknown:
            admit(request, request.config_dict[GUARDS].unknown_tokens)
        raise _unauthenticated("invalid_token")
    if caller.barred and not _open_to_barred(request):
        raise _unauthenticated("invalid_token")
    noted = noted_later and caller.device_id is not None
    if not noted and request.config_dict[GUARDS].uses.due(caller.tenant_id, caller.credential_id):
        await services.run_blocking(_note_use, services, caller)
    purpose = location_purpose(request, services.settings)
    return caller if purpose is None else replace(caller, purpose=purpose)


def require_role(caller: Caller, *allowed: Role) -> None:
    """Raise ProblemError `access_not_allowed` unless the caller has one of the roles."""
    if caller.roles.isdisjoint(allowed):
        raise ProblemError("access_not_allowed")


def _bearer(request: web.Request) -> str:
    values = request.headers.getall("Authorization", ())
    if not values:
        raise _unauthenticated(None)
    scheme, _, text = values[0].strip().partition(" ")
    text = text.strip()
    fitting = len(values) == 1 and scheme.lower() == _SCHEME and text.isascii()
    if not fitting or not 0 < len(text) <= _TOKEN_CHARACTERS_MAX:
        raise _unauthenticated("invalid_request")
    return text


def _identify(services: Services, text: str) -> tuple[Caller | None, bool]:
    with services.database.read() as connection:
        caller = identify(connection, text, services.now())
        return caller, caller is None and not known(connection, text)


def _note_use(services: Services, caller: Caller) -> None:
    with services.database.write() as connection:
        reads_identity.note_use(
            services.database, connection, caller.tenant_id, caller.credential_id, services.now()
        )


def _open_to_barred(request: web.Request) -> bool:
    resource = request.match_info.route.resource
    path = resource.canonical if resource is not None else ""
    return any(path == start or path.startswith(f"{start}/") for start in OPEN_TO_BARRED)


def _unauthenticated(error: str | None) -> ProblemError:
    challenge = _REALM if error is None else f'{_REALM}, error="{error}"'
    return ProblemError("unauthenticated", headers={"WWW-Authenticate": challenge})
