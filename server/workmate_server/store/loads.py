"""What the commit path reads inside its transaction, one round trip a table and batch.

Statements are built once: building one costs several times what the database takes to answer it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, tuple_

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
_TASKS = table_of(TaskSnapshot)
_PRINCIPALS = table_of(PrincipalRow)
_MANIFESTS = table_of(EvidenceManifest)
_CREDENTIALS = table_of(CredentialRow)
_DISCLOSURES = table_of(DisclosureRow)
_BLOBS = table_of(BlobRow)
_LINKS = table_of(BlobLink)
_SUBSCRIPTIONS = table_of(SubscriptionRow)

_TENANT: Any = bindparam("tenant")


def _among(name: str) -> Any:
    """Return the parameter that stands for a list of values."""
    return bindparam(name, expanding=True)


def _select_snapshots(table: Any, column: Any) -> Any:
    statement = select(column, table.c.snapshot).where(
        table.c.tenant_id == _TENANT, column.in_(_among("ids"))
    )
    return statement.order_by(column)


_COMMANDS_BY_KEY = select(COMMANDS).where(
    COMMANDS.c.tenant_id == _TENANT,
    tuple_(COMMANDS.c.principal_id, COMMANDS.c.command_id).in_(_among("keys")),
)
_OUTCOMES_BY_KEY = select(COMMANDS.c.principal_id, COMMANDS.c.command_id, COMMANDS.c.outcome).where(
    COMMANDS.c.tenant_id == _TENANT,
    tuple_(COMMANDS.c.principal_id, COMMANDS.c.command_id).in_(_among("keys")),
)
_SNAPSHOTS = {
    "task": _select_snapshots(_TASKS, _TASKS.c.task_id),
    "principal": _select_snapshots(_PRINCIPALS, _PRINCIPALS.c.principal_id),
}
_LOCKED_SNAPSHOTS = {kind: one.with_for_update() for kind, one in _SNAPSHOTS.items()}
_EVENT_REFS = (
    select(
        EVENTS.c.aggregate_id,
        EVENTS.c.aggregate_version,
        EVENTS.c.type,
        EVENTS.c.actor_id,
        EVENTS.c.command_id,
    )
    .where(
        EVENTS.c.tenant_id == _TENANT,
        EVENTS.c.aggregate_id.in_(_among("ids")),
        EVENTS.c.aggregate_version > bindparam("version"),
    )
    .order_by(EVENTS.c.aggregate_id, EVENTS.c.aggregate_version)
)
_LINKED = select(COMMANDS.c.principal_id, COMMANDS.c.command_id, COMMANDS.c.after).where(
    COMMANDS.c.tenant_id == _TENANT, COMMANDS.c.aggregate_id.in_(_among("ids"))
)
_DISCLOSED = select(_DISCLOSURES).where(
    _DISCLOSURES.c.tenant_id == _TENANT, _DISCLOSURES.c.commitment.in_(_among("commitments"))
)
_VALUES = select(_DISCLOSURES.c.commitment, _DISCLOSURES.c.value).where(
    _DISCLOSURES.c.tenant_id == _TENANT, _DISCLOSURES.c.commitment.in_(_among("commitments"))
)
_HEAD = select(HEADS).where(HEADS.c.tenant_id == _TENANT)
_LOCKED_HEAD = _HEAD.with_for_update()
_BATCH = select(BATCHES).where(
    BATCHES.c.tenant_id == _TENANT, BATCHES.c.batch == bindparam("number")
)
_LEAVES = (
    select(COMMANDS.c.leaf)
    .where(COMMANDS.c.tenant_id == _TENANT, COMMANDS.c.batch == bindparam("number"))
    .order_by(COMMANDS.c.leaf_index)
)
_EVENTS_BETWEEN = select(EVENTS).where(
    EVENTS.c.tenant_id == _TENANT, EVENTS.c.seq.between(bindparam("first"), bindparam("last"))
)
_ACTIVE = select(
    _SUBSCRIPTIONS.c.subscription_id, _SUBSCRIPTIONS.c.kind, _SUBSCRIPTIONS.c.target
).where(_SUBSCRIPTIONS.c.tenant_id == _TENANT, _SUBSCRIPTIONS.c.active == 1)


def load_commands(connection: Connection, tenant_id: str, keys: Collection[Key]) -> dict[Key, Any]:
    """Return the command log's rows for (principal, command id) keys that are known."""
    if not keys:
        return {}
    rows = connection.execute(_COMMANDS_BY_KEY, {"tenant": tenant_id, "keys": list(keys)})
    return {(row.principal_id, row.command_id): row for row in rows}


def load_outcomes(connection: Connection, tenant_id: str, keys: Collection[Key]) -> dict[Key, str]:
    """Return how the commands with (principal, command id) keys that are known have ended."""
    if not keys:
        return {}
    rows = connection.execute(_OUTCOMES_BY_KEY, {"tenant": tenant_id, "keys": list(keys)})
    return {(principal_id, command_id): outcome for principal_id, command_id, outcome in rows}


def load_snapshots(
    connection: Connection, tenant_id: str, kind: str, ids: Collection[str], *, lock: bool
) -> dict[str, bytes]:
    """Return the snapshots of aggregates of one kind, locked in id order where asked."""
    if not ids:
        return {}
    statement = (_LOCKED_SNAPSHOTS if lock else _SNAPSHOTS)[kind]
    rows = connection.execute(statement, {"tenant": tenant_id, "ids": sorted(ids)})
    return {row[0]: row[1] for row in rows}


def load_event_refs(
    connection: Connection, tenant_id: str, above: dict[str, int]
) -> dict[str, list[Any]]:
    """Return the events of each aggregate above the version given for it, in order."""
    found: dict[str, list[Any]] = {aggregate_id: [] for aggregate_id in above}
    if not above:
        return found
    given = {"tenant": tenant_id, "ids": list(above), "version": min(above.values())}
    for row in connection.execute(_EVENT_REFS, given):
        if row.aggregate_version > above[row.aggregate_id]:
            found[row.aggregate_id].append(row)
    return found


def load_links(
    connection: Connection, tenant_id: str, aggregate_ids: Collection[str]
) -> dict[Key, str | None]:
    """Return what each command on the aggregates names as `after`, by (principal, command id)."""
    if not aggregate_ids:
        return {}
    rows = connection.execute(_LINKED, {"tenant": tenant_id, "ids": list(aggregate_ids)})
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
    rows = _load_disclosed(connection, _DISCLOSED, tenant_id, commitments)
    return {row.commitment: row for row in rows}


def load_values(
    connection: Connection, tenant_id: str, commitments: Iterable[str]
) -> dict[str, str]:
    """Return the values (JSON text) behind commitments, for those that still exist."""
    return dict(_load_disclosed(connection, _VALUES, tenant_id, commitments))


def _load_disclosed(
    connection: Connection, statement: Any, tenant_id: str, commitments: Iterable[str]
) -> Iterator[Any]:
    wanted = list(dict.fromkeys(commitments))
    for start in range(0, len(wanted), IDS_MAX):
        part = {"tenant": tenant_id, "commitments": wanted[start : start + IDS_MAX]}
        yield from connection.execute(statement, part)


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
    statement = _LOCKED_HEAD if lock else _HEAD
    return connection.execute(statement, {"tenant": tenant_id}).one_or_none()


def load_tenants(connection: Connection) -> Sequence[Any]:
    """Return the heads of all tenants."""
    return connection.execute(select(HEADS).order_by(HEADS.c.tenant_id)).all()


def load_batch(connection: Connection, tenant_id: str, batch: int) -> Any:
    """Return the row of a commit batch, or None."""
    return connection.execute(_BATCH, {"tenant": tenant_id, "number": batch}).one_or_none()


def load_leaves(connection: Connection, tenant_id: str, batch: int) -> list[bytes]:
    """Return the leaves of a batch in order."""
    return list(connection.execute(_LEAVES, {"tenant": tenant_id, "number": batch}).scalars())


def load_events(
    connection: Connection, tenant_id: str, ranges: Iterable[tuple[int, int]]
) -> dict[int, Any]:
    """Return the events in the seq ranges (both ends included), by seq."""
    found: dict[int, Any] = {}
    for first, last in _joined(ranges):
        given = {"tenant": tenant_id, "first": first, "last": last}
        found |= {row.seq: row for row in connection.execute(_EVENTS_BETWEEN, given)}
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
    return list(connection.execute(_ACTIVE, {"tenant": tenant_id}))
