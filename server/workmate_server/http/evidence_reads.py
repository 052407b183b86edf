"""The evidence of a task, at `/v1/tasks/{task_id}/evidence`: its proofs and which files are held.

Whoever sees the task sees all of it; a former holder sees what he gathered himself. Answers and
names are opened for supervisors, dispatchers and auditors, for their author, and for the worker who
holds the task while they wait as a hand-over; places only for a stated purpose, or for the author.
"""

from typing import Any

import msgspec
from aiohttp import web

from workmate_server.http.authentication import authenticate
from workmate_server.http.headers import path_id
from workmate_server.http.problems import ProblemError
from workmate_server.http.rendering import Renderer, rendering
from workmate_server.http.responses import json_response
from workmate_server.http.services import Services, services_of
from workmate_server.http.sight import OPENING_ROLES, Openable, Sight, sight_of
from workmate_server.identity.authenticate import Caller
from workmate_server.store import reads_evidence, reads_tasks
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.task import ManifestRecord, Task
from workmate_shared.wire.binary import to_base64

routes = web.RouteTableDef()


@routes.get("/v1/tasks/{task_id}/evidence", allow_head=False)
async def read(request: web.Request) -> web.StreamResponse:
    """Answer the manifests of a task in order of arrival, and the files stored for it."""
    services = services_of(request)
    caller = await authenticate(request)
    task_id = path_id(request, "task_id")
    return json_response(await services.run_blocking(_read, services, caller, task_id))


def _read(services: Services, caller: Caller, task_id: str) -> dict[str, Any]:
    with rendering(services, caller) as renderer:
        task = reads_tasks.read_task(renderer.connection, caller.tenant_id, task_id)
        sight = Sight.NONE if task is None else sight_of(caller, task)
        if task is None or sight is Sight.NONE:
            raise ProblemError("not_found")
        me = caller.principal_id if sight is Sight.FORMER else None
        tenant_id = caller.tenant_id
        files = reads_evidence.files_of_task(renderer.connection, tenant_id, task_id)
        rows = reads_evidence.manifests_of_task(renderer.connection, tenant_id, task_id)
        stored = {row.hash: _file(row) for row in files}
        return {
            "items": [
                _manifest(renderer, task, record, rows[record.manifest_id].manifest, stored)
                for record in task.manifests
                if me in (None, record.author_id)
            ],
            "files": [
                {**_file(row), "stored_by": row.principal_id, "stored_at": row.stored_at}
                for row in files
                if me in (None, row.principal_id)
            ],
            "next": None,
        }


def _manifest(
    renderer: Renderer,
    task: Task,
    record: ManifestRecord,
    data: bytes,
    stored: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    manifest = msgspec.json.decode(data, type=Manifest)
    opening = list(_openable(renderer.caller, task, record, manifest))
    renderer.open(opening)
    may = {one.commitment for one in opening}
    named = {"personal": manifest.personal, "position": manifest.position}
    opened = {
        name: renderer.value(commitment) if commitment in may else None
        for name, commitment in named.items()
        for commitment in [commitment or ""]
    }
    return {
        "manifest_id": record.manifest_id,
        "content_hash": record.content_hash,
        "status": record.status,
        "author_id": record.author_id,
        "task_version": record.task_version,
        "capture_time": manifest.capture_time,
        "policy_version": manifest.policy_version,
        "retention_class": record.retention_class,
        "submitted_by": record.submitted_by,
        "on_behalf_of": record.on_behalf_of,
        "submitted_at": record.submitted_at,
        "decided_by": record.decided_by,
        "articles": manifest.articles,
        "items": [_item(item, stored) for item in manifest.items],
        "manifest": to_base64(data),
        **opened,
        "withheld": [name for name, value in opened.items() if named[name] and value is None],
    }


def _openable(
    caller: Caller, task: Task, record: ManifestRecord, manifest: Manifest
) -> list[Openable]:
    mine = record.author_id == caller.principal_id
    office = bool(caller.roles & OPENING_ROLES)
    takes_over = record.status == "handed_over" and task.assignee_id == caller.principal_id
    opening = []
    if manifest.personal is not None and (mine or office or takes_over):
        opening.append(Openable(manifest.personal, task.task_id))
    if manifest.position is not None and (mine or (office and caller.purpose is not None)):
        subject = None if mine else record.author_id
        opening.append(Openable(manifest.position, task.task_id, subject))
    return opening


def _item(item: Any, stored: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an item of a manifest; one with a file says whether it is held."""
    shown: dict[str, Any] = msgspec.to_builtins(item)
    blob_hash = shown.get("hash")
    if blob_hash is not None:
        shown["held"] = blob_hash in stored and stored[blob_hash]["purged_at"] is None
    return shown


def _file(row: Any) -> dict[str, Any]:
    return {
        "hash": row.hash,
        "size": row.size,
        "media_type": row.media_type,
        "verified_at": row.verified_at,
        "purged_at": row.purged_at,
    }
