"""Cursors: where the last page of a list ended, sealed so that only this server can have made it.

A cursor belongs to one tenant, one list with its filters, and one life of the log. It holds a place
in an order and nothing that its holder has not seen.
"""

import base64
import binascii
import hmac
from typing import Any

from blake3 import blake3
from msgspec import Struct

from workmate_server.http.problems import ProblemError
from workmate_server.http.services import Services
from workmate_server.identity.authenticate import Caller
from workmate_shared.kernel.hashing import length_prefixed
from workmate_shared.wire.codec import MalformedError, decode, encode

CURSOR_DOMAIN = "workmate.cursor.v1"
CURSOR_CHARACTERS_MAX = 1000

_SEAL_BYTES = 16


class _Place(Struct, frozen=True):
    lineage: str
    position: list[Any]


def make_cursor(
    services: Services, caller: Caller, scope: object, position: tuple[Any, ...]
) -> str:
    """Return the cursor after `position` in the list that `scope` (plain JSON) describes."""
    data = encode(_Place(caller.lineage, list(position)))
    sealed = _seal(services, caller, scope, data) + data
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def read_cursor(
    services: Services, caller: Caller, scope: object, text: str | None
) -> tuple[Any, ...] | None:
    """Return the position behind a cursor, or None without one.

    Raises ProblemError: `bad_cursor`, or `cursor_expired` for one of an earlier life of the log.
    """
    if text is None:
        return None
    try:
        padded = text[:CURSOR_CHARACTERS_MAX] + "=" * (-len(text) % 4)
        sealed = base64.b64decode(padded, altchars=b"-_", validate=True)
        data = sealed[_SEAL_BYTES:]
        if not hmac.compare_digest(sealed[:_SEAL_BYTES], _seal(services, caller, scope, data)):
            raise ProblemError("bad_cursor")
        place = decode(data, _Place, max_bytes=CURSOR_CHARACTERS_MAX)
    except (binascii.Error, ValueError, MalformedError) as error:
        raise ProblemError("bad_cursor") from error
    if place.lineage != caller.lineage:
        raise ProblemError("cursor_expired")
    return tuple(place.position)


def _seal(services: Services, caller: Caller, scope: object, data: bytes) -> bytes:
    content = length_prefixed(
        CURSOR_DOMAIN.encode(), caller.tenant_id.encode(), encode(scope), data
    )
    return blake3(content, key=services.keys.fingerprint_key).digest(_SEAL_BYTES)
