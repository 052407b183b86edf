"""The keys in a vault file under a passphrase."""

import json
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nacl.pwhash import argon2id

from support.device import KEY, quick_settings
from workmate_client.journal import vault_safe
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.keys import (
    KeysExistError,
    KeysMissingError,
    PassphraseTooShortError,
    ProfileKeys,
    VaultDamagedError,
    VaultMemoryError,
    WrongPassphraseError,
)
from workmate_client.journal.vault_safe import VaultSafe
from workmate_client.system import SystemRandom
from workmate_shared.wire.binary import from_base64

KEYS = ProfileKeys(KEY, bytes(32))
PASSPHRASE = "correct horse battery"


def vault(folder: Path, passphrase: str = PASSPHRASE) -> VaultSafe:
    return VaultSafe(
        folder / "keys.vault",
        lambda: passphrase,
        PosixFiles(),
        random=SystemRandom(),
        settings=quick_settings(),
    )


def test_the_passphrase_opens_the_vault(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    assert vault(tmp_path).load() == KEYS
    assert vault(tmp_path).name == "vault"


def test_another_passphrase_is_wrong_and_says_so(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    with pytest.raises(WrongPassphraseError) as caught:
        vault(tmp_path, "correct horse batterY").load()
    assert caught.value.code == "wrong_passphrase"


def test_a_missing_vault_is_missing_before_anybody_is_asked_for_a_passphrase(
    tmp_path: Path,
) -> None:
    def ask() -> str:
        raise AssertionError("asked")

    safe = VaultSafe(
        tmp_path / "none", ask, PosixFiles(), random=SystemRandom(), settings=quick_settings()
    )
    with pytest.raises(KeysMissingError) as caught:
        safe.load()
    assert caught.value.code == "keys_missing"


def test_keys_are_never_overwritten(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    with pytest.raises(KeysExistError) as caught:
        vault(tmp_path).create(ProfileKeys.create(SystemRandom()))
    assert caught.value.code == "keys_exist"
    assert vault(tmp_path).load() == KEYS


def test_of_two_processes_that_create_a_vault_at_once_one_is_refused(tmp_path: Path) -> None:
    # The other process is as quick as can be: done between the first's look and its write.
    others = ProfileKeys.create(SystemRandom())

    def ask_while_another_creates() -> str:
        vault(tmp_path).create(others)
        return PASSPHRASE

    late = VaultSafe(
        tmp_path / "keys.vault",
        ask_while_another_creates,
        PosixFiles(),
        random=SystemRandom(),
        settings=quick_settings(),
    )
    with pytest.raises(KeysExistError):
        late.create(KEYS)
    assert vault(tmp_path).load() == others


def test_the_file_shows_no_secret_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    path = tmp_path / "keys.vault"
    content = path.read_bytes()
    for secret in (KEYS.profile_key, KEYS.device_seed):
        assert secret not in content
        assert secret.hex().encode() not in content
    assert PASSPHRASE.encode() not in content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_same_keys_and_passphrase_never_make_the_same_file(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    first = json.loads((tmp_path / "keys.vault").read_bytes())
    vault(tmp_path).remove()
    vault(tmp_path).create(KEYS)
    second = json.loads((tmp_path / "keys.vault").read_bytes())
    assert first["head"]["salt"] != second["head"]["salt"]
    assert first["nonce"] != second["nonce"]
    assert first["sealed"] != second["sealed"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_a_vault_changed_anywhere_is_damaged_and_not_a_wrong_passphrase(
    tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "keys.vault"
    path.unlink(missing_ok=True)
    vault(tmp_path).create(KEYS)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(VaultDamagedError) as caught:
        vault(tmp_path).load()
    assert caught.value.code == "vault_damaged"


@pytest.mark.parametrize("length", [0, 1, 100, -1])
def test_a_vault_cut_off_is_damaged(tmp_path: Path, length: int) -> None:
    vault(tmp_path).create(KEYS)
    path = tmp_path / "keys.vault"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(VaultDamagedError):
        vault(tmp_path).load()


def test_a_vault_that_asks_for_what_no_vault_does_is_refused_before_the_work(
    tmp_path: Path,
) -> None:
    vault(tmp_path).create(KEYS)
    path = tmp_path / "keys.vault"
    whole = msgspec.json.decode(path.read_bytes(), type=vault_safe._Vault)
    limits = quick_settings()
    for change in (
        {"ops_limit": 0},
        {"ops_limit": limits.vault_ops_ceiling + 1},
        {"memory_bytes": 0},
        {"memory_bytes": limits.vault_memory_ceiling_bytes + 1},
        {"salt": "AAAA"},
    ):
        head = msgspec.structs.replace(whole.head, **change)
        check = vault_safe._check(head, from_base64(whole.nonce), from_base64(whole.sealed))
        changed = msgspec.structs.replace(whole, head=head, check=check)
        path.write_bytes(msgspec.json.encode(changed))
        with pytest.raises(VaultDamagedError, match="no vault of ours"):
            vault(tmp_path).load()


def test_changing_the_passphrase_keeps_the_keys_and_shuts_the_old_one_out(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    vault(tmp_path).change_passphrase("another passphrase")
    assert vault(tmp_path, "another passphrase").load() == KEYS
    with pytest.raises(WrongPassphraseError):
        vault(tmp_path).load()


def test_the_passphrase_is_changed_only_by_who_knows_it(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    with pytest.raises(WrongPassphraseError):
        vault(tmp_path, "not the passphrase").change_passphrase("another passphrase")
    assert vault(tmp_path).load() == KEYS


def test_a_passphrase_of_the_least_length_is_taken_and_a_shorter_one_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(PassphraseTooShortError) as caught:
        vault(tmp_path, "1234567").create(KEYS)
    assert caught.value.code == "passphrase_too_short"
    vault(tmp_path, "12345678").create(KEYS)
    with pytest.raises(PassphraseTooShortError):
        vault(tmp_path, "12345678").change_passphrase("")
    assert vault(tmp_path, "12345678").load() == KEYS


def test_a_letter_opens_the_vault_however_the_keyboard_composes_it(tmp_path: Path) -> None:
    vault(tmp_path, "Zu\u0308rich im Mai").create(KEYS)
    assert vault(tmp_path, "Z\u00fcrich im Mai").load() == KEYS


def test_too_little_memory_is_said_as_such(tmp_path: Path) -> None:
    def no_memory(*_: object) -> bytes:
        raise RuntimeError("Key derivation failed")

    vault(tmp_path).create(KEYS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argon2id, "kdf", no_memory)
        with pytest.raises(VaultMemoryError) as caught:
            vault(tmp_path).load()
    assert caught.value.code == "vault_memory"


def test_a_removed_vault_is_missing(tmp_path: Path) -> None:
    vault(tmp_path).create(KEYS)
    vault(tmp_path).remove()
    with pytest.raises(KeysMissingError):
        vault(tmp_path).load()
