"""What the commit path writes, one statement a table and batch; each is built once."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, update

from workmate_server.store.compiled import write_rows
from workmate_server.store.database import Database
from workmate_server.store.tables import (
    PROJECTIONS,
    AuditEvent,
    CommandLog,
    CommitBatch,
    CredentialRow,
    DisclosureRow,
    EvidenceManifest,
    FeedRow,
    OutboxRow,
    PrincipalRow,
    ServerTable,
    TaskSnapshot,
    TenantHead,
    table_of,
)

_EVENTS = table_of(AuditEvent)
_COMMANDS = table_of(CommandLog)
_BATCHES = table_of(CommitBatch)
_HEADS = table_of(TenantHead)
_MANIFESTS = table_of(EvidenceManifest)
_CREDENTIALS = table_of(CredentialRow)

_ADD_COMMANDS = insert(_COMMANDS)
_ADD_EVENTS = insert(_EVENTS)
_ADD_BATCHES = insert(_BATCHES)
_ADD_CREDENTIALS = insert(_CREDENTIALS)
_ADD_OUTBOX = insert(table_of(OutboxRow))
_MOVE_HEAD = (
    update(_HEADS)
    .where(_HEADS.c.tenant_id == bindparam("tenant"))
    .values(
        seq=bindparam("new_seq"),
        batch=bindparam("new_batch"),
        header_hash=bindparam("new_header_hash"),
    )
)
_SET_STATUS = (
    update(_MANIFESTS)
    .where(
        _MANIFESTS.c.tenant_id == bindparam("tenant"),
        _MANIFESTS.c.task_id == bindparam("task"),
        _MANIFESTS.c.manifest_id == bindparam("manifest_key"),
    )
    .values(status=bindparam("new_status"))
)
_SET_REVOKED = (
    update(_CREDENTIALS)
    .where(
        _CREDENTIALS.c.tenant_id == bindparam("tenant"),
        _CREDENTIALS.c.credential_id == bindparam("credential_key"),
    )
    .values(revoked=bindparam("new_revoked"))
)


def append_log(
    connection: Connection,
    commands: Sequence[dict[str, Any]],
    events: Sequence[dict[str, Any]],
    batch: dict[str, Any],
) -> None:
    """Append one batch to the log: its decided commands, their events and the signed header."""
    write_rows(connection, _ADD_COMMANDS, commands)
    write_rows(connection, _ADD_EVENTS, events)
    write_rows(connection, _ADD_BATCHES, [batch])


def write_projections(
    database: Database, connection: Connection, tenant_id: str, rows: Any
) -> None:
    """Write projected rows (`engine.project.Projected`) over those that are there."""
    credentials = list(rows.credentials.values())
    added = [row for row in credentials if "added_seq" in row]
    # Never over another: an id that two processes give away at once is a duplicate.
    write_rows(connection, _ADD_CREDENTIALS, added)
    for table, values in (
        (TaskSnapshot, rows.tasks.values()),
        (PrincipalRow, rows.principals.values()),
        (EvidenceManifest, rows.manifests.values()),
        (FeedRow, rows.feed.values()),
    ):
        database.upsert(connection, table_of(table), list(values))
    changes = [
        {"tenant": tenant_id, "task": task, "manifest_key": name, "new_status": status}
        for (task, name), status in rows.status.items()
    ]
    if changes:
        connection.execute(_SET_STATUS, changes)
    revoked = [
        {
            "tenant": tenant_id,
            "credential_key": row["credential_id"],
            "new_revoked": row["revoked"],
        }
        for row in credentials
        if "added_seq" not in row
    ]
    if revoked:
        connection.execute(_SET_REVOKED, revoked)


def write_disclosures(
    database: Database, connection: Connection, rows: Sequence[dict[str, Any]]
) -> None:
    """Keep the values behind new commitments; known ones stay as they are."""
    database.insert_new(connection, table_of(DisclosureRow), rows)


def write_outbox(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Queue events for their subscriptions."""
    write_rows(connection, _ADD_OUTBOX, rows)


def move_head(
    connection: Connection, tenant_id: str, *, seq: int, batch: int, header_hash: str
) -> None:
    """Set where a tenant's log ends."""
    moved = {"new_seq": seq, "new_batch": batch, "new_header_hash": header_hash}
    connection.execute(_MOVE_HEAD, {"tenant": tenant_id, **moved})


def create_head(database: Database, connection: Connection, row: Mapping[str, Any]) -> None:
    """Begin the log of a new tenant; one that has begun stays as it is."""
    database.insert_new(connection, _HEADS, [dict(row)])


def clear_projections(connection: Connection) -> None:
    """Delete every row of the projection tables, before they are made again."""
    for name in PROJECTIONS:
        connection.execute(ServerTable.metadata.tables[name].delete())
