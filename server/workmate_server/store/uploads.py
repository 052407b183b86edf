"""Uploads that are under way, files that are held, and who stored which for which task."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, and_, delete, insert, select

from workmate_server.store.database import Database
from workmate_server.store.tables import (
    BlobLink,
    BlobRow,
    CommandLog,
    TaskSnapshot,
    UploadRow,
    table_of,
)

_UPLOADS = table_of(UploadRow)
_BLOBS = table_of(BlobRow)
_LINKS = table_of(BlobLink)
_TASKS = table_of(TaskSnapshot)
_COMMANDS = table_of(CommandLog)


class Upload(Struct, frozen=True, kw_only=True):
    """One upload: whose, which bytes it announces, and for which task; `size` is in bytes."""

    upload_id: str
    tenant_id: str
    principal_id: str
    task_id: str
    hash: str
    size: int
    filename: str
    media_type: str
    created_at: str


class _Evidence(Struct, frozen=True):
    evidence: tuple[str, ...]


def add_upload(connection: Connection, upload: Upload) -> None:
    """Remember an upload that has begun."""
    connection.execute(insert(_UPLOADS), [msgspec.structs.asdict(upload)])


def find_upload(connection: Connection, upload_id: str) -> Upload | None:
    """Return an upload by its id, whosever it is."""
    row = connection.execute(
        select(_UPLOADS).where(_UPLOADS.c.upload_id == upload_id)
    ).one_or_none()
    return None if row is None else Upload(**row._asdict())


def remove_uploads(connection: Connection, upload_ids: Iterable[str]) -> None:
    """Forget uploads."""
    wanted = list(upload_ids)
    connection.execute(delete(_UPLOADS).where(_UPLOADS.c.upload_id.in_(wanted)))


def uploads_before(connection: Connection, created_before: str, limit: int) -> list[Upload]:
    """Return uploads that were begun before an instant in UTC, oldest first."""
    rows = connection.execute(
        select(_UPLOADS)
        .where(_UPLOADS.c.created_at < created_before)
        .order_by(_UPLOADS.c.created_at)
        .limit(limit)
    )
    return [Upload(**row._asdict()) for row in rows]


def held_for(connection: Connection, upload: Upload) -> bool:
    """Whether the very file is held, and this principal has stored it for this very task."""
    c = _LINKS.c
    found = connection.execute(
        select(c.hash)
        .join(_BLOBS, and_(_BLOBS.c.tenant_id == c.tenant_id, _BLOBS.c.hash == c.hash))
        .where(
            c.tenant_id == upload.tenant_id,
            c.hash == upload.hash,
            c.task_id == upload.task_id,
            c.principal_id == upload.principal_id,
            _BLOBS.c.size == upload.size,
            _BLOBS.c.purged_at.is_(None),
        )
    )
    return found.first() is not None


def uploaded_before(
    connection: Connection, tenant_id: str, principal_id: str, blob_hash: str
) -> int | None:
    """Return the size of a held file that this principal has uploaded for any task, or None."""
    c = _LINKS.c
    size: int | None = connection.execute(
        select(_BLOBS.c.size)
        .join(_LINKS, and_(c.tenant_id == _BLOBS.c.tenant_id, c.hash == _BLOBS.c.hash))
        .where(
            c.tenant_id == tenant_id,
            c.hash == blob_hash,
            c.principal_id == principal_id,
            _BLOBS.c.purged_at.is_(None),
        )
        .limit(1)
    ).scalar()
    return size


def keep_blob(
    database: Database, connection: Connection, upload: Upload, media_type: str, now: str
) -> None:
    """Record a file whose hash has been verified, and that the upload's principal stored it."""
    blob = {
        "tenant_id": upload.tenant_id,
        "hash": upload.hash,
        "size": upload.size,
        "media_type": media_type,
        "verified_at": now,
        "purged_at": None,
    }
    known = connection.execute(
        select(_BLOBS.c.purged_at).where(
            _BLOBS.c.tenant_id == upload.tenant_id, _BLOBS.c.hash == upload.hash
        )
    ).one_or_none()
    if known is None or known.purged_at is not None:
        database.upsert(connection, _BLOBS, [blob])
    link_blob(database, connection, upload, now)


def link_blob(database: Database, connection: Connection, upload: Upload, now: str) -> None:
    """Record that the upload's principal stored its file for its task; a repeat changes nothing."""
    link = {
        "tenant_id": upload.tenant_id,
        "hash": upload.hash,
        "task_id": upload.task_id,
        "principal_id": upload.principal_id,
        "stored_at": now,
    }
    database.insert_new(connection, _LINKS, [link])


def task_standing(connection: Connection, tenant_id: str, task_id: str) -> Any:
    """Return state and assignee of a task (`state`, `assignee_id`), or None."""
    c = _TASKS.c
    return connection.execute(
        select(c.state, c.assignee_id).where(c.tenant_id == tenant_id, c.task_id == task_id)
    ).one_or_none()


def has_named(
    connection: Connection, tenant_id: str, principal_id: str, task_id: str, blob_hash: str
) -> bool:
    """Whether a recorded command of this principal on this task names the file."""
    c = _COMMANDS.c
    leaves = connection.execute(
        select(c.leaf).where(
            c.tenant_id == tenant_id, c.aggregate_id == task_id, c.principal_id == principal_id
        )
    ).scalars()
    return any(blob_hash in msgspec.json.decode(leaf, type=_Evidence).evidence for leaf in leaves)
