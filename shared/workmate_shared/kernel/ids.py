"""Typed identifiers and the patterns that they must match on the wire.

Ids are opaque text. They are compared byte for byte, never parsed for meaning, and made by whoever
creates the thing, so that the id a device minted offline is the id for ever.
"""

from typing import Annotated, NewType

from msgspec import Meta

from workmate_shared.kernel.hashing import derive_uuid8

TenantId = NewType("TenantId", str)
PrincipalId = NewType("PrincipalId", str)

Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@-]*$(?!\n)", max_length=128)]
"""An id of ours: letters, digits and `_ . : @ -`, at most 128 characters."""

CommandId = Annotated[str, Meta(pattern=r"^[\x21-\x7e]+$(?!\n)", min_length=1, max_length=255)]
"""An idempotency key: an opaque string of 1 to 255 visible ASCII characters."""

HashHex = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
"""A BLAKE3-256 hash in lower-case hex."""

Commitment = HashHex
"""A salted commitment to a personal value or a position, in lower-case hex."""

TASK_CONTEXT = "workmate 2026 task id"
EVENT_CONTEXT = "workmate 2026 event id"
PRINCIPAL_CONTEXT = "workmate 2026 principal id"


def task_id_for(tenant_id: str, source: str, external_id: str) -> str:
    """Return the task id of one upstream job: a UUIDv8 (RFC 9562) of the creation key.

    The same tenant, source and external id give the same id for ever, also after a restore.
    """
    return derive_uuid8(TASK_CONTEXT, tenant_id, source, external_id)


def event_id_for(tenant_id: str, principal_id: str, command_id: str, index: int) -> str:
    """Return the stable id of the event number `index` (from 0) that a command causes."""
    return derive_uuid8(EVENT_CONTEXT, tenant_id, principal_id, command_id, str(index))


def principal_id_for(tenant_id: str, actor_id: str, command_id: str) -> str:
    """Return the id of a principal whose creator named none."""
    return derive_uuid8(PRINCIPAL_CONTEXT, tenant_id, actor_id, command_id)
