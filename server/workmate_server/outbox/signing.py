"""What a webhook carries: a CloudEvents 1.0 envelope, signed by the Standard Webhooks scheme.

The body is structured JSON; its `data` are the exact bytes of the event's payload, so that
commitments stand in it and personal values never do. The signature covers id, time and body; the
secret is 32 random bytes, shown once and sealed at rest.
"""

import base64
import binascii
import hashlib
import hmac
from datetime import datetime

import msgspec
from msgspec import Raw, Struct
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from workmate_server.ports import Entropy
from workmate_server.store.deliveries import Due

CONTENT_TYPE = "application/cloudevents+json"
SECRET_PREFIX = "whsec_"  # noqa: S105 - what every such secret begins with
SECRET_BYTES = 32


class SecretError(Exception):
    """A stored secret that the sealing key does not open, or that is none."""


class CloudEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event as CloudEvents 1.0 tells it; the last three are extension attributes."""

    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    dataschema: str
    sequence: str
    tenantid: str
    aggregateversion: int
    data: Raw


def cloud_event(due: Due) -> bytes:
    """Return the body that tells an event: the same bytes at every attempt."""
    return msgspec.json.encode(
        CloudEvent(
            specversion="1.0",
            id=due.event_id,
            source=f"urn:workmate:{due.tenant_id}",
            type=due.type,
            subject=due.aggregate_id,
            time=due.recorded_at,
            datacontenttype="application/json",
            dataschema=f"urn:workmate:schema:{due.type}",
            sequence=f"{due.seq:020}",
            tenantid=due.tenant_id,
            aggregateversion=due.aggregate_version,
            data=Raw(due.payload),
        )
    )


def make_secret(entropy: Entropy) -> str:
    """Return a new secret as its owner gets it, e.g. `whsec_…`."""
    return SECRET_PREFIX + base64.b64encode(entropy.token_bytes(SECRET_BYTES)).decode()


def seal_secret(secret: str, sealing_key: bytes, entropy: Entropy) -> bytes:
    """Return a secret sealed under the server's 32-byte sealing key."""
    nonce = entropy.token_bytes(SecretBox.NONCE_SIZE)
    return bytes(SecretBox(sealing_key).encrypt(secret.encode(), nonce))


def open_secret(sealed: bytes, sealing_key: bytes) -> str:
    """Return the secret that was sealed. Raises SecretError."""
    try:
        return SecretBox(sealing_key).decrypt(sealed).decode()
    except (CryptoError, ValueError) as error:
        raise SecretError("the sealing key does not open this secret") from error


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` of a message: `v1,` and base64 of its HMAC-SHA256.

    Raises SecretError for a secret that is not `whsec_` and base64.
    """
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise SecretError("not a webhook secret") from error
    content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def headers_for(secret: str, message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of one attempt, whose time is its own. Raises SecretError."""
    timestamp = int(now.timestamp())
    return {
        "Content-Type": CONTENT_TYPE,
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret, message_id, timestamp, body),
    }
