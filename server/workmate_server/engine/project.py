"""Turn events into the rows that can be made again from them: snapshots, feed, manifests.

The commit path and `rebuild` both use it, so that a snapshot is what its events project to.
"""

import base64
from collections.abc import Callable, Mapping
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

Opened = Callable[[str], Mapping[str, Any] | None]
"""Gives the value behind a commitment as plain JSON, or None where it is gone."""


class Projected(Struct):
    """Rows by primary key, newest wins; `status` changes manifests that are there already."""

    tasks: dict[str, dict[str, Any]] = {}
    principals: dict[str, dict[str, Any]] = {}
    credentials: dict[str, dict[str, Any]] = {}
    manifests: dict[tuple[str, str], dict[str, Any]] = {}
    status: dict[tuple[str, str], str] = {}
    feed: dict[tuple[str, str, str], dict[str, Any]] = {}


def project(
    rows: Projected, before: Any, after: Any, event: Event, seq: int, opened: Opened
) -> None:
    """Add what the event at `seq`, which led from `before` to `after`, makes of the projections."""
    if isinstance(after, Task):
        rows.tasks[after.task_id] = _task_row(after, seq, opened)
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
    _project_principal(rows, before, after, seq)


def _project_principal(rows: Projected, before: Any, after: Principal, seq: int) -> None:
    rows.principals[after.principal_id] = {
        "tenant_id": after.tenant_id,
        "principal_id": after.principal_id,
        "kind": after.kind,
        "state": after.state,
        "version": after.version,
        "snapshot": encode(after),
    }
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
        lookup, expires_at = credential.code_hash, credential.expires_at
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


def _task_row(task: Task, seq: int, opened: Opened) -> dict[str, Any]:
    values = [opened(commitment) for commitment in task.personal]
    personal = merge_personal([value for value in values if value is not None])
    named = [personal[name] for name in ("site_name", "address", "client") if personal.get(name)]
    position = opened(task.position) if task.position else None
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
