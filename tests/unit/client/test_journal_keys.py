"""The secrets of a profile and what is derived from them."""

import pytest
from nacl.signing import SigningKey

from support.device import KEY
from workmate_client.journal.keys import ProfileKeys
from workmate_client.system import SystemRandom

KEYS = ProfileKeys(KEY, bytes(32))


def test_new_profiles_share_no_secret_and_no_device_id() -> None:
    one, two = (ProfileKeys.create(SystemRandom()) for _ in range(2))
    secrets = {one.profile_key, one.device_seed, two.profile_key, two.device_seed}
    assert len(secrets) == 4
    assert {len(secret) for secret in secrets} == {32}
    assert one.device_id != two.device_id


def test_each_store_has_a_key_of_its_own_that_is_the_same_every_time() -> None:
    derived = [KEYS.journal_key, KEYS.replica_key, KEYS.evidence_key, KEYS.unsent_key]
    again = ProfileKeys(KEY, bytes([1] * 32))
    assert len({*derived, KEYS.profile_key, KEYS.device_seed}) == 6
    assert {len(key) for key in derived} == {32}
    assert derived == [again.journal_key, again.replica_key, again.evidence_key, again.unsent_key]


def test_derived_keys_never_change_between_versions_of_the_program() -> None:
    assert KEYS.journal_key.hex()[:16] == "59118a5e95513246"
    assert KEYS.replica_key.hex()[:16] == "ef31deedec267357"
    assert KEYS.evidence_key.hex()[:16] == "efd4f074f37f172f"
    assert KEYS.unsent_key.hex()[:16] == "4ff2139ce591e3d7"
    assert KEYS.device_id == "7c272976-b254-88e4-8589-5ba7963b7f4d"


def test_the_device_signs_with_its_seed() -> None:
    assert KEYS.public_key == bytes(SigningKey(KEYS.device_seed).verify_key)


def test_the_device_id_belongs_to_the_signing_key_alone() -> None:
    assert ProfileKeys(bytes(32), KEYS.device_seed).device_id == KEYS.device_id
    assert ProfileKeys(KEYS.profile_key, KEY).device_id != KEYS.device_id


def test_printing_keys_shows_no_secret() -> None:
    shown = f"{KEYS} {KEYS!r}"
    assert KEYS.device_id in shown
    assert repr(KEYS.profile_key) not in shown
    assert KEYS.profile_key.hex() not in shown


def test_kept_keys_come_back() -> None:
    assert ProfileKeys.from_bytes(KEYS.to_bytes()) == KEYS


@pytest.mark.parametrize("place", range(72))
def test_kept_keys_that_changed_are_no_keys(place: int) -> None:
    data = bytearray(KEYS.to_bytes())
    data[place] ^= 1
    with pytest.raises(ValueError, match="not a set"):
        ProfileKeys.from_bytes(bytes(data))


@pytest.mark.parametrize("data", [b"", KEYS.to_bytes()[:-1], KEYS.to_bytes() + b"x"])
def test_kept_keys_of_another_length_are_no_keys(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a set"):
        ProfileKeys.from_bytes(data)
