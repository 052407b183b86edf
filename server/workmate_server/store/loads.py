"""What the commit path reads inside its transaction, one round trip a table and batch."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, select, tuple_

from workmate_server.store.tables import (
    AuditEvent,
    BlobLink,
    BlobRow,
    CommandLog,
    CommitBatch,
    CredentialRow,
    DisclosureRow,
    EvidenceManifest,
    PrincipalRow,
    SubscriptionRow,
    TaskSnapshot,
    TenantHead,
    table_of,
)

Key = tuple[str, str]

IDS_MAX = 10_000
"""How many ids one statement names; every engine takes that many."""

COMMANDS = table_of(CommandLog)
EVENTS = table_of(AuditEvent)
BATCHES = table_of(CommitBatch)
HEADS = table_of(TenantHead)
_SNAPSHOTS = {
    "task": (table_of(TaskSnapshot), table_of(TaskSnapshot).c.task_id),
    "principal": (table_of(PrincipalRow), table_of(PrincipalRow).c.principal_id),
}
_MANIFESTS = table_of(EvidenceManifest)
_CREDENTIALS = table_of(CredentialRow)
_DISCLOSURES = table_of(DisclosureRow)
_BLOBS = table_of(BlobRow)
_LINKS = table_of(BlobLink)
_SUBSCRIPTIONS = table_of(SubscriptionRow)


def load_commands(connection: Connection, tenant_id: str, keys: Collection[Key]) -> dict[Key, Any]:
    """Return the command log's rows for (principal, command id) keys that are known."""
    if not keys:
        return {}
    wanted = tuple_(COMMANDS.c.principal_id, COMMANDS.c.command_id).in_(list(keys))
    rows = connection.execute(select(COMMANDS).where(COMMANDS.c.tenant_id == tenant_id, wanted))
    return {(row.principal_id, row.command_id): row for row in rows}


def load_snapshots(
    connection: Connection, tenant_id: str, kind: str, ids: Collection[str], *, lock: bool
) -> dict[str, bytes]:
    """Return the snapshots of aggregates of one kind, locked in id order where asked."""
    if not ids:
        return {}
    table, column = _SNAPSHOTS[kind]
    statement = (
        select(column, table.c.snapshot)
        .where(table.c.tenant_id == tenant_id, column.in_(sorted(ids)))
        .order_by(column)
    )
    if lock:
        statement = statement.with_for_update()
    return {row[0]: row[1] for row in connection.execute(statement)}


def load_event_refs(
    connection: Connection, tenant_id: str, above: dict[str, int]
) -> dict[str, list[Any]]:
    """Return the events of each aggregate above the version given for it, in order."""
    found: dict[str, list[Any]] = {aggregate_id: [] for aggregate_id in above}
    if not above:
        return found
    c = EVENTS.c
    rows = connection.execute(
        select(c.aggregate_id, c.aggregate_version, c.type, c.actor_id, c.command_id)
        .where(
            c.tenant_id == tenant_id,
            c.aggregate_id.in_(list(above)),
            c.aggregate_version > min(above.values()),
        )
        .order_by(c.aggregate_id, c.aggregate_version)
    )
    for row in rows:
        if row.aggregate_version > above[row.aggregate_id]:
            found[row.aggregate_id].append(row)
    return found


def load_links(
    connection: Connection, tenant_id: str, aggregate_ids: Collection[str]
) -> dict[Key, str | None]:
    """Return what each command on the aggregates names as `after`, by (principal, command id)."""
    if not aggregate_ids:
        return {}
    c = COMMANDS.c
    rows = connection.execute(
        select(c.principal_id, c.command_id, c.after).where(
            c.tenant_id == tenant_id, c.aggregate_id.in_(list(aggregate_ids))
        )
    )
    return {(row.principal_id, row.command_id): row.after for row in rows}


def load_credential_owner(connection: Connection, tenant_id: str, credential_id: str) -> str | None:
    """Return the principal that has the credential of this id in its tenant, or None."""
    c = _CREDENTIALS.c
    owner: str | None = connection.execute(
        select(c.principal_id).where(c.tenant_id == tenant_id, c.credential_id == credential_id)
    ).scalar()
    return owner


def load_manifest(
    connection: Connection, tenant_id: str, task_id: str, manifest_id: str
) -> bytes | None:
    """Return the bytes of a manifest of a task, or None."""
    c = _MANIFESTS.c
    return connection.execute(
        select(c.manifest).where(
            c.tenant_id == tenant_id, c.task_id == task_id, c.manifest_id == manifest_id
        )
    ).scalar()


def load_disclosures(
    connection: Connection, tenant_id: str, commitments: Iterable[str]
) -> dict[str, Any]:
    """Return the rows that open commitments, for those that still exist."""
    wanted = list(dict.fromkeys(commitments))
    c = _DISCLOSURES.c
    found: dict[str, Any] = {}
    for start in range(0, len(wanted), IDS_MAX):
        part = wanted[start : start + IDS_MAX]
        rows = connection.execute(
            select(_DISCLOSURES).where(c.tenant_id == tenant_id, c.commitment.in_(part))
        )
        found |= {row.commitment: row for row in rows}
    return found


def load_blobs(connection: Connection, tenant_id: str, hashes: Collection[str]) -> dict[str, Any]:
    """Return the rows of files that are or were held, by hash."""
    if not hashes:
        return {}
    c = _BLOBS.c
    rows = connection.execute(
        select(_BLOBS).where(c.tenant_id == tenant_id, c.hash.in_(list(hashes)))
    )
    return {row.hash: row for row in rows}


def load_uploaders(
    connection: Connection, tenant_id: str, hashes: Collection[str]
) -> set[tuple[str, str]]:
    """Return (hash, principal) for everybody who uploaded one of the files."""
    if not hashes:
        return set()
    c = _LINKS.c
    rows = connection.execute(
        select(c.hash, c.principal_id).where(c.tenant_id == tenant_id, c.hash.in_(list(hashes)))
    )
    return {(row.hash, row.principal_id) for row in rows}


def load_head(connection: Connection, tenant_id: str, *, lock: bool = False) -> Any:
    """Return the head of a tenant's log, or None for a tenant that is not there."""
    statement = select(HEADS).where(HEADS.c.tenant_id == tenant_id)
    if lock:
        statement = statement.with_for_update()
    return connection.execute(statement).one_or_none()


def load_tenants(connection: Connection) -> Sequence[Any]:
    """Return the heads of all tenants."""
    return connection.execute(select(HEADS).order_by(HEADS.c.tenant_id)).all()


def load_batch(connection: Connection, tenant_id: str, batch: int) -> Any:
    """Return the row of a commit batch, or None."""
    c = BATCHES.c
    return connection.execute(
        select(BATCHES).where(c.tenant_id == tenant_id, c.batch == batch)
    ).one_or_none()


def load_leaves(connection: Connection, tenant_id: str, batch: int) -> list[bytes]:
    """Return the leaves of a batch in order."""
    c = COMMANDS.c
    rows = connection.execute(
        select(c.leaf).where(c.tenant_id == tenant_id, c.batch == batch).order_by(c.leaf_index)
    )
    return list(rows.scalars())


def load_events(
    connection: Connection, tenant_id: str, ranges: Iterable[tuple[int, int]]
) -> dict[int, Any]:
    """Return the events in the seq ranges (both ends included), by seq."""
    found: dict[int, Any] = {}
    c = EVENTS.c
    for first, last in _joined(ranges):
        rows = connection.execute(
            select(EVENTS).where(c.tenant_id == tenant_id, c.seq.between(first, last))
        )
        found |= {row.seq: row for row in rows}
    return found


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in order, those that touch made one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def load_subscriptions(connection: Connection, tenant_id: str) -> list[Any]:
    """Return the active subscriptions of a tenant."""
    c = _SUBSCRIPTIONS.c
    return list(
        connection.execute(
            select(c.subscription_id, c.kind, c.target).where(
                c.tenant_id == tenant_id, c.active == 1
            )
        )
    )
