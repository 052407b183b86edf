"""Device sessions, and the challenges that have been answered.

A challenge is kept only once it was answered, until it would have expired anyway: who asks for one
and never answers costs nothing.
"""

from typing import Any

from sqlalchemy import Connection, and_, bindparam, insert, select

from workmate_server.store.tables import (
    CredentialRow,
    NonceRow,
    PrincipalRow,
    SessionRow,
    TenantHead,
    table_of,
)

_SESSIONS = table_of(SessionRow)
_NONCES = table_of(NonceRow)
_CREDENTIALS = table_of(CredentialRow)
_PRINCIPALS = table_of(PrincipalRow)
_HEADS = table_of(TenantHead)


_KNOWN = (
    _SESSIONS.join(
        _CREDENTIALS,
        and_(
            _CREDENTIALS.c.tenant_id == _SESSIONS.c.tenant_id,
            _CREDENTIALS.c.credential_id == _SESSIONS.c.device_id,
            _CREDENTIALS.c.kind == "device",
        ),
    )
    .join(
        _PRINCIPALS,
        and_(
            _PRINCIPALS.c.tenant_id == _SESSIONS.c.tenant_id,
            _PRINCIPALS.c.principal_id == _SESSIONS.c.principal_id,
        ),
    )
    .join(_HEADS, _HEADS.c.tenant_id == _SESSIONS.c.tenant_id)
)
# Built once: this is read for every request, and building a statement costs more than running it.
_BY_HASH = (
    select(_SESSIONS, _CREDENTIALS.c.revoked, _PRINCIPALS.c.snapshot, _HEADS.c.lineage)
    .select_from(_KNOWN)
    .where(_SESSIONS.c.token_hash == bindparam("hash_wanted"))
)


def find_session(connection: Connection, token_hash: str) -> Any:
    """Return a session with its device's `revoked`, its principal's `snapshot` and the lineage.

    None for an unknown one, and for one whose device or principal the log does not know.
    """
    return connection.execute(_BY_HASH, {"hash_wanted": token_hash}).one_or_none()


def open_session(
    connection: Connection, nonce: dict[str, str], session: dict[str, str], now: str
) -> None:
    """Spend a challenge and begin the session that answers it; what has expired is dropped.

    Raises DuplicateError through the transaction for a challenge that was spent before.
    """
    connection.execute(_NONCES.delete().where(_NONCES.c.expires_at <= now))
    connection.execute(_SESSIONS.delete().where(_SESSIONS.c.expires_at <= now))
    connection.execute(insert(_NONCES), [nonce])
    connection.execute(insert(_SESSIONS), [session])
