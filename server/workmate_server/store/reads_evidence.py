"""What is read of evidence: files by their hash, who stored them, and the manifests of a task."""

from typing import Any

from sqlalchemy import Connection, and_, select

from workmate_server.store.tables import BlobLink, BlobRow, EvidenceManifest, table_of

_BLOBS = table_of(BlobRow)
_LINKS = table_of(BlobLink)
_MANIFESTS = table_of(EvidenceManifest)


def find_blob(connection: Connection, tenant_id: str, blob_hash: str) -> Any:
    """Return the row of a file that is held, or None."""
    c = _BLOBS.c
    return connection.execute(
        select(_BLOBS).where(c.tenant_id == tenant_id, c.hash == blob_hash, c.purged_at.is_(None))
    ).one_or_none()


def tasks_of_blob(connection: Connection, tenant_id: str, blob_hash: str) -> list[str]:
    """Return the tasks for which somebody who uploaded the file stored it."""
    c = _LINKS.c
    rows = connection.execute(
        select(c.task_id)
        .where(c.tenant_id == tenant_id, c.hash == blob_hash)
        .distinct()
        .order_by(c.task_id)
    )
    return list(rows.scalars())


def files_of_task(connection: Connection, tenant_id: str, task_id: str) -> list[Any]:
    """Return the files stored for a task, purged ones too, with who stored each and when."""
    c = _LINKS.c
    return list(
        connection.execute(
            select(_BLOBS, c.principal_id, c.stored_at)
            .join(_LINKS, and_(c.tenant_id == _BLOBS.c.tenant_id, c.hash == _BLOBS.c.hash))
            .where(c.tenant_id == tenant_id, c.task_id == task_id)
            .order_by(c.stored_at, c.hash, c.principal_id)
        )
    )


def manifests_of_task(connection: Connection, tenant_id: str, task_id: str) -> dict[str, Any]:
    """Return the rows of a task's manifests by manifest id."""
    c = _MANIFESTS.c
    rows = connection.execute(
        select(_MANIFESTS).where(c.tenant_id == tenant_id, c.task_id == task_id)
    )
    return {row.manifest_id: row for row in rows}
