"""The challenge that a device signs to open a session.

It names the server's key as well as the nonce, so that a signature given to one server opens nothing
at another; it needs no clock. Together with commands it is all that a device ever signs.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from workmate_shared.kernel.ids import HashHex, Identifier
from workmate_shared.wire.codec import decode, encode
from workmate_shared.wire.dsse import SESSION_TYPE, Envelope, open_envelope, sign

PURPOSE: Literal["workmate.session"] = "workmate.session"

MAX_CHALLENGE_BYTES = 4 * 1024


class Challenge(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed: for which server key, tenant and device, with the server's fresh nonce."""

    purpose: Literal["workmate.session"]
    server_key_id: HashHex
    tenant_id: Identifier
    device_id: Identifier
    nonce: Annotated[str, Meta(min_length=1, max_length=255)]


def encode_challenge(challenge: Challenge) -> bytes:
    """Encode a challenge into the bytes to be signed."""
    return encode(challenge)


def decode_challenge(payload: bytes) -> Challenge:
    """Decode a challenge whose signature has been verified. Raises MalformedError."""
    return decode(payload, Challenge, max_bytes=MAX_CHALLENGE_BYTES)


def sign_challenge(challenge: Challenge, seed: bytes) -> Envelope:
    """Sign a challenge with the device's 32-byte seed."""
    return sign(SESSION_TYPE, encode_challenge(challenge), seed)


def verify_challenge(envelope: Envelope, keys: Mapping[str, bytes]) -> Challenge:
    """Return the challenge that one of the device keys signed.

    Whether nonce, server key, tenant and device are the expected ones is for the caller to check.
    Raises SignatureError, then MalformedError.
    """
    return decode_challenge(open_envelope(envelope, SESSION_TYPE, keys))
