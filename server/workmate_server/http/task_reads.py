"""Reading tasks: lists, one task, its history, its observations, and what waits to be reviewed.

The office sees every task of its tenant, a worker what he holds; of what he once held he sees where
it is now. What somebody may not see is answered like what is not there.
"""

from typing import Any

from aiohttp import web

from workmate_server.http.authentication import authenticate, require_role
from workmate_server.http.cursors import make_cursor, read_cursor
from workmate_server.http.headers import matches, path_id, version_tag
from workmate_server.http.parameters import PAGING, Parameters
from workmate_server.http.problems import ProblemError
from workmate_server.http.rendering import Renderer, rendering
from workmate_server.http.responses import json_response, page_response
from workmate_server.http.services import Services, services_of
from workmate_server.http.sight import Sight, sight_of
from workmate_server.identity.authenticate import Caller
from workmate_server.store import reads_log, reads_tasks
from workmate_server.store.pages import Page
from workmate_server.store.reads_tasks import TaskFilter
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.table import OFFICE_ROLES, STATES
from workmate_shared.tasks.task import Task

OBSERVED = "task.observed"

_FILTERS = (
    "assignee",
    "external_id",
    "source",
    "q",
    "due_before",
    "changed_since",
    "sort",
)
_SORTS = ("due", "changed")
_PRIVATE = "private, no-cache"


async def list_tasks(request: web.Request) -> web.StreamResponse:
    """List the tasks that the caller sees, by deadline or by last change."""
    caller = await authenticate(request)
    require_role(caller, *OFFICE_ROLES, Role.WORKER)
    services = services_of(request)
    parameters = Parameters(request, (*_FILTERS, *PAGING), repeatable=("state",))
    return await services.run_blocking(_list_tasks, services, caller, request, parameters)


def _list_tasks(
    services: Services, caller: Caller, request: web.Request, parameters: Parameters
) -> web.StreamResponse:
    wanted = _filter(services, caller, parameters)
    sort: Any = parameters.chosen("sort", _SORTS, "due")
    scope = ["tasks", sort, wanted]
    after = read_cursor(services, caller, scope, parameters.text("cursor"))
    page = parameters.page(services.settings)
    with rendering(services, caller) as renderer:
        rows, more = reads_tasks.list_tasks(
            renderer.connection, caller.tenant_id, wanted, sort, after, page
        )
        views = renderer.tasks([row.task for row in rows])
    cursor = make_cursor(services, caller, scope, rows[-1].position) if more else None
    return page_response(request, views, cursor)


def _filter(services: Services, caller: Caller, parameters: Parameters) -> TaskFilter:
    assignee_id = parameters.text("assignee")
    if not caller.roles & OFFICE_ROLES:
        if assignee_id not in {None, caller.principal_id}:
            raise ProblemError("access_not_allowed", "A worker lists the tasks that he holds.")
        assignee_id = caller.principal_id
    site = parameters.text("q")
    return TaskFilter(
        states=parameters.several("state", STATES),
        assignee_id=assignee_id,
        external_id=parameters.text("external_id"),
        source=parameters.text("source"),
        site=None if site is None else site.casefold(),
        due_before=parameters.moment("due_before"),
        changed_after=_changed_after(services, caller, parameters),
    )


def _changed_after(services: Services, caller: Caller, parameters: Parameters) -> int | None:
    """Return the seq that `changed_since` names: itself one, or a moment."""
    text = parameters.text("changed_since")
    if text is None:
        return None
    if text.isdigit():
        return parameters.number("changed_since")
    moment = parameters.moment("changed_since")
    with services.database.read() as connection:
        return reads_log.seq_at(connection, caller.tenant_id, moment or "")


async def show_task(request: web.Request) -> web.StreamResponse:
    """Show one task; its version is its entity tag."""
    caller = await authenticate(request)
    Parameters(request, ())
    services = services_of(request)
    return await services.run_blocking(
        _show_task, services, caller, request, path_id(request, "task_id")
    )


def _show_task(
    services: Services, caller: Caller, request: web.Request, task_id: str
) -> web.StreamResponse:
    with rendering(services, caller) as renderer:
        task = _seen(renderer, task_id)
        headers = {"ETag": version_tag(task.version), "Cache-Control": _PRIVATE}
        if matches(request, task.version):
            return web.Response(status=304, headers=headers)
        view = renderer.task(task)
    return json_response(view, headers=headers)


def _seen(renderer: Renderer, task_id: str, *, whole: bool = False) -> Task:
    task = reads_tasks.read_task(renderer.connection, renderer.caller.tenant_id, task_id)
    sight = Sight.NONE if task is None else sight_of(renderer.caller, task)
    if task is None or sight is Sight.NONE or (whole and sight is not Sight.FULL):
        raise ProblemError("not_found")
    return task


async def list_events(request: web.Request) -> web.StreamResponse:
    """List the whole history of a task, oldest first."""
    return await _list_history(request, "events", None)


async def list_observations(request: web.Request) -> web.StreamResponse:
    """List what was observed about a task, oldest first, with readings, notes and fixes."""
    return await _list_history(request, "items", OBSERVED)


async def _list_history(
    request: web.Request, name: str, event_type: str | None
) -> web.StreamResponse:
    caller = await authenticate(request)
    services = services_of(request)
    parameters = Parameters(request, PAGING)
    return await services.run_blocking(
        _read_history, services, caller, request, parameters, name, event_type
    )


def _read_history(
    services: Services,
    caller: Caller,
    request: web.Request,
    parameters: Parameters,
    name: str,
    event_type: str | None,
) -> web.StreamResponse:
    task_id = path_id(request, "task_id")
    page = parameters.page(services.settings)
    with rendering(services, caller) as renderer:
        task = _seen(renderer, task_id, whole=True)
        scope = ["history", task.task_id, event_type]
        after = read_cursor(services, caller, scope, parameters.text("cursor")) or (0,)
        found, more = reads_log.list_stream(
            renderer.connection, caller.tenant_id, task_id, after[0], page, event_type
        )
        items: list[Any] = (
            list(renderer.events(found))
            if event_type is None
            else [renderer.observation(one) for one in found]
        )
    position = (found[-1].aggregate_version,) if more else None
    cursor = make_cursor(services, caller, scope, position) if position else None
    return page_response(request, items, cursor, name=name)


async def list_reviews(request: web.Request) -> web.StreamResponse:
    """List the proofs and hand-overs that wait for a supervisor, earliest deadline first."""
    caller = await authenticate(request)
    require_role(caller, Role.SUPERVISOR)
    services = services_of(request)
    parameters = Parameters(request, PAGING)
    return await services.run_blocking(_list_reviews, services, caller, request, parameters)


def _list_reviews(
    services: Services, caller: Caller, request: web.Request, parameters: Parameters
) -> web.StreamResponse:
    after = read_cursor(services, caller, ["reviews"], parameters.text("cursor"))
    page: Page = parameters.page(services.settings)
    with rendering(services, caller) as renderer:
        rows, more = reads_tasks.list_reviews(renderer.connection, caller.tenant_id, after, page)
        views = renderer.tasks([row.task for row in rows])
    items = [
        {
            "kind": "handover" if row.status == reads_tasks.HANDED_OVER else "proof",
            "manifest_id": row.manifest_id,
            "content_hash": row.content_hash,
            "author_id": row.author_id,
            "capture_time": row.capture_time,
            "task": view,
        }
        for row, view in zip(rows, views, strict=True)
    ]
    cursor = make_cursor(services, caller, ["reviews"], rows[-1].position) if more else None
    return page_response(request, items, cursor)


routes = [
    web.get("/v1/tasks", list_tasks),
    web.get("/v1/tasks/{task_id}", show_task),
    web.get("/v1/tasks/{task_id}/events", list_events),
    web.get("/v1/tasks/{task_id}/observations", list_observations),
    web.get("/v1/reviews", list_reviews),
]
"""The addresses under which tasks are read."""
