"""Who is calling: an access token or a device session, and what its principal may do now.

Nothing is remembered between two requests, so that a revocation counts from the next one on. A
session of a worker who was deactivated, or of a device that was revoked, is still known: it has no
roles, and the one who answers decides how far it reaches.
"""

import msgspec
from msgspec import Struct

from workmate_server.engine.tokens import (
    SESSION_PREFIX,
    TOKEN_PREFIX,
    session_hash,
    token_hash,
)
from workmate_server.store import reads_identity, sessions
from workmate_server.store.database import Connection
from workmate_shared.kernel.instants import seconds_between
from workmate_shared.kernel.table import Role, Row
from workmate_shared.principals.commands import AccessToken
from workmate_shared.principals.principal import Principal
from workmate_shared.principals.table import ACTIVE


class Caller(Struct, frozen=True, kw_only=True):
    """Who sent a request.

    `claimed` are the credential's roles in their order, `roles` those of them that the principal
    still has. `credential_id` is the token's id, or the device's for a session. `purpose` is the
    purpose stated for positions, if any.
    """

    tenant_id: str
    principal_id: str
    credential_id: str
    lineage: str
    claimed: tuple[Role, ...]
    roles: frozenset[Role]
    device_id: str | None = None
    session: bool = False
    active: bool = True
    device_revoked: bool = False
    purpose: str | None = None

    @property
    def barred(self) -> bool:
        """Whether the principal may no longer act, or the device is no longer trusted."""
        return not self.active or self.device_revoked

    def acting_role(self, row: Row, *, override: bool = False) -> Role | None:
        """Return the role in which this caller issues a command.

        The first that the row allows; else the first at all, in which the engine will refuse it and
        say so. None for a caller without any.
        """
        allowed = frozenset({Role.SUPERVISOR}) if override else row.roles
        fitting = (role for role in self.claimed if role in allowed and role in self.roles)
        return next(fitting, self.claimed[0] if self.claimed else None)


def identify(connection: Connection, text: str, now: str) -> Caller | None:
    """Return who holds a bearer token at the time `now`, or None for one that counts no more."""
    if text.startswith(SESSION_PREFIX):
        return _by_session(connection, text, now)
    if text.startswith(TOKEN_PREFIX):
        return _by_token(connection, text, now)
    return None


def known(connection: Connection, text: str) -> bool:
    """Whether a bearer token was ever issued and is still on record, expired or revoked as well."""
    if text.startswith(SESSION_PREFIX):
        return sessions.find_session(connection, session_hash(text)) is not None
    return reads_identity.find_holder(connection, "token", token_hash(text)) is not None


def read_principal(snapshot: bytes) -> Principal:
    """Return a principal from its stored snapshot."""
    return msgspec.json.decode(snapshot, type=Principal)


def _by_token(connection: Connection, text: str, now: str) -> Caller | None:
    row = reads_identity.find_holder(connection, "token", token_hash(text))
    if row is None or row.revoked or _over(row.expires_at, now):
        return None
    principal = read_principal(row.snapshot)
    record = principal.credential(row.credential_id)
    if principal.state != ACTIVE or record is None:
        return None
    token = record.credential
    claimed = token.roles if isinstance(token, AccessToken) else ()
    return Caller(
        tenant_id=row.tenant_id,
        principal_id=row.principal_id,
        credential_id=row.credential_id,
        lineage=row.lineage,
        claimed=claimed,
        roles=frozenset(claimed) & frozenset(principal.roles),
    )


def _by_session(connection: Connection, text: str, now: str) -> Caller | None:
    row = sessions.find_session(connection, session_hash(text))
    if row is None or _over(row.expires_at, now):
        return None
    principal = read_principal(row.snapshot)
    active = principal.state == ACTIVE
    acts = active and not row.revoked and Role.WORKER in principal.roles
    return Caller(
        tenant_id=row.tenant_id,
        principal_id=row.principal_id,
        credential_id=row.device_id,
        lineage=row.lineage,
        claimed=(Role.WORKER,),
        roles=frozenset({Role.WORKER}) if acts else frozenset(),
        device_id=row.device_id,
        session=True,
        active=active,
        device_revoked=bool(row.revoked),
    )


def _over(expires_at: str | None, now: str) -> bool:
    return expires_at is not None and seconds_between(now, expires_at) <= 0
