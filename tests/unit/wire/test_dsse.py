"""Envelopes prove who signed which bytes as what."""

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import VerifyKey

from workmate_shared.kernel.hashing import blake3_hex, length_prefixed
from workmate_shared.wire.dsse import (
    BATCH_TYPE,
    COMMAND_TYPE,
    Envelope,
    Signature,
    SignatureError,
    key_id,
    keys_by_id,
    open_envelope,
    pae,
    public_key_of,
    sign,
    sign_bytes,
    verify_bytes,
)

SEED = bytes(range(32))
OTHER_SEED = bytes(range(1, 33))
KEYS = keys_by_id([public_key_of(SEED)])
PAYLOAD = '{"note":"Tür"}'.encode()


def refused(envelope: Envelope, payload_type: str = COMMAND_TYPE, keys: Any = KEYS) -> str:
    with pytest.raises(SignatureError) as caught:
        open_envelope(envelope, payload_type, keys)
    return caught.value.code


def changed(**fields: Any) -> Envelope:
    return msgspec.structs.replace(sign(COMMAND_TYPE, PAYLOAD, SEED), **fields)


def test_the_pre_authentication_encoding_is_the_one_of_the_protocol() -> None:
    encoded = pae("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_in_the_pre_authentication_encoding_count_bytes() -> None:
    assert pae("ü", b"\x00\xff") == b"DSSEv1 2 \xc3\xbc 2 \x00\xff"


@given(st.text(max_size=9), st.binary(max_size=9), st.text(max_size=9), st.binary(max_size=9))
def test_different_messages_never_have_the_same_encoding(
    kind: str, payload: bytes, other_kind: str, other_payload: bytes
) -> None:
    same = (kind, payload) == (other_kind, other_payload)
    assert (pae(kind, payload) == pae(other_kind, other_payload)) == same


def test_a_key_is_named_by_the_hash_of_its_32_bytes() -> None:
    key = public_key_of(SEED)
    assert key_id(key) == blake3_hex("workmate.key.v1", key)
    assert key_id(key) != key_id(public_key_of(OTHER_SEED))
    with pytest.raises(ValueError, match="32"):
        key_id(key + b"\x00")


@given(st.binary(max_size=200))
def test_an_envelope_opens_to_the_bytes_that_were_signed(payload: bytes) -> None:
    assert open_envelope(sign(COMMAND_TYPE, payload, SEED), COMMAND_TYPE, KEYS) == payload


def test_the_same_bytes_signed_twice_make_the_same_envelope() -> None:
    assert sign(COMMAND_TYPE, PAYLOAD, SEED) == sign(COMMAND_TYPE, PAYLOAD, SEED)


def test_the_signature_is_plain_ed25519_over_the_encoding() -> None:
    (signature,) = sign(COMMAND_TYPE, PAYLOAD, SEED).signatures
    signed = pae(COMMAND_TYPE, PAYLOAD)
    VerifyKey(public_key_of(SEED)).verify(signed, base64.b64decode(signature.sig))


def test_an_envelope_travels_under_the_names_of_the_protocol_and_ignores_others() -> None:
    envelope = sign(COMMAND_TYPE, PAYLOAD, SEED)
    plain = msgspec.json.decode(msgspec.json.encode(envelope))
    assert set(plain) == {"payload", "payloadType", "signatures"}
    assert set(plain["signatures"][0]) == {"keyid", "sig"}
    assert msgspec.convert(plain | {"later": 1}, Envelope) == envelope


def test_a_signature_counts_only_for_the_type_it_was_made_for() -> None:
    assert refused(changed(), BATCH_TYPE) == "payload_type_unexpected"
    assert refused(changed(payload_type=BATCH_TYPE), BATCH_TYPE) == "signature_invalid"


def test_a_changed_payload_is_refused() -> None:
    text = base64.b64encode(PAYLOAD + b" ").decode()
    assert refused(changed(payload=text)) == "signature_invalid"


def test_an_unknown_key_is_refused() -> None:
    assert refused(sign(COMMAND_TYPE, PAYLOAD, OTHER_SEED)) == "key_unknown"


def test_another_keys_signature_under_a_trusted_name_is_refused() -> None:
    _, signature = sign_bytes(COMMAND_TYPE, PAYLOAD, OTHER_SEED)
    forged = Signature(keyid=next(iter(KEYS)), sig=base64.b64encode(signature).decode())
    assert refused(changed(signatures=(forged,))) == "signature_invalid"


@pytest.mark.parametrize("count", [0, 2])
def test_an_envelope_has_exactly_one_signature(count: int) -> None:
    assert refused(changed(signatures=changed().signatures * count)) == "signature_count"


@pytest.mark.parametrize("length", [0, 63, 65])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    short = Signature(keyid=next(iter(KEYS)), sig=base64.b64encode(bytes(length)).decode())
    assert refused(changed(signatures=(short,))) == "signature_invalid"


def test_base64_that_is_not_canonical_is_refused_even_if_it_means_the_signed_bytes() -> None:
    envelope = sign(COMMAND_TYPE, b"a", SEED)
    assert envelope.payload == "YQ=="
    for text in ("YQ", "YR==", "YQ==\n"):
        twisted = msgspec.structs.replace(envelope, payload=text)
        assert refused(twisted) == "envelope_malformed"


@given(st.integers(0, 8 * 64 - 1))
def test_any_flipped_bit_of_a_signature_is_refused(bit: int) -> None:
    keyid, signature = sign_bytes(COMMAND_TYPE, PAYLOAD, SEED)
    flipped = bytearray(signature)
    flipped[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SignatureError):
        verify_bytes(COMMAND_TYPE, PAYLOAD, keyid, bytes(flipped), KEYS)


def test_payload_key_and_signature_kept_apart_verify_without_an_envelope() -> None:
    keyid, signature = sign_bytes(COMMAND_TYPE, PAYLOAD, SEED)
    verify_bytes(COMMAND_TYPE, PAYLOAD, keyid, signature, KEYS)
    with pytest.raises(SignatureError):
        verify_bytes(COMMAND_TYPE, length_prefixed(PAYLOAD), keyid, signature, KEYS)
