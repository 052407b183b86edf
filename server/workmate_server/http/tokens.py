"""Access tokens and enrolment codes: secrets that are shown once, in the answer that makes them.

What is stored is their hash. A repeat of the request answers with the same outcome and without the
secret, because nobody has it any more.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from workmate_server.engine.model import Decided, Submission
from workmate_server.engine.tokens import NewToken, new_token
from workmate_server.http.administration import (
    AdministrationBody,
    Request,
    decide,
    read_request,
    refuse_system_role,
    stored_principal,
    submission_for,
)
from workmate_server.http.credentials import list_credentials, revoke_credential
from workmate_server.http.headers import path_id
from workmate_shared.kernel.ids import Identifier
from workmate_shared.kernel.instants import Instant, format_instant, seconds_between
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import AccessToken, EnrolmentCode, Roles
from workmate_shared.principals.enrolment import SECRET_BYTES, code_check, code_hash, make_code
from workmate_shared.principals.principal import CredentialRecord
from workmate_shared.wire.intake import MessageError

ALREADY_ISSUED = "already_issued"


class TokenBody(AdministrationBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For whom a token is, which of the roles it may use (all if left out), and until when."""

    principal_id: Identifier
    roles: Roles | None = None
    expires_at: Instant | None = None


class CodeBody(AdministrationBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose device a code is for."""

    principal_id: Identifier


class _StoredToken(Struct, frozen=True):
    credential: AccessToken | EnrolmentCode


async def issue_token(request: web.Request) -> web.StreamResponse:
    """Issue an access token: `{token_id, token}`, or `already_issued` without the secret."""
    asked = await read_request(request, TokenBody)
    token = new_token(asked.services.entropy)
    return await decide(
        asked.services,
        asked.caller,
        lambda: _token_submission(asked, token),
        lambda decided: _token_members(decided, token),
    )


def _token_submission(asked: Request, token: NewToken) -> Submission:
    body: TokenBody = asked.body
    services = asked.services
    now = services.now()
    life = timedelta(seconds=services.settings.token_life_seconds)
    expires_at = body.expires_at or format_instant(services.clock.now() + life)
    roles = body.roles
    if roles is None:
        with services.database.read() as connection:
            owner = stored_principal(connection, asked.caller.tenant_id, body.principal_id)
        roles = () if owner is None else owner.roles
    refuse_system_role(roles)
    credential = AccessToken(
        credential_id=services.entropy.uuid7(),
        token_hash=token.hash,
        roles=roles,
        expires_at=_checked_end(expires_at, now),
    )
    return submission_for(asked, "add_credential", body.principal_id, {"credential": credential})


def _checked_end(expires_at: str, now: str) -> str:
    try:
        over = seconds_between(now, expires_at) <= 0
    except (ValueError, OverflowError) as error:
        raise MessageError("invalid_command", "$.expires_at", "No such moment.") from error
    if over:
        raise MessageError("invalid_command", "$.expires_at", "It has passed already.")
    return expires_at


def _token_members(decided: Decided, token: NewToken) -> Mapping[str, Any]:
    stored = _stored(decided)
    if isinstance(stored, AccessToken) and stored.token_hash == token.hash:
        return {"token_id": stored.credential_id, "token": token.text}
    token_id = None if stored is None else stored.credential_id
    return {"token_id": token_id, "token": None, "code": ALREADY_ISSUED}


async def issue_code(request: web.Request) -> web.StreamResponse:
    """Issue an enrolment code: `{code, expires_at}`, or no code where it was shown before."""
    asked = await read_request(request, CodeBody)
    secret = asked.services.entropy.token_bytes(SECRET_BYTES)
    code = make_code(secret, asked.services.keys.log_key.key_id)
    return await decide(
        asked.services,
        asked.caller,
        lambda: _code_submission(asked, code),
        lambda decided: _code_members(decided, code),
    )


def _code_submission(asked: Request, code: str) -> Submission:
    services = asked.services
    life = timedelta(seconds=services.settings.enrolment_code_life_seconds)
    credential = EnrolmentCode(
        credential_id=services.entropy.uuid7(),
        code_check=code_check(code_hash(code)),
        expires_at=format_instant(services.clock.now() + life),
    )
    return submission_for(
        asked, "add_credential", asked.body.principal_id, {"credential": credential}
    )


def _code_members(decided: Decided, code: str) -> Mapping[str, Any]:
    stored = _stored(decided)
    if not isinstance(stored, EnrolmentCode):
        return {}
    fresh = stored.code_check == code_check(code_hash(code))
    members = {"code": code if fresh else None, "expires_at": stored.expires_at}
    return members if fresh else {**members, ALREADY_ISSUED: True}


def _stored(decided: Decided) -> AccessToken | EnrolmentCode | None:
    """Return the credential that the stored command adds: the first request's, in a repeat."""
    if not decided.command:
        return None
    return msgspec.json.decode(decided.command, type=_StoredToken).credential


async def list_tokens(request: web.Request) -> web.StreamResponse:
    """List the access tokens of the tenant: whose, which roles, until when, last used."""
    return await list_credentials(request, "token", _token_item)


def _token_item(row: Any, record: CredentialRecord | None) -> dict[str, Any]:
    token = None if record is None else record.credential
    roles: tuple[Role, ...] = token.roles if isinstance(token, AccessToken) else ()
    return {
        "token_id": row.credential_id,
        "principal_id": row.principal_id,
        "roles": roles,
        "expires_at": row.expires_at,
        "revoked": bool(row.revoked),
        "added_at": None if record is None else record.added_at,
        "last_used_at": row.last_used_at,
    }


async def revoke_token(request: web.Request) -> web.StreamResponse:
    """Revoke an access token; without a key of its own the request is its own key."""
    return await revoke_credential(request, "token", path_id(request, "token_id"), "token_id")


routes = [
    web.post("/v1/tokens", issue_token),
    web.get("/v1/tokens", list_tokens),
    web.delete("/v1/tokens/{token_id}", revoke_token),
    web.post("/v1/enrolment-codes", issue_code),
]
"""The addresses of access tokens and enrolment codes."""
