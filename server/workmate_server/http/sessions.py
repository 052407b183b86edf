"""Device sessions over HTTP: ask for a challenge, answer it signed, get a bearer token.

Asking and failing look the same whether or not the device exists.
"""

from aiohttp import web

from workmate_server.http.limits import GUARDS, admit
from workmate_server.http.problems import ProblemError
from workmate_server.http.requests import read_json
from workmate_server.http.responses import json_response
from workmate_server.http.services import Services, services_of
from workmate_server.identity.sessions import SessionDesk, SessionRefusedError
from workmate_shared.wire.dsse import Envelope
from workmate_shared.wire.messages import NonceRequest


async def give_nonce(request: web.Request) -> web.StreamResponse:
    """Give a challenge for a device."""
    admit(request, request.config_dict[GUARDS].sessions)
    asked: NonceRequest = await read_json(request, NonceRequest)
    return json_response(_desk(services_of(request)).challenge(asked))


async def open_session(request: web.Request) -> web.StreamResponse:
    """Open a session for the device that signed a challenge; the body is the envelope."""
    admit(request, request.config_dict[GUARDS].sessions)
    envelope: Envelope = await read_json(request, Envelope)
    services = services_of(request)
    try:
        session = await services.run_blocking(_desk(services).open, envelope)
    except SessionRefusedError as error:
        raise ProblemError(
            "unauthenticated", headers={"WWW-Authenticate": 'Bearer realm="workmate"'}
        ) from error
    return json_response(session)


def _desk(services: Services) -> SessionDesk:
    return SessionDesk(
        services.database,
        services.keys,
        services.keys.log_key.key_id,
        services.settings,
        services.clock,
        services.entropy,
    )


routes = [
    web.post("/v1/sessions/nonce", give_nonce),
    web.post("/v1/sessions", open_session),
]
"""The addresses of device sessions."""
