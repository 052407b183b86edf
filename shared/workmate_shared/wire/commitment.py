"""Commitments to personal values, and the disclosures that open them.

Signed bytes hold only a commitment: a hash of the value under a random salt of 256 bits, which tells
nothing about the value. The disclosure travels and is stored beside them; deleting it erases the
value, while every signature and receipt still verifies.
"""

from typing import Literal

from msgspec import Struct, field

from workmate_shared.kernel.hashing import blake3_hex
from workmate_shared.wire.binary import from_base64, to_base64
from workmate_shared.wire.codec import encode

SALT_BYTES = 32

COMMITMENT_DOMAIN = "workmate.commitment.v1"

DisclosureCode = Literal["disclosure_malformed", "disclosure_mismatch"]


class DisclosureError(Exception):
    """A disclosure that does not open its commitment; `code` says why."""

    def __init__(self, code: DisclosureCode, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: DisclosureCode = code
        self.detail = detail


class Disclosure(Struct, frozen=True):
    """What opens a commitment: the salt in base64, the retention class, and the value.

    `value` is JSON text; its UTF-8 bytes are exactly those that were hashed. The retention class is
    not covered by the commitment: it is a claim that the receiver judges by its own rules.
    """

    salt: str
    retention_class: str = field(name="class")
    value: str


def commitment(salt: bytes, value: bytes) -> str:
    """Commit to the bytes of a value, as hex. Raises ValueError unless the salt has 32 bytes."""
    if len(salt) != SALT_BYTES:
        raise ValueError("a salt is 32 bytes long")
    return blake3_hex(COMMITMENT_DOMAIN, salt, value)


def make_disclosure(value: object, salt: bytes, retention_class: str) -> tuple[str, Disclosure]:
    """Encode a value as compact JSON; return the commitment to it and the disclosure that opens it.

    `salt` is 32 fresh random bytes; a salt used twice would show where two values are equal.
    """
    data = encode(value)
    disclosure = Disclosure(
        salt=to_base64(salt), retention_class=retention_class, value=data.decode()
    )
    return commitment(salt, data), disclosure


def open_disclosure(commitment_hex: str, disclosure: Disclosure) -> bytes:
    """Return the value's JSON bytes, proven to be those committed to; they are not parsed here.

    Raises DisclosureError: `disclosure_malformed` or `disclosure_mismatch`.
    """
    value = disclosure.value.encode(errors="surrogatepass")
    try:
        computed = commitment(from_base64(disclosure.salt), value)
    except ValueError as error:
        raise DisclosureError("disclosure_malformed", f"salt: {error}") from error
    if computed != commitment_hex:
        raise DisclosureError("disclosure_mismatch", "the value is not the one committed to")
    return value
