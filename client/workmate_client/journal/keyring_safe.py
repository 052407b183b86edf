"""The keys in the operating system's keyring.

Only Secret Service, the macOS Keychain and the Windows Credential Locker count: other backends keep
secrets in plain files, in memory or nowhere. Which one it is, its class decides, not its name or
priority; inside a chain of backends the first one that counts is used, by itself.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import keyring
from keyring.backend import KeyringBackend
from keyring.backends.chainer import ChainerBackend
from keyring.backends.macOS import Keyring as MacKeychain
from keyring.backends.SecretService import Keyring as SecretService
from keyring.backends.Windows import WinVaultKeyring
from keyring.errors import KeyringError, KeyringLocked

from workmate_client.journal.keys import (
    KeyringLockedError,
    KeyringUnavailableError,
    KeysDamagedError,
    KeysExistError,
    KeysMissingError,
    ProfileKeys,
    SafeName,
)
from workmate_shared.wire.binary import from_base64, to_base64

_LOCKED: tuple[type[Exception], ...] = (KeyringLocked,)
_FAILED: tuple[type[Exception], ...] = (KeyringError, OSError, RuntimeError)

# What the platforms' own bindings raise past keyring's wrapping.
if sys.platform == "linux":
    from jeepney import DBusErrorResponse  # type: ignore[import-untyped]
    from secretstorage.exceptions import LockedException, SecretStorageException

    _LOCKED = (*_LOCKED, LockedException)
    _FAILED = (*_FAILED, SecretStorageException, DBusErrorResponse)
elif sys.platform == "win32":
    from win32ctypes.pywin32 import pywintypes

    _FAILED = (*_FAILED, pywintypes.error)

SERVICE = "workmate"
"""The name under which the keyring shows our entries; the user name is the profile's id."""

ACCEPTED: dict[type[KeyringBackend], str] = {
    SecretService: "Secret Service",
    MacKeychain: "macOS Keychain",
    WinVaultKeyring: "Windows Credential Locker",
}
"""The backend classes that count as a keyring, and what people call them."""


def find_keyring(backend: KeyringBackend) -> KeyringBackend:
    """Return the backend itself if it counts, or the first inside it that does.

    Raises KeyringUnavailableError, naming what was found instead.
    """
    inside = backend.backends if isinstance(backend, ChainerBackend) else [backend]
    for candidate in inside:
        if type(candidate) in ACCEPTED:
            return candidate
    names = ", ".join(f"{type(found).__module__}.{type(found).__name__}" for found in inside)
    raise KeyringUnavailableError(f"no keyring that counts, only: {names or 'nothing'}")


def system_keyring() -> KeyringBackend:
    """Return the backend that the keyring library chooses here, whether or not it counts.

    Raises KeyringUnavailableError if its configuration names one that cannot be loaded.
    """
    try:
        return keyring.get_keyring()
    except (ImportError, AttributeError, ValueError, RuntimeError, KeyringError) as error:
        raise KeyringUnavailableError(f"the keyring's configuration fails: {error}") from error


@contextmanager
def _keyring_errors() -> Iterator[None]:
    try:
        yield
    except _LOCKED as error:
        raise KeyringLockedError(str(error)) from error
    except _FAILED as error:
        if "IsLocked" in str(error):
            raise KeyringLockedError(str(error)) from error
        raise KeyringUnavailableError(str(error)) from error


class KeyringSafe:
    """The `Safe` for one profile in the system's keyring, as one entry that holds both secrets."""

    name: SafeName = "keyring"

    def __init__(self, profile_id: str, backend: KeyringBackend | None = None) -> None:
        """Use the system's keyring, or the one given. Raises KeyringUnavailableError."""
        self.profile_id = profile_id
        self._backend = find_keyring(backend or system_keyring())

    @property
    def label(self) -> str:
        """What people call this keyring."""
        return ACCEPTED[type(self._backend)]

    def load(self) -> ProfileKeys:
        """Return the keys. Raises KeysMissingError, KeysDamagedError, or a keyring's error."""
        entry = self._entry()
        if entry is None:
            raise KeysMissingError(f"the keyring has no entry for the profile {self.profile_id}")
        try:
            return ProfileKeys.from_bytes(from_base64(entry))
        except ValueError as error:
            raise KeysDamagedError("the keyring's entry was changed") from error

    def create(self, keys: ProfileKeys) -> None:
        """Keep the keys, and read them back. Raises KeysExistError, or a keyring's error."""
        if self._entry() is not None:
            raise KeysExistError(f"the keyring has keys for the profile {self.profile_id}")
        with _keyring_errors():
            self._backend.set_password(SERVICE, self.profile_id, to_base64(keys.to_bytes()))
        # A backend may accept an entry and keep nothing: that would be found out at the next start.
        if self.load() != keys:
            raise KeyringUnavailableError("the keyring did not keep what it was given")

    def remove(self) -> None:
        """Forget the keys for good. Raises a keyring's error."""
        if self._entry() is not None:
            with _keyring_errors():
                self._backend.delete_password(SERVICE, self.profile_id)

    def _entry(self) -> str | None:
        with _keyring_errors():
            return self._backend.get_password(SERVICE, self.profile_id)
