"""Fingerprints: whether a repeated idempotency key comes with the same content.

Signed commands are compared by their bytes. Requests of the JSON API carry personal values in the
clear, so their fingerprint is keyed: without the key nobody can test guesses against a stored one.
"""

import msgspec
from blake3 import blake3

from workmate_shared.kernel.hashing import blake3_hex, length_prefixed

SIGNED_DOMAIN = "workmate.fingerprint.signed.v1"
REQUEST_DOMAIN = "workmate.fingerprint.request.v1"

KEY_BYTES = 32


def signed_fingerprint(payload: bytes) -> str:
    """Fingerprint a signed command by its payload's bytes, as hex; disclosures do not count."""
    return blake3_hex(SIGNED_DOMAIN, payload)


def request_fingerprint(
    key: bytes,
    command: str,
    aggregate_id: str | None,
    expected_version: int | None,
    decoded: object,
) -> str:
    """Fingerprint a request by what it asks for, as hex, under a 32-byte secret key.

    `decoded` is the decoded body, a mapping or a struct; the order of its members does not count,
    and neither does a top-level `occurred_at`. What the caller left out must be left out of it too,
    so that defaults added later change no fingerprint. Raises ValueError on a key of another size.
    """
    if len(key) != KEY_BYTES:
        raise ValueError("a fingerprint key is 32 bytes long")
    content = msgspec.to_builtins(decoded)
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name != "occurred_at"}
    request = msgspec.json.encode(
        [command, aggregate_id, expected_version, content], order="deterministic"
    )
    return blake3(length_prefixed(REQUEST_DOMAIN.encode(), request), key=key).hexdigest()
