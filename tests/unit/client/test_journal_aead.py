"""Sealed bytes open under the same key, nonce and bound bytes, and under no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.device import KEY
from workmate_client.journal.aead import NONCE_BYTES, TAG_BYTES, UnsealError, seal, unseal

NONCE = bytes(NONCE_BYTES)
OTHER_KEY = bytes(reversed(KEY))
OTHER_NONCE = bytes([1] * NONCE_BYTES)


@given(content=st.binary(), bound=st.binary())
def test_sealed_bytes_come_back(content: bytes, bound: bytes) -> None:
    sealed = seal(KEY, NONCE, content, bound)
    assert len(sealed) == len(content) + TAG_BYTES
    assert unseal(KEY, NONCE, sealed, bound) == content


@given(content=st.binary(), length=st.integers(0))
def test_sealed_bytes_cut_to_any_length_do_not_open(content: bytes, length: int) -> None:
    sealed = seal(KEY, NONCE, content, b"")
    with pytest.raises(UnsealError):
        unseal(KEY, NONCE, sealed[: length % len(sealed)], b"")


@pytest.mark.parametrize(
    ("key", "nonce", "bound"),
    [(OTHER_KEY, NONCE, b"x"), (KEY, OTHER_NONCE, b"x"), (KEY, NONCE, b""), (KEY, NONCE, b"y")],
)
def test_another_key_nonce_or_binding_opens_nothing(key: bytes, nonce: bytes, bound: bytes) -> None:
    with pytest.raises(UnsealError):
        unseal(key, nonce, seal(KEY, NONCE, b"content", b"x"), bound)
