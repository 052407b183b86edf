"""Turn events into the rows that can be made again from them: snapshots, feed, manifests.

The commit path and `rebuild` both use it, so that a snapshot is what its events project to.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from workmate_shared.kernel.command import Event
from workmate_shared.kernel.instants import format_instant, parse_instant
from workmate_shared.principals.commands import AccessToken, EnrolmentCode
from workmate_shared.principals.principal import CredentialRecord, Principal
from workmate_shared.tasks.feed import feed_entries
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.task import Task, decode_manifest
from workmate_shared.tasks.values import merge_personal
from workmate_shared.wire.codec import encode

NO_DEADLINE = "9999-12-31T23:59:59.999Z"
"""Sorts after every deadline."""

Opened = Callable[[Iterable[str]], Mapping[str, Mapping[str, Any]]]
"""Gives the values behind commitments as plain JSON; those that are gone are left out."""


class Projected(Struct):
    """Rows by primary key, newest wins; `status` changes manifests that are there already.

    `latest` holds each aggregate's newest state with its seq; `seal` makes the snapshots of it.
    """

    latest: dict[str, tuple[Any, int]] = {}
    tasks: dict[str, dict[str, Any]] = {}
    principals: dict[str, dict[str, Any]] = {}
    credentials: dict[str, dict[str, Any]] = {}
    manifests: dict[tuple[str, str], dict[str, Any]] = {}
    status: dict[tuple[str, str], str] = {}
    feed: dict[tuple[str, str, str], dict[str, Any]] = {}


def project(rows: Projected, before: Any, after: Any, event: Event, seq: int) -> None:
    """Add what the event at `seq`, which led from `before` to `after`, makes of the projections."""
    if isinstance(after, Task):
        rows.latest[after.task_id] = (after, seq)
        _project_manifests(rows, before, after, event)
        for entry in feed_entries(before, after):
            rows.feed[entry.audience, "task", after.task_id] = {
                "tenant_id": after.tenant_id,
                "audience": entry.audience,
                "kind": "task",
                "object_id": after.task_id,
                "seq": seq,
                "removed_why": entry.removed_why,
            }
        return
    rows.latest[after.principal_id] = (after, seq)
    _project_credentials(rows, before, after, seq)


def seal(rows: Projected, opened: Opened) -> None:
    """Make the snapshots of the newest states, when every event has been projected."""
    named: list[str] = []
    for state, _ in rows.latest.values():
        if isinstance(state, Task):
            named += state.personal
            named += [state.position] if state.position else []
    values = opened(named)
    for name, (state, seq) in rows.latest.items():
        if isinstance(state, Task):
            rows.tasks[name] = _task_row(state, seq, values)
        else:
            rows.principals[name] = _principal_row(state)


def _principal_row(principal: Principal) -> dict[str, Any]:
    return {
        "tenant_id": principal.tenant_id,
        "principal_id": principal.principal_id,
        "kind": principal.kind,
        "state": principal.state,
        "version": principal.version,
        "snapshot": encode(principal),
    }


def _project_credentials(rows: Projected, before: Any, after: Principal, seq: int) -> None:
    known = {r.credential.credential_id: r for r in before.credentials} if before else {}
    for record in after.credentials:
        old = known.get(record.credential.credential_id)
        if old != record:
            added = seq if old is None else None
            _project_credential(rows, after, record, added)


def _project_credential(
    rows: Projected, owner: Principal, record: CredentialRecord, added_seq: int | None
) -> None:
    credential = record.credential
    if isinstance(credential, AccessToken):
        lookup, expires_at = credential.token_hash, credential.expires_at
    elif isinstance(credential, EnrolmentCode):
        lookup, expires_at = credential.code_check, credential.expires_at
    else:
        lookup, expires_at = credential.public_key, None
    row = {
        "tenant_id": owner.tenant_id,
        "credential_id": credential.credential_id,
        "principal_id": owner.principal_id,
        "kind": str(credential.__struct_config__.tag),
        "lookup": lookup,
        "expires_at": expires_at,
        "revoked": int(record.revoked),
    }
    if added_seq is not None:
        row["added_seq"] = added_seq
    held = rows.credentials.get(credential.credential_id, {})
    rows.credentials[credential.credential_id] = held | row


def _task_row(task: Task, seq: int, values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    personal = merge_personal([values[name] for name in task.personal if name in values])
    named = [personal[name] for name in ("site_name", "address", "client") if personal.get(name)]
    position = values.get(task.position) if task.position else None
    due = format_instant(parse_instant(task.due_at)) if task.due_at else NO_DEADLINE
    return {
        "tenant_id": task.tenant_id,
        "task_id": task.task_id,
        "source": task.source,
        "external_id": task.external_id,
        "state": task.state,
        "version": task.version,
        "changed_version": task.changed_version,
        "assignee_id": task.assignee_id,
        "due_utc": due,
        "changed_seq": seq,
        "site_text": "\n".join(named).casefold() or None,
        "mappls_pin": position.get("mappls_pin") if position else None,
        "snapshot": encode(task),
    }


def _project_manifests(rows: Projected, before: Any, after: Task, event: Event) -> None:
    known = {record.manifest_id: record for record in before.manifests} if before else {}
    for record in after.manifests:
        old = known.get(record.manifest_id)
        key = (after.task_id, record.manifest_id)
        if old is None:
            text = getattr(event, "manifest", None) or ""
            manifest = decode_manifest(text)
            rows.manifests[key] = _manifest_row(after, record, text, manifest)
        elif old.status != record.status:
            if key in rows.manifests:
                rows.manifests[key]["status"] = record.status
            else:
                rows.status[key] = record.status


def _manifest_row(task: Task, record: Any, text: str, manifest: Manifest) -> dict[str, Any]:
    return {
        "tenant_id": task.tenant_id,
        "task_id": task.task_id,
        "manifest_id": record.manifest_id,
        "content_hash": record.content_hash,
        "manifest": base64.b64decode(text),
        "capture_time": manifest.capture_time,
        "task_version": manifest.task_version,
        "retention_class": manifest.retention_class,
        "author_id": record.author_id,
        "status": record.status,
    }
