"""Binary values as JSON text have exactly one spelling."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.wire.binary import from_base64, from_hex_digest, to_base64


@given(st.binary(max_size=100))
def test_base64_comes_back_as_the_bytes_it_was(data: bytes) -> None:
    assert to_base64(data) == base64.b64encode(data).decode()
    assert from_base64(to_base64(data)) == data


@pytest.mark.parametrize(
    "text",
    [
        "YQ",
        "YQ=",
        "YR==",
        "YQ==\n",
        " YQ==",
        "Y Q==",
        "YQ==YQ==",
        "-_-_",
        "YQ==\x00",
        "ü",
        "Y",
        "=",
    ],
)
def test_any_other_spelling_of_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[bB]ase64|ASCII|padding|data"):
        from_base64(text)


@given(st.text(alphabet="AQgw+/-_= \n", max_size=8))
def test_two_texts_never_mean_the_same_bytes(text: str) -> None:
    try:
        data = from_base64(text)
    except ValueError:
        return
    assert to_base64(data) == text


def test_a_hash_is_read_from_64_lower_case_hex_digits() -> None:
    assert from_hex_digest("0f" * 32) == b"\x0f" * 32


@pytest.mark.parametrize(
    "text", ["0F" * 32, "0f" * 31, "0f" * 32 + "\n", "0x" + "0f" * 31, "\u0660" * 64]
)
def test_any_other_spelling_of_a_hash_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hex"):
        from_hex_digest(text)
