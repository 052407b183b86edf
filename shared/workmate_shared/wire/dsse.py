"""Signed envelopes: DSSE v1 with Ed25519.

Signatures cover the pre-authentication encoding (PAE) of payload type and payload, so a signature
made for one kind of message never counts for another. A payload is verified before anything parses
it, and its bytes are kept as they are. Stricter than the DSSE protocol allows: exactly one signature
for each envelope, its key named, base64 in the standard alphabet and canonical.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from workmate_shared.kernel.hashing import blake3_hex
from workmate_shared.wire.binary import from_base64, to_base64

COMMAND_TYPE = "application/vnd.workmate.command+json"
"""Payload type of a command, signed by a device."""
BATCH_TYPE = "application/vnd.workmate.batch+json"
"""Payload type of a batch header, signed by the server."""
SESSION_TYPE = "application/vnd.workmate.session+json"
"""Payload type of a session challenge, signed by a device."""

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64

KEY_DOMAIN = "workmate.key.v1"

SignatureCode = Literal[
    "envelope_malformed",
    "payload_type_unexpected",
    "signature_count",
    "key_unknown",
    "signature_invalid",
]


class SignatureError(Exception):
    """An envelope or signature that proves nothing; `code` says why."""

    def __init__(self, code: SignatureCode, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: SignatureCode = code
        self.detail = detail


class Signature(Struct, frozen=True):
    """One signature: the signer's key id, and 64 bytes of Ed25519 in base64."""

    keyid: str
    sig: str


class Envelope(Struct, frozen=True):
    """A DSSE envelope: the payload's exact bytes in base64, their type, and who signed them."""

    payload: str
    payload_type: str = field(name="payloadType")
    signatures: tuple[Signature, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: DSSE's pre-authentication encoding, lengths in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def public_key_of(seed: bytes) -> bytes:
    """Return the raw Ed25519 public key (32 bytes) that belongs to a 32-byte seed."""
    return bytes(SigningKey(seed).verify_key)


def key_id(public_key: bytes) -> str:
    """Name a public key by its hash. Raises ValueError unless it is 32 raw bytes long."""
    if len(public_key) != PUBLIC_KEY_BYTES:
        raise ValueError("an Ed25519 public key is 32 bytes long")
    return blake3_hex(KEY_DOMAIN, public_key)


def keys_by_id(public_keys: Iterable[bytes]) -> dict[str, bytes]:
    """Return public keys under their ids, as the verifying functions take them."""
    return {key_id(key): key for key in public_keys}


def sign_bytes(payload_type: str, payload: bytes, seed: bytes) -> tuple[str, bytes]:
    """Sign a payload with a 32-byte seed; returns key id and raw signature, always the same ones."""
    signer = SigningKey(seed)
    signature = signer.sign(pae(payload_type, payload)).signature
    return key_id(bytes(signer.verify_key)), signature


def verify_bytes(
    payload_type: str, payload: bytes, keyid: str, signature: bytes, keys: Mapping[str, bytes]
) -> None:
    """Check a raw signature over a payload against the keys that are trusted.

    Raises SignatureError: `key_unknown` or `signature_invalid`.
    """
    key = keys.get(keyid)
    if key is None:
        raise SignatureError("key_unknown", f"no trusted key has the id {keyid[:64]!r}")
    if len(signature) != SIGNATURE_BYTES:
        raise SignatureError("signature_invalid", "an Ed25519 signature is 64 bytes long")
    try:
        VerifyKey(key).verify(pae(payload_type, payload), signature)
    except BadSignatureError as error:
        raise SignatureError("signature_invalid", "the key did not sign these bytes") from error


def sign(payload_type: str, payload: bytes, seed: bytes) -> Envelope:
    """Put a payload into an envelope signed with a 32-byte seed."""
    keyid, signature = sign_bytes(payload_type, payload, seed)
    return make_envelope(payload_type, payload, keyid, signature)


def make_envelope(payload_type: str, payload: bytes, keyid: str, signature: bytes) -> Envelope:
    """Put a payload and the signature that was made over it into an envelope."""
    return Envelope(
        payload=to_base64(payload),
        payload_type=payload_type,
        signatures=(Signature(keyid=keyid, sig=to_base64(signature)),),
    )


def split_envelope(envelope: Envelope, payload_type: str) -> tuple[bytes, str, bytes]:
    """Take an envelope apart, verifying nothing: payload, key id and raw signature.

    For whoever must look the key up first, or stores the three apart; `verify_bytes` comes next.
    Raises SignatureError: `payload_type_unexpected`, `signature_count` or `envelope_malformed`.
    """
    if envelope.payload_type != payload_type:
        raise SignatureError("payload_type_unexpected", f"expected {payload_type}")
    if len(envelope.signatures) != 1:
        raise SignatureError("signature_count", "an envelope has exactly one signature")
    (only,) = envelope.signatures
    try:
        return from_base64(envelope.payload), only.keyid, from_base64(only.sig)
    except ValueError as error:
        raise SignatureError("envelope_malformed", str(error)) from error


def open_envelope(envelope: Envelope, payload_type: str, keys: Mapping[str, bytes]) -> bytes:
    """Return the payload of an envelope that one of the trusted keys signed as this type.

    Raises SignatureError; nothing of an unproven payload is parsed.
    """
    payload, keyid, signature = split_envelope(envelope, payload_type)
    verify_bytes(payload_type, payload, keyid, signature, keys)
    return payload
