"""Which safe keeps the keys: chosen once, when they are made, and found again ever after.

The choice is said, never silent: a person who asked for either gets that one or an error, and who
left it open is told which was taken and why. Two files in the profile's folder tell the choice
later: the vault itself, or the name of the keyring's entry. A keyring that is out of reach today is
an error, and never a reason to look elsewhere.
"""

from collections.abc import Callable
from typing import Literal

from keyring.backend import KeyringBackend
from msgspec import Struct

from workmate_client.config import ProfilePaths, Settings
from workmate_client.journal.keyring_safe import KeyringSafe, system_keyring
from workmate_client.journal.keys import (
    KeyringUnavailableError,
    KeysExistError,
    KeysMissingError,
    ProfileKeys,
    Safe,
)
from workmate_client.journal.vault_safe import PassphraseSource, VaultSafe
from workmate_client.ports import Files, Random, StorageError

SafeMode = Literal["keyring", "vault", "auto"]
SafeReason = Literal["asked_for", "keyring_found", "no_keyring"]


class SafeChoice(Struct, frozen=True):
    """The safe that was taken, why, and what was found, in words for the person who chooses."""

    safe: Safe
    reason: SafeReason
    detail: str


class Safes:
    """The safes that a profile's keys can lie in, on this machine."""

    def __init__(
        self,
        paths: ProfilePaths,
        files: Files,
        passphrase_source: PassphraseSource,
        *,
        random: Random,
        settings: Settings,
        keyring_source: Callable[[], KeyringBackend] = system_keyring,
    ) -> None:
        self._paths = paths
        self._files = files
        self._random = random
        self._keyring_source = keyring_source
        self._vault = VaultSafe(
            paths.vault, passphrase_source, files, random=random, settings=settings
        )

    def choose(self, mode: SafeMode) -> SafeChoice:
        """Choose a safe for keys that are still to be made; `create` then keeps them there.

        Raises KeysExistError if the profile has keys, and, asked for a keyring only,
        KeyringUnavailableError.
        """
        if self.exist():
            raise KeysExistError(f"{self._paths.folder} has keys already")
        if mode == "vault":
            return SafeChoice(self._vault, "asked_for", "under a passphrase")
        try:
            safe = KeyringSafe(self._random.uuid7(), self._keyring_source())
        except KeyringUnavailableError as error:
            if mode == "keyring":
                raise
            return SafeChoice(self._vault, "no_keyring", error.detail)
        reason: SafeReason = "asked_for" if mode == "keyring" else "keyring_found"
        return SafeChoice(safe, reason, safe.label)

    def create(self, choice: SafeChoice, keys: ProfileKeys) -> None:
        """Keep the keys of a new profile where `choose` said. Raises KeySafeError, StorageError."""
        choice.safe.create(keys)
        if isinstance(choice.safe, KeyringSafe):
            # A crash before this line leaves an entry that nothing names: the keys were not made.
            pointer = choice.safe.profile_id.encode()
            try:
                self._files.write_new(self._paths.keyring_pointer, [pointer], label="pointer")
            except StorageError:
                choice.safe.remove()
                raise

    def exist(self) -> bool:
        """Tell whether the profile has keys somewhere, in reach or not."""
        places = (self._paths.vault, self._paths.keyring_pointer)
        return any(self._files.state(place) is not None for place in places)

    def find(self) -> Safe:
        """Return the safe that holds the profile's keys.

        Raises KeysMissingError for a profile without keys, and KeyringUnavailableError if they are
        in a keyring that is not there.
        """
        if self._files.state(self._paths.vault) is not None:
            return self._vault
        if self._files.state(self._paths.keyring_pointer) is None:
            raise KeysMissingError(f"{self._paths.folder} has no keys yet")
        profile_id = self._files.read(self._paths.keyring_pointer).decode("ascii", "replace")
        return KeyringSafe(profile_id, self._keyring_source())

    def remove(self) -> None:
        """Forget the keys for good, wherever they are. Raises what `find` raises, but for none."""
        if self.exist():
            self.find().remove()
            self._files.remove(self._paths.keyring_pointer, label="pointer_removal")
