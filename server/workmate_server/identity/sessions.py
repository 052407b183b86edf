"""Device sessions: a challenge, its answer signed by the device's key, and a short-lived token.

Challenges are sealed by the server and not stored, so that asking for one is the same whether the
device exists or not. Each can be answered once, before it expires. A session is opened for a revoked
device and a deactivated worker as well: what they still hold must come in.
"""

import hmac
from datetime import timedelta
from typing import Protocol

from blake3 import blake3
from msgspec import Struct

from workmate_server.config import Settings
from workmate_server.engine.tokens import new_session_token
from workmate_server.identity.devices import read_devices
from workmate_server.ports import Clock, Entropy
from workmate_server.store import sessions
from workmate_server.store.database import Database, DuplicateError
from workmate_shared.kernel.hashing import length_prefixed
from workmate_shared.kernel.instants import format_instant
from workmate_shared.wire.codec import MalformedError, decode
from workmate_shared.wire.dsse import (
    SESSION_TYPE,
    Envelope,
    SignatureError,
    key_id,
    split_envelope,
)
from workmate_shared.wire.messages import NonceAnswer, NonceRequest, SessionAnswer
from workmate_shared.wire.session import MAX_CHALLENGE_BYTES, Challenge, verify_challenge

NONCE_DOMAIN = "workmate.nonce.v1"

_RANDOM_BYTES = 16
_TIME_BYTES = 8
_SEAL_BYTES = 16
_NONCE_BYTES = _RANDOM_BYTES + _TIME_BYTES + _SEAL_BYTES


class SessionRefusedError(Exception):
    """The answer opens no session. Why is not told: it would help only somebody who guesses."""


class SessionKeys(Protocol):
    """What sessions need of the server's keys."""

    @property
    def fingerprint_key(self) -> bytes:
        """32 secret bytes."""


class SessionDesk(Struct, frozen=True):
    """Gives challenges and opens sessions."""

    database: Database
    keys: SessionKeys
    server_key_id: str
    settings: Settings
    clock: Clock
    entropy: Entropy

    def challenge(self, asked: NonceRequest) -> NonceAnswer:
        """Return a fresh challenge for a device, known or not."""
        end = self.clock.now() + timedelta(seconds=self.settings.nonce_life_seconds)
        milliseconds = int(end.timestamp() * 1000)
        content = self.entropy.token_bytes(_RANDOM_BYTES) + milliseconds.to_bytes(_TIME_BYTES)
        seal = self._seal(content, asked.tenant_id, asked.device_id)
        return NonceAnswer((content + seal).hex(), self.server_key_id, format_instant(end))

    def open(self, envelope: Envelope) -> SessionAnswer:
        """Return a session for the device that signed a challenge of ours. Blocks.

        Raises SessionRefusedError.
        """
        challenge = self._proven(envelope)
        expires = self._check_nonce(challenge)
        if challenge.server_key_id != self.server_key_id:
            raise SessionRefusedError
        with self.database.read() as connection:
            found = read_devices(connection, challenge.tenant_id, [challenge.device_id])
        device = found[challenge.device_id]
        token = new_session_token(self.entropy)
        now = self.clock.now()
        end = format_instant(now + timedelta(seconds=self.settings.session_life_seconds))
        nonce = {
            "nonce": challenge.nonce,
            "tenant_id": challenge.tenant_id,
            "device_id": challenge.device_id,
            "expires_at": expires,
        }
        session = {
            "token_hash": token.hash,
            "tenant_id": challenge.tenant_id,
            "principal_id": device.principal_id,
            "device_id": device.device_id,
            "expires_at": end,
        }
        try:
            with self.database.write() as connection:
                sessions.open_session(connection, nonce, session, format_instant(now))
        except DuplicateError as error:
            raise SessionRefusedError from error
        return SessionAnswer(
            token.text, end, challenge.tenant_id, device.principal_id, device.device_id
        )

    def _proven(self, envelope: Envelope) -> Challenge:
        """Return the challenge after verifying it with the key of the device that it names."""
        try:
            payload, _, _ = split_envelope(envelope, SESSION_TYPE)
            claimed = decode(payload, Challenge, max_bytes=MAX_CHALLENGE_BYTES)
            with self.database.read() as connection:
                found = read_devices(connection, claimed.tenant_id, [claimed.device_id])
            keys = {key_id(device.public_key): device.public_key for device in found.values()}
            return verify_challenge(envelope, keys)
        except (SignatureError, MalformedError) as error:
            raise SessionRefusedError from error

    def _check_nonce(self, challenge: Challenge) -> str:
        """Return until when the challenge could be answered, as text; refuse it if it is over."""
        try:
            nonce = bytes.fromhex(challenge.nonce)
        except ValueError as error:
            raise SessionRefusedError from error
        content, seal = nonce[:-_SEAL_BYTES], nonce[-_SEAL_BYTES:]
        wanted = self._seal(content, challenge.tenant_id, challenge.device_id)
        canonical = len(nonce) == _NONCE_BYTES and challenge.nonce == nonce.hex()
        if not canonical or not hmac.compare_digest(seal, wanted):
            raise SessionRefusedError
        milliseconds = int.from_bytes(content[_RANDOM_BYTES:])
        now = self.clock.now()
        left = milliseconds / 1000 - now.timestamp()
        if left <= 0:
            raise SessionRefusedError
        return format_instant(now + timedelta(seconds=left + 1))

    def _seal(self, content: bytes, tenant_id: str, device_id: str) -> bytes:
        sealed = length_prefixed(
            NONCE_DOMAIN.encode(), tenant_id.encode(), device_id.encode(), content
        )
        return blake3(sealed, key=self.keys.fingerprint_key).digest(_SEAL_BYTES)
