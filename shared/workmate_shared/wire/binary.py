"""Binary values as JSON text: canonical base64 and lower-case hex.

Each value has exactly one accepted spelling, so that text which differs is a value that differs:
upper-case hex, missing padding, the URL-safe alphabet and stray trailing bits are all refused.
"""

import binascii
import re

_DIGEST = re.compile(r"[0-9a-f]{64}")


def to_base64(data: bytes) -> str:
    """Write bytes in standard base64 with padding (RFC 4648, section 4)."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def from_base64(text: str) -> bytes:
    """Read standard base64 with padding. Raises ValueError unless `text` is the one canonical form."""
    data = binascii.a2b_base64(text)
    if to_base64(data) != text:
        raise ValueError("not canonical base64")
    return data


def from_hex_digest(text: str) -> bytes:
    """Read a 32-byte hash from lower-case hex. Raises ValueError on any other text."""
    if _DIGEST.fullmatch(text) is None:
        raise ValueError("not 64 lower-case hex digits")
    return bytes.fromhex(text)
