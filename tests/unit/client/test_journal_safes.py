"""Where a profile's keys are kept: chosen once, said aloud, found again."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from support.device import KEY, failing_at, quick_settings
from support.keyrings import MemoryKeyring
from workmate_client.config import ProfilePaths
from workmate_client.journal import keyring_safe
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.keys import (
    KeyringUnavailableError,
    KeysExistError,
    KeysMissingError,
    ProfileKeys,
)
from workmate_client.journal.safes import Safes
from workmate_client.ports import Files, StorageError
from workmate_client.system import SystemRandom

KEYS = ProfileKeys(KEY, bytes(32))


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> MemoryKeyring:
    monkeypatch.setattr(keyring_safe, "ACCEPTED", {MemoryKeyring: "desk"})
    return MemoryKeyring()


def safes(
    folder: Path, keyring: Callable[[], KeyringBackend] = NoKeyring, files: Files | None = None
) -> Safes:
    return Safes(
        ProfilePaths(folder),
        files or PosixFiles(),
        lambda: "correct horse battery",
        random=SystemRandom(),
        settings=quick_settings(),
        keyring_source=keyring,
    )


def test_a_keyring_that_is_there_is_taken_and_named(tmp_path: Path, desk: MemoryKeyring) -> None:
    choice = safes(tmp_path, lambda: desk).choose("auto")
    assert (choice.safe.name, choice.reason, choice.detail) == ("keyring", "keyring_found", "desk")


def test_without_a_keyring_the_vault_is_taken_and_the_reason_said(tmp_path: Path) -> None:
    choice = safes(tmp_path).choose("auto")
    assert (choice.safe.name, choice.reason) == ("vault", "no_keyring")
    assert "fail" in choice.detail


def test_who_asks_for_a_keyring_gets_no_vault(tmp_path: Path) -> None:
    with pytest.raises(KeyringUnavailableError):
        safes(tmp_path).choose("keyring")


def test_who_asks_for_the_vault_gets_it_beside_a_keyring(
    tmp_path: Path, desk: MemoryKeyring
) -> None:
    choice = safes(tmp_path, lambda: desk).choose("vault")
    assert (choice.safe.name, choice.reason) == ("vault", "asked_for")


def test_choosing_leaves_no_trace(tmp_path: Path, desk: MemoryKeyring) -> None:
    safes(tmp_path, lambda: desk).choose("auto")
    assert not safes(tmp_path).exist()
    assert desk.entries == {}
    with pytest.raises(KeysMissingError):
        safes(tmp_path).find()


@pytest.mark.parametrize("mode", ["keyring", "vault"])
def test_created_keys_are_found_where_they_are_whatever_else_there_is(
    tmp_path: Path, desk: MemoryKeyring, mode: str
) -> None:
    here = safes(tmp_path, lambda: desk)
    here.create(here.choose("keyring" if mode == "keyring" else "vault"), KEYS)
    again = safes(tmp_path, lambda: desk)
    assert again.exist()
    assert again.find().name == mode
    assert again.find().load() == KEYS


def test_keys_in_a_keyring_out_of_reach_are_not_missing(
    tmp_path: Path, desk: MemoryKeyring
) -> None:
    here = safes(tmp_path, lambda: desk)
    here.create(here.choose("keyring"), KEYS)
    away = safes(tmp_path)
    assert away.exist()
    with pytest.raises(KeyringUnavailableError):
        away.find()
    with pytest.raises(KeysExistError):
        away.choose("vault")


def test_a_profile_with_keys_gets_no_others(tmp_path: Path) -> None:
    here = safes(tmp_path)
    choice = here.choose("vault")
    here.create(choice, KEYS)
    with pytest.raises(KeysExistError):
        here.choose("auto")
    with pytest.raises(KeysExistError):
        here.create(choice, ProfileKeys(bytes(32), KEY))
    assert here.find().load() == KEYS


def test_two_profiles_share_a_keyring_without_meeting(tmp_path: Path, desk: MemoryKeyring) -> None:
    others = ProfileKeys(bytes(32), KEY)
    for name, keys in (("asha", KEYS), ("ravi", others)):
        (tmp_path / name).mkdir()
        here = safes(tmp_path / name, lambda: desk)
        here.create(here.choose("keyring"), keys)
    assert safes(tmp_path / "asha", lambda: desk).find().load() == KEYS
    assert safes(tmp_path / "ravi", lambda: desk).find().load() == others


def test_a_full_disk_leaves_no_entry_in_the_keyring_that_nothing_names(
    tmp_path: Path, desk: MemoryKeyring
) -> None:
    full = PosixFiles(failing_at("pointer.write.before", errno.ENOSPC))
    here = safes(tmp_path, lambda: desk, full)
    with pytest.raises(StorageError):
        here.create(here.choose("keyring"), KEYS)
    assert desk.entries == {}
    assert not here.exist()


@pytest.mark.parametrize("mode", ["keyring", "vault"])
def test_removed_keys_leave_no_trace(tmp_path: Path, desk: MemoryKeyring, mode: str) -> None:
    here = safes(tmp_path, lambda: desk)
    here.create(here.choose("keyring" if mode == "keyring" else "vault"), KEYS)
    here.remove()
    here.remove()
    assert not here.exist()
    assert desk.entries == {}
    assert list(tmp_path.iterdir()) == []
