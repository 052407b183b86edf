"""What is read, outside the commit path, of principals, credentials and what they last did.

Lists are read in order of an id, from after the one where the last page ended.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, select

from workmate_server.store.database import Database
from workmate_server.store.tables import (
    CredentialRow,
    CredentialUse,
    PrincipalRow,
    TenantHead,
    table_of,
)

_CREDENTIALS = table_of(CredentialRow)
_PRINCIPALS = table_of(PrincipalRow)
_USES = table_of(CredentialUse)
_HEADS = table_of(TenantHead)

_HOLDERS = _CREDENTIALS.join(
    _PRINCIPALS,
    and_(
        _PRINCIPALS.c.tenant_id == _CREDENTIALS.c.tenant_id,
        _PRINCIPALS.c.principal_id == _CREDENTIALS.c.principal_id,
    ),
).join(_HEADS, _HEADS.c.tenant_id == _CREDENTIALS.c.tenant_id)
_USED = _CREDENTIALS.outerjoin(
    _USES,
    and_(
        _USES.c.tenant_id == _CREDENTIALS.c.tenant_id,
        _USES.c.credential_id == _CREDENTIALS.c.credential_id,
    ),
)


# Built once: these are read for most requests, and building a statement costs more than running it.
_HOLDER = (
    select(_CREDENTIALS, _PRINCIPALS.c.snapshot, _HEADS.c.lineage)
    .select_from(_HOLDERS)
    .where(
        _CREDENTIALS.c.kind == bindparam("kind_wanted"),
        _CREDENTIALS.c.lookup == bindparam("lookup_wanted"),
    )
    .limit(1)
)
_DEVICES = select(_CREDENTIALS).where(
    _CREDENTIALS.c.tenant_id == bindparam("tenant_wanted"),
    _CREDENTIALS.c.kind == "device",
    _CREDENTIALS.c.credential_id.in_(bindparam("devices_wanted", expanding=True)),
)
_LOG_KEYS = select(_CREDENTIALS.c.credential_id, _CREDENTIALS.c.lookup).where(
    _CREDENTIALS.c.tenant_id == bindparam("tenant_wanted"),
    _CREDENTIALS.c.kind == "log_key",
    _CREDENTIALS.c.revoked == 0,
)


def find_holder(connection: Connection, kind: str, lookup: str) -> Any:
    """Return the credential of a kind behind a key or hash, of whichever tenant, or None.

    The row has the credential's columns, its principal's `snapshot` and the tenant's `lineage`.
    """
    wanted = {"kind_wanted": kind, "lookup_wanted": lookup}
    return connection.execute(_HOLDER, wanted).one_or_none()


def owner_of(connection: Connection, tenant_id: str, kind: str, credential_id: str) -> str | None:
    """Return whose credential of a kind this is, or None."""
    c = _CREDENTIALS.c
    return connection.execute(
        select(c.principal_id).where(
            c.tenant_id == tenant_id, c.credential_id == credential_id, c.kind == kind
        )
    ).scalar()


def device_keys(
    connection: Connection, tenant_id: str, device_ids: Collection[str]
) -> dict[str, Any]:
    """Return the rows of devices by id, revoked ones too; `lookup` is the public key in hex."""
    if not device_ids:
        return {}
    wanted = {"tenant_wanted": tenant_id, "devices_wanted": sorted(device_ids)}
    return {row.credential_id: row for row in connection.execute(_DEVICES, wanted)}


def log_keys(connection: Connection, tenant_id: str) -> dict[str, str]:
    """Return the public keys (hex) that have signed or will sign the tenant's log, by key id."""
    rows = connection.execute(_LOG_KEYS, {"tenant_wanted": tenant_id})
    return {row.credential_id: row.lookup for row in rows}


def list_credentials(
    connection: Connection, tenant_id: str, kind: str, after: str, limit: int
) -> Sequence[Any]:
    """Return credentials of a kind, by id, with when they were last used and what was said then."""
    c = _CREDENTIALS.c
    return connection.execute(
        select(_CREDENTIALS, _USES.c.last_used_at, _USES.c.report)
        .select_from(_USED)
        .where(c.tenant_id == tenant_id, c.kind == kind, c.credential_id > after)
        .order_by(c.credential_id)
        .limit(limit)
    ).all()


def list_principals(
    connection: Connection, tenant_id: str, after: str, limit: int
) -> Sequence[bytes]:
    """Return the snapshots of principals, by id."""
    c = _PRINCIPALS.c
    return (
        connection.execute(
            select(c.snapshot)
            .where(c.tenant_id == tenant_id, c.principal_id > after)
            .order_by(c.principal_id)
            .limit(limit)
        )
        .scalars()
        .all()
    )


def note_use(
    database: Database,
    connection: Connection,
    tenant_id: str,
    credential_id: str,
    used_at: str,
) -> None:
    """Note when a credential was last used; what its device last said of itself stays."""
    row = {"tenant_id": tenant_id, "credential_id": credential_id, "last_used_at": used_at}
    database.upsert(connection, _USES, [row])
