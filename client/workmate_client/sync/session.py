"""The device's session: a short-lived token for a signed challenge, renewed without any person.

The challenge names a log key that this device trusts, so that the signature opens nothing at a
server which only passes it on.
"""

from workmate_client.journal.profile_store import known
from workmate_client.journal.rows import Profile
from workmate_client.sync.failures import UnreadableAnswerError
from workmate_client.sync.parts import SyncParts
from workmate_shared.wire.messages import NonceAnswer, NonceRequest
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
        challenge = _challenge(profile, await parts.transport.nonce(asked))
        answer = await parts.transport.open_session(
            sign_challenge(challenge, parts.keys.device_seed)
        )
        if (answer.tenant_id, answer.device_id) != (profile.tenant_id, profile.device_id):
            raise UnreadableAnswerError("a session for another device")
        self.token = answer.token

    def drop(self) -> None:
        """Forget the token: the server no longer takes it."""
        self.token = None


def _challenge(profile: Profile, nonce: NonceAnswer) -> Challenge:
    key_id = nonce.server_key_id
    if key_id not in profile.pinned_keys:
        # A key that was added meanwhile is learned in the session; until then an older one is named.
        key_id = _trusted_key(profile)
    return Challenge(
        purpose=PURPOSE,
        server_key_id=key_id,
        tenant_id=profile.tenant_id,
        device_id=profile.device_id,
        nonce=nonce.nonce,
    )


def _trusted_key(profile: Profile) -> str:
    """Return the key that signed the newest header held, else the first that was pinned."""
    header = profile.newest_header
    if header is not None:
        return header.signatures[0].keyid
    return next(iter(profile.pinned_keys))
