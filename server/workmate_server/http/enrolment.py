"""Enrolment of devices: ask whom a code is for, then send the first signed command.

Nobody is signed in here: the code's hash is what is known, and the signature proves the new key. A
repeat gets the stored outcome, so that a lost reply burns no code.
"""

from typing import Any

import msgspec
from aiohttp import web

from workmate_server.engine.model import Decided, Submission
from workmate_server.http.limits import GUARDS, admit
from workmate_server.http.problems import ProblemError
from workmate_server.http.render import command_response
from workmate_server.http.requests import read_json
from workmate_server.http.responses import json_response
from workmate_server.http.services import Services, services_of
from workmate_server.identity.authenticate import Caller
from workmate_server.identity.devices import verify_enrolment
from workmate_server.identity.enrolment import knows_code, read_offer
from workmate_server.store import loads, reads_identity
from workmate_shared.kernel.table import Role
from workmate_shared.wire.intake import MessageError
from workmate_shared.wire.messages import EnrolmentOffer, EnrolmentQuery, SignedCommand


async def offer(request: web.Request) -> web.StreamResponse:
    """Tell whom a code enrols and by which keys this server signs."""
    admit(request, request.config_dict[GUARDS].enrolment)
    asked: EnrolmentQuery = await read_json(request, EnrolmentQuery)
    services = services_of(request)
    found = await services.run_blocking(_read_offer, services, asked.code_hash)
    if found is None:
        raise ProblemError("enrolment_unknown")
    return json_response(found)


def _read_offer(services: Services, code_hash: str) -> EnrolmentOffer | None:
    with services.database.read() as connection:
        return read_offer(connection, code_hash, services.now())


async def enrol(request: web.Request) -> web.StreamResponse:
    """Take a device's first command: its key, proven by its own signature."""
    admit(request, request.config_dict[GUARDS].enrolment)
    signed: SignedCommand = await read_json(request, SignedCommand)
    services = services_of(request)
    submission = await services.run_blocking(_prepare, services, signed)
    tenant_id = submission.message.command.tenant_id
    [decided] = await services.engine.submit(tenant_id, [submission])
    return await services.run_blocking(_answer, services, submission, decided)


def _prepare(services: Services, signed: SignedCommand) -> Submission:
    submission, command = verify_enrolment(signed)
    with services.database.read() as connection:
        if not knows_code(connection, command):
            raise ProblemError("enrolment_unknown")
        keys = reads_identity.log_keys(connection, command.tenant_id)
    if command.server_key_id not in keys:
        raise MessageError(
            "invalid_command", "$.server_key_id", "Not a key by which this server signs."
        )
    return submission


def _answer(services: Services, submission: Submission, decided: Decided) -> web.Response:
    """Answer as to the worker himself; the outcome stands alone, as in sync."""
    command = submission.message.command
    with services.database.read() as connection:
        head: Any = loads.load_head(connection, command.tenant_id)
    worker = Caller(
        tenant_id=command.tenant_id,
        principal_id=command.actor.id,
        credential_id=command.actor.device_id or "",
        lineage=head.lineage,
        claimed=(Role.WORKER,),
        roles=frozenset({Role.WORKER}),
        device_id=command.actor.device_id,
    )
    documented = {
        "command_id": decided.command_id,
        "status": decided.status,
        "details": msgspec.to_builtins(decided.details),
        "lineage": head.lineage,
    }
    return command_response(services, worker, decided, documented=documented)


routes = [
    web.post("/v1/enrolments/offer", offer),
    web.post("/v1/enrolments", enrol),
]
"""The addresses of enrolment."""
