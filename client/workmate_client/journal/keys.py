"""The secrets of a worker's profile, what is derived from them, and the safes that keep them.

Two random secrets: the profile key, from which each store has a key of its own, and the seed of the
device's signing key. They are made once. A safe never overwrites keys that it holds, and each way
in which it can fail to give them back is an error of its own, so that nobody makes new keys while
the old ones are only out of reach.
"""

from typing import Literal, Protocol, Self

from blake3 import blake3
from msgspec import Struct
from nacl.signing import SigningKey

from workmate_client.errors import DeviceError
from workmate_client.ports import Random
from workmate_shared.kernel.hashing import derive_uuid8

KEY_BYTES = 32
"""Size of each secret and of each derived key, in bytes."""

CHECK_BYTES = 8

DEVICE_ID_CONTEXT = "workmate 2026 device id"
JOURNAL_CONTEXT = "workmate 2026 key of the journal database"
REPLICA_CONTEXT = "workmate 2026 key of the replica database"
EVIDENCE_CONTEXT = "workmate 2026 key of the evidence folder"
UNSENT_CONTEXT = "workmate 2026 key of the unsent log"

SafeName = Literal["keyring", "vault"]


class KeySafeError(DeviceError):
    """The keys could not be had or kept; each kind has a code of its own."""


class WrongPassphraseError(KeySafeError):
    """The vault is whole and does not open under this passphrase."""

    code = "wrong_passphrase"


class PassphraseTooShortError(KeySafeError):
    """A new passphrase is shorter than `Settings.passphrase_characters_min`."""

    code = "passphrase_too_short"


class VaultDamagedError(KeySafeError):
    """The vault file is not as it was written; no passphrase opens it."""

    code = "vault_damaged"


class VaultMemoryError(KeySafeError):
    """The machine cannot give the memory that opening the vault takes."""

    code = "vault_memory"


class KeysMissingError(KeySafeError):
    """The safe can be reached and holds no keys for this profile."""

    code = "keys_missing"


class KeysDamagedError(KeySafeError):
    """The keyring's entry for this profile holds something that is not a set of keys."""

    code = "keys_damaged"


class KeysExistError(KeySafeError):
    """The safe holds keys for this profile already; they stay."""

    code = "keys_exist"


class KeyringLockedError(KeySafeError):
    """The keyring is there and locked, and was not unlocked when asked."""

    code = "keyring_locked"


class KeyringUnavailableError(KeySafeError):
    """There is no keyring that counts, or it does not answer."""

    code = "keyring_unavailable"


class ProfileKeys(Struct, frozen=True):
    """A profile's two secrets, 32 bytes each; what is printed of them is only the device id."""

    profile_key: bytes
    device_seed: bytes

    @classmethod
    def create(cls, random: Random) -> Self:
        """Draw the keys of a new profile."""
        return cls(random.token_bytes(KEY_BYTES), random.token_bytes(KEY_BYTES))

    @property
    def public_key(self) -> bytes:
        """The device's Ed25519 public key, 32 raw bytes."""
        return bytes(SigningKey(self.device_seed).verify_key)

    @property
    def device_id(self) -> str:
        """The device's id: a UUIDv8 of its public key, so that new keys are a new device."""
        return derive_uuid8(DEVICE_ID_CONTEXT, self.public_key.hex())

    @property
    def journal_key(self) -> bytes:
        """The key of the journal database."""
        return self._derived(JOURNAL_CONTEXT)

    @property
    def replica_key(self) -> bytes:
        """The key of the replica database."""
        return self._derived(REPLICA_CONTEXT)

    @property
    def evidence_key(self) -> bytes:
        """The key from which each evidence file's own is derived."""
        return self._derived(EVIDENCE_CONTEXT)

    @property
    def unsent_key(self) -> bytes:
        """The key of the unsent log."""
        return self._derived(UNSENT_CONTEXT)

    def to_bytes(self) -> bytes:
        """Return the secrets as a safe keeps them: both, and a check over them."""
        secrets = self.profile_key + self.device_seed
        return secrets + blake3(secrets).digest(CHECK_BYTES)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote. Raises ValueError for anything else."""
        secrets, check = data[: 2 * KEY_BYTES], data[2 * KEY_BYTES :]
        if len(secrets) != 2 * KEY_BYTES or check != blake3(secrets).digest(CHECK_BYTES):
            raise ValueError("not a set of profile keys")
        return cls(secrets[:KEY_BYTES], secrets[KEY_BYTES:])

    def _derived(self, context: str) -> bytes:
        return blake3(self.profile_key, derive_key_context=context).digest()

    def __repr__(self) -> str:
        return f"ProfileKeys(device_id={self.device_id!r})"


class Safe(Protocol):
    """Where a profile's keys are kept. All operations raise KeySafeError or StorageError."""

    @property
    def name(self) -> SafeName:
        """Which kind of safe this is."""
        ...

    def load(self) -> ProfileKeys:
        """Return the keys. Raises KeysMissingError if the safe was reached and holds none."""
        ...

    def create(self, keys: ProfileKeys) -> None:
        """Keep the keys of a new profile. Raises KeysExistError if there are any."""
        ...

    def remove(self) -> None:
        """Forget the keys for good, after which nothing of the profile can be read."""
        ...
