"""Which keyrings count, and what becomes of the others."""

import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from jeepney import DBusErrorResponse, HeaderFields  # type: ignore[import-untyped]
from keyring.backend import KeyringBackend
from keyring.backends.chainer import ChainerBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.backends.macOS import Keyring as MacKeychain
from keyring.backends.null import Keyring as NullKeyring
from keyring.backends.SecretService import Keyring as SecretService
from keyring.backends.Windows import WinVaultKeyring
from keyring.errors import InitError, KeyringLocked
from secretstorage.exceptions import LockedException, SecretServiceNotAvailableException

from support.device import KEY
from support.keyrings import MemoryKeyring
from workmate_client.journal import keyring_safe
from workmate_client.journal.keyring_safe import ACCEPTED, KeyringSafe, find_keyring
from workmate_client.journal.keys import (
    KeyringLockedError,
    KeyringUnavailableError,
    KeysDamagedError,
    KeysExistError,
    KeysMissingError,
    ProfileKeys,
)

KEYS = ProfileKeys(KEY, bytes(32))


class DerivedKeyring(SecretService):
    """Derived from a keyring that counts, and free to keep its entries anywhere."""


class LosingKeyring(MemoryKeyring):
    """Says that it kept an entry and forgets it."""

    def set_password(self, service: str, username: str, _password: str) -> None:
        super().set_password(service, username, "")


class FailingKeyring(MemoryKeyring):
    """Answers everything with one error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def get_password(self, _service: str, _username: str) -> str | None:
        raise self.error


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryKeyring:
    """A backend that counts for one test, to try what is done with one that does."""
    counting = dict.fromkeys((MemoryKeyring, LosingKeyring, FailingKeyring), "memory")
    monkeypatch.setattr(keyring_safe, "ACCEPTED", counting)
    return MemoryKeyring()


def dbus_error(name: str) -> Exception:
    """What the binding raises when the daemon answers with an error of this name."""
    header = SimpleNamespace(fields={HeaderFields.error_name: name})
    error: Exception = DBusErrorResponse(SimpleNamespace(header=header, body=("words",)))
    return error


def made(kind: Callable[[], KeyringBackend]) -> KeyringBackend:
    """A backend of the library, whose constructors are untyped."""
    return kind()


def chain(*backends: KeyringBackend) -> KeyringBackend:
    """A chain of these backends."""
    return made(type("Chain", (ChainerBackend,), {"backends": backends}))


@pytest.mark.parametrize("backend", [made(SecretService), made(MacKeychain), made(WinVaultKeyring)])
def test_the_three_systems_keyrings_count(backend: KeyringBackend) -> None:
    assert find_keyring(backend) is backend
    assert KeyringSafe("profile", backend).label == ACCEPTED[type(backend)]


@pytest.mark.parametrize(
    "backend", [MemoryKeyring(), made(NullKeyring), made(NoKeyring), made(DerivedKeyring)]
)
def test_no_other_backend_counts_however_well_it_works(backend: KeyringBackend) -> None:
    with pytest.raises(KeyringUnavailableError, match=type(backend).__name__) as caught:
        KeyringSafe("profile", backend)
    assert caught.value.code == "keyring_unavailable"


def test_inside_a_chain_the_one_that_counts_is_used_by_itself() -> None:
    counts = made(SecretService)

    assert find_keyring(chain(MemoryKeyring(), counts, made(MacKeychain))) is counts


def test_a_chain_of_others_does_not_count() -> None:
    with pytest.raises(KeyringUnavailableError, match=r"MemoryKeyring.*null"):
        find_keyring(chain(MemoryKeyring(), made(NullKeyring)))


@pytest.mark.parametrize("backend", ["keyring.backends.null.Keyring", "no.such.Keyring", ""])
def test_a_keyring_set_in_the_environment_counts_no_more_than_any_other(backend: str) -> None:
    program = (
        "from workmate_client.journal.keyring_safe import KeyringSafe\n"
        "from workmate_client.journal.keys import KeyringUnavailableError\n"
        "try: KeyringSafe('profile')\n"
        "except KeyringUnavailableError as error: print(error.code)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHON_KEYRING_BACKEND": backend},
        capture_output=True,
        check=True,
    )
    assert finished.stdout == b"keyring_unavailable\n"


def test_keys_come_back_from_the_keyring_under_their_own_profile(memory: MemoryKeyring) -> None:
    KeyringSafe("one", memory).create(KEYS)
    assert KeyringSafe("one", memory).load() == KEYS
    with pytest.raises(KeysMissingError) as caught:
        KeyringSafe("two", memory).load()
    assert caught.value.code == "keys_missing"


def test_keys_in_the_keyring_are_never_overwritten(memory: MemoryKeyring) -> None:
    safe = KeyringSafe("one", memory)
    safe.create(KEYS)
    with pytest.raises(KeysExistError) as caught:
        safe.create(ProfileKeys(bytes(32), KEY))
    assert caught.value.code == "keys_exist"
    assert safe.load() == KEYS


@pytest.mark.parametrize("entry", ["", "x", "AAAA", "\u00e4"])
def test_an_entry_that_is_no_set_of_keys_is_damaged_and_stays(
    memory: MemoryKeyring, entry: str
) -> None:
    memory.set_password("workmate", "one", entry)
    with pytest.raises(KeysDamagedError) as caught:
        KeyringSafe("one", memory).load()
    assert caught.value.code == "keys_damaged"
    with pytest.raises(KeysExistError):
        KeyringSafe("one", memory).create(KEYS)


def test_removed_keys_are_missing_and_removing_twice_is_as_good_as_once(
    memory: MemoryKeyring,
) -> None:
    safe = KeyringSafe("one", memory)
    safe.create(KEYS)
    safe.remove()
    safe.remove()
    with pytest.raises(KeysMissingError):
        safe.load()


@pytest.mark.usefixtures("memory")
def test_a_keyring_that_forgets_is_found_out_at_once() -> None:
    with pytest.raises((KeyringUnavailableError, KeysDamagedError)):
        KeyringSafe("one", LosingKeyring()).create(KEYS)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "error",
    [
        KeyringLocked("dismissed"),
        LockedException("locked"),
        dbus_error("org.freedesktop.Secret.Error.IsLocked"),
    ],
)
def test_a_locked_keyring_is_locked_and_not_empty(error: Exception) -> None:
    safe = KeyringSafe("one", FailingKeyring(error))
    for operation in (safe.load, safe.remove, lambda: safe.create(KEYS)):
        with pytest.raises(KeyringLockedError) as caught:
            operation()
        assert caught.value.code == "keyring_locked"


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "error",
    [
        InitError("no collection"),
        SecretServiceNotAvailableException("gone"),
        dbus_error("org.freedesktop.DBus.Error.Failed"),
        ConnectionResetError(),
        TimeoutError(),
    ],
)
def test_a_keyring_that_does_not_answer_is_unavailable_and_not_empty(error: Exception) -> None:
    with pytest.raises(KeyringUnavailableError):
        KeyringSafe("one", FailingKeyring(error)).load()
