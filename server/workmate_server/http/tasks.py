"""Commands on field tasks: one address for each row of the transition table.

`POST /v1/tasks` creates; `POST /v1/tasks/{task_id}/{command}` does the rest. An address exists
because the table has the row; what is allowed there is decided by the engine alone.
"""

from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from workmate_server.engine.model import Submission
from workmate_server.http.authentication import authenticate
from workmate_server.http.headers import (
    expected_version,
    idempotency_key,
    path_id,
    require_key,
)
from workmate_server.http.problems import ProblemError
from workmate_server.http.render import command_response
from workmate_server.http.requests import read_json_bytes
from workmate_server.http.services import Services, services_of
from workmate_server.http.translate import Asked, make_submission, read_task_body
from workmate_server.identity.authenticate import Caller
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.table import Row
from workmate_shared.tasks.table import TASK_TABLE

KEY_CHARACTERS_MAX = 255


async def create_task(request: web.Request) -> web.StreamResponse:
    """Create the task of an upstream job, or answer with the one that exists."""
    caller = await authenticate(request)
    data = await read_json_bytes(request)
    version = expected_version(request)
    if version:
        raise ProblemError("invalid_request", "A creation expects no version.", path="If-Match")
    services = services_of(request)
    submission = await services.run_blocking(_prepare_creation, services, caller, request, data)
    return await _decide(services, caller, submission, creates=True)


def command_handler(row: Row) -> Handler:
    """Return the endpoint of one row of the table."""

    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        task_id = path_id(request, "task_id")
        data = await read_json_bytes(request)
        services = services_of(request)
        submission = await services.run_blocking(
            _prepare, services, caller, request, row, task_id, data
        )
        return await _decide(services, caller, submission, creates=False)

    return handle


def _prepare_creation(
    services: Services, caller: Caller, request: web.Request, data: bytes
) -> Submission:
    row = TASK_TABLE.row("create_task")
    body = read_task_body(services, row.command, data)
    source, external_id = body.get("source", caller.principal_id), body["external_id"]
    asked = Asked(
        caller=caller,
        row=row,
        aggregate_id=task_id_for(caller.tenant_id, source, external_id),
        key=_creation_key(request, body, f"{source}:{external_id}"),
        expected_version=0,
        body=body,
    )
    return make_submission(services, asked, {"source": source})


def _creation_key(request: web.Request, body: dict[str, Any], natural: str) -> str:
    key = idempotency_key(request, body.get("idempotency_key"))
    if key is not None:
        return key
    if len(natural) > KEY_CHARACTERS_MAX:
        raise ProblemError(
            "idempotency_key_missing", "Source and external id are too long to be the key."
        )
    return natural


def _prepare(
    services: Services,
    caller: Caller,
    request: web.Request,
    row: Row,
    task_id: str,
    data: bytes,
) -> Submission:
    body = read_task_body(services, row.command, data)
    key = require_key(idempotency_key(request, body.get("idempotency_key")))
    version = expected_version(request)
    if version is None and not row.annotates and row.expects_version:
        raise ProblemError("expected_version_required")
    asked = Asked(
        caller=caller,
        row=row,
        aggregate_id=task_id,
        key=key,
        expected_version=version,
        body=body,
    )
    return make_submission(services, asked)


async def _decide(
    services: Services, caller: Caller, submission: Submission, *, creates: bool
) -> web.StreamResponse:
    [decided] = await services.engine.submit(caller.tenant_id, [submission])
    address = f"/v1/tasks/{decided.aggregate_id}" if creates else None
    return await services.run_blocking(
        command_response, services, caller, decided, created_at=address
    )


routes = [
    web.post("/v1/tasks", create_task),
    *(
        web.post(f"/v1/tasks/{{task_id}}/{row.command.replace('_', '-')}", command_handler(row))
        for row in TASK_TABLE.rows
        if not row.creates
    ),
]
"""The addresses of all task commands."""
