"""Commitments hide personal values; disclosures open them and nothing else does."""

import struct

import msgspec
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.wire.commitment import (
    Disclosure,
    DisclosureError,
    commitment,
    make_disclosure,
    open_disclosure,
)

SALT = bytes(range(32))
TAG = b"workmate.commitment.v1"
VALUE = {"reason": "nächster", "n": 3}


def test_a_commitment_hashes_tag_salt_and_value_each_behind_its_length() -> None:
    laid_out = struct.pack(">Q22sQ32sQ2s", len(TAG), TAG, 32, SALT, 2, b"{}")
    assert commitment(SALT, b"{}") == blake3(laid_out).hexdigest()


@given(st.dictionaries(st.text(), st.text() | st.integers(-9, 9) | st.none()))
def test_a_disclosure_opens_its_commitment_to_the_encoded_value(value: object) -> None:
    committed, disclosure = make_disclosure(value, SALT, "contract_7y")
    assert open_disclosure(committed, disclosure) == msgspec.json.encode(value)


def test_a_disclosure_travels_as_salt_class_and_the_exact_text() -> None:
    _, disclosure = make_disclosure(VALUE, SALT, "contract_7y")
    assert msgspec.to_builtins(disclosure) == {
        "salt": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "class": "contract_7y",
        "value": '{"reason":"nächster","n":3}',
    }


def test_another_salt_gives_another_commitment_to_the_same_value() -> None:
    assert commitment(SALT, b"1") != commitment(SALT[::-1], b"1")


@pytest.mark.parametrize("value", ['{"reason":"nächster", "n":3}', "", "\ud800"])
def test_a_value_that_was_not_committed_to_is_refused(value: object) -> None:
    committed, disclosure = make_disclosure(VALUE, SALT, "contract_7y")
    with pytest.raises(DisclosureError) as caught:
        open_disclosure(committed, msgspec.structs.replace(disclosure, value=value))
    assert caught.value.code == "disclosure_mismatch"


def test_the_right_value_under_another_commitment_is_refused() -> None:
    committed, disclosure = make_disclosure(VALUE, SALT, "contract_7y")
    with pytest.raises(DisclosureError):
        open_disclosure(committed.upper(), disclosure)


@pytest.mark.parametrize("salt", ["", "AAEC", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=", "-"])
def test_a_salt_that_is_not_32_bytes_of_canonical_base64_is_refused(salt: str) -> None:
    committed, _ = make_disclosure(VALUE, SALT, "contract_7y")
    with pytest.raises(DisclosureError) as caught:
        open_disclosure(committed, Disclosure(salt=salt, retention_class="x", value="{}"))
    assert caught.value.code == "disclosure_malformed"


def test_no_commitment_is_made_under_a_short_salt() -> None:
    with pytest.raises(ValueError, match="32"):
        commitment(b"salt", b"{}")
