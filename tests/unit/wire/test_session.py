"""A session challenge proves a device to one server."""

import msgspec
import pytest

from workmate_shared.wire.codec import MalformedError
from workmate_shared.wire.dsse import (
    COMMAND_TYPE,
    SESSION_TYPE,
    SignatureError,
    keys_by_id,
    public_key_of,
    sign,
)
from workmate_shared.wire.session import (
    PURPOSE,
    Challenge,
    decode_challenge,
    encode_challenge,
    sign_challenge,
    verify_challenge,
)

SEED = bytes(range(32))
KEYS = keys_by_id([public_key_of(SEED)])
CHALLENGE = Challenge(
    purpose=PURPOSE, server_key_id="ab" * 32, tenant_id="t1", device_id="d1", nonce="n0nce"
)


def test_a_signed_challenge_comes_back_as_it_was() -> None:
    assert verify_challenge(sign_challenge(CHALLENGE, SEED), KEYS) == CHALLENGE


def test_a_challenge_is_encoded_in_the_order_of_its_fields() -> None:
    expected = {
        "purpose": "workmate.session",
        "server_key_id": "ab" * 32,
        "tenant_id": "t1",
        "device_id": "d1",
        "nonce": "n0nce",
    }
    assert encode_challenge(CHALLENGE) == msgspec.json.encode(expected)


def test_a_challenge_signed_as_something_else_opens_no_session() -> None:
    envelope = sign(COMMAND_TYPE, encode_challenge(CHALLENGE), SEED)
    with pytest.raises(SignatureError):
        verify_challenge(envelope, KEYS)


def test_signed_bytes_that_are_no_challenge_open_no_session() -> None:
    with pytest.raises(MalformedError):
        verify_challenge(sign(SESSION_TYPE, b"{}", SEED), KEYS)


@pytest.mark.parametrize(
    "change",
    [
        {"purpose": "workmate.command"},
        {"purpose": None},
        {"nonce": ""},
        {"nonce": "n" * 256},
        {"extra": 1},
    ],
)
def test_a_challenge_of_another_form_is_refused(change: dict[str, object]) -> None:
    plain = msgspec.to_builtins(CHALLENGE) | change
    with pytest.raises(MalformedError):
        decode_challenge(msgspec.json.encode(plain))


def test_a_challenge_without_its_purpose_is_refused() -> None:
    plain = msgspec.to_builtins(CHALLENGE)
    del plain["purpose"]
    with pytest.raises(MalformedError):
        decode_challenge(msgspec.json.encode(plain))
