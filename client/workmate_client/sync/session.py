"""The device's session: a short-lived token for a signed challenge, renewed without any person.

The challenge names the key by which the server says that it signs. It may be one that was added
since this device was last here: its notice comes with the first sync, and until then no receipt of
it counts. A device's key is known to its own server alone, so that the signature opens no other.
"""

from workmate_client.journal.profile_store import known
from workmate_client.sync.failures import UnreadableAnswerError
from workmate_client.sync.parts import SyncParts
from workmate_shared.wire.messages import NonceRequest
from workmate_shared.wire.session import PURPOSE, Challenge, sign_challenge


class DeviceSession:
    """Holds the token, in memory only. `token` is None while no session is open."""

    def __init__(self, parts: SyncParts) -> None:
        self._parts = parts
        self.token: str | None = None

    async def open(self) -> None:
        """Ask for a nonce, sign it, keep the token. Raises TransportError."""
        parts = self._parts
        profile = known(await parts.run_blocking(parts.journal.profile))
        asked = NonceRequest(profile.tenant_id, profile.device_id)
        nonce = await parts.transport.nonce(asked)
        challenge = Challenge(
            purpose=PURPOSE,
            server_key_id=nonce.server_key_id,
            tenant_id=profile.tenant_id,
            device_id=profile.device_id,
            nonce=nonce.nonce,
        )
        answer = await parts.transport.open_session(
            sign_challenge(challenge, parts.keys.device_seed)
        )
        if (answer.tenant_id, answer.device_id) != (profile.tenant_id, profile.device_id):
            raise UnreadableAnswerError("a session for another device")
        self.token = answer.token

    def drop(self) -> None:
        """Forget the token: the server no longer takes it."""
        self.token = None
