"""The hashing rules that every part of Workmate shares: BLAKE3 with domain tags, and derived ids.

Every hash is taken over length-prefixed parts that start with a domain tag, so that no two kinds of
value, and no two ways of cutting one value into parts, can ever give the same input to the hash.
"""

from uuid import UUID

from blake3 import blake3

LENGTH_BYTES = 8
"""Size of the big-endian length that stands before each part, in bytes."""

_UUID_VERSION_8 = 0x8 << 76
_UUID_VARIANT_RFC = 0b10 << 62
_UUID_FIELDS = ~((0xF << 76) | (0b11 << 62))


def length_prefixed(*parts: bytes) -> bytes:
    """Join parts so that they can be told apart again: each follows its 8-byte big-endian length."""
    return b"".join([len(part).to_bytes(LENGTH_BYTES, "big") + part for part in parts])


def blake3_digest(domain: str, *parts: bytes) -> bytes:
    """Hash parts under a domain tag: BLAKE3-256 (32 bytes) of the length-prefixed tag and parts."""
    return blake3(length_prefixed(domain.encode(), *parts)).digest()


def blake3_hex(domain: str, *parts: bytes) -> str:
    """Hash like `blake3_digest`, written as 64 lower-case hex digits."""
    return blake3_digest(domain, *parts).hex()


def derive_uuid8(context: str, *parts: str) -> str:
    """Derive an id that is always the same for the same context and parts.

    The id is a UUIDv8 (RFC 9562, section 5.8): the first 16 bytes of BLAKE3 in key-derivation mode
    under `context`, over the length-prefixed UTF-8 parts, with the version and variant bits set.
    Returns the canonical lower-case text form. Raises UnicodeEncodeError on a lone surrogate.
    """
    material = length_prefixed(*[part.encode() for part in parts])
    derived = int.from_bytes(blake3(material, derive_key_context=context).digest(16), "big")
    return str(UUID(int=(derived & _UUID_FIELDS) | _UUID_VERSION_8 | _UUID_VARIANT_RFC))
