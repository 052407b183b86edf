"""Codes are typed by people: what is meant is read, what is wrong is said."""

import itertools

import pytest
from hypothesis import given
from hypothesis.strategies import binary

from workmate_shared.principals.enrolment import (
    CodeError,
    code_hash,
    key_matches,
    make_code,
    parse_code,
)
from workmate_shared.wire.dsse import key_id, public_key_of

SECRET = bytes.fromhex("00112233445566778899aabbccddeeff")
KEY_ID = key_id(public_key_of(bytes(32)))
CODE = make_code(SECRET, KEY_ID)
SYMBOLS = CODE.replace("-", "")
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def fault_of(text: str) -> str:
    with pytest.raises(CodeError) as refused:
        parse_code(text)
    return refused.value.code


@given(binary(min_size=16, max_size=16), binary(min_size=32, max_size=32))
def test_a_code_gives_back_its_secret_and_knows_its_server(secret: bytes, key: bytes) -> None:
    code = make_code(secret, key.hex())
    found, prefix = parse_code(code)
    assert found == secret
    assert prefix == key[:10]
    assert key_matches(key.hex(), prefix)


def test_a_code_is_eleven_groups_of_four_plain_symbols() -> None:
    groups = CODE.split("-")
    assert [len(group) for group in groups] == [4] * 11
    assert set(SYMBOLS) <= set(ALPHABET)


@pytest.mark.parametrize(
    "typed",
    [
        CODE.lower(),
        SYMBOLS,
        f"  {CODE.replace('-', ' ')}\n",
        CODE.replace("-", "\t").swapcase(),
        CODE.replace("0", "O"),
        CODE.replace("0", "o").replace("1", "l"),
        CODE.replace("1", "I"),
        CODE.replace("-", "\u2013"),
    ],
)
def test_a_code_is_read_however_it_was_typed(typed: str) -> None:
    assert parse_code(typed) == parse_code(CODE)
    assert code_hash(typed) == code_hash(CODE)


def test_any_single_wrong_symbol_is_a_slip() -> None:
    for place, symbol in itertools.product(range(len(SYMBOLS)), ALPHABET):
        if symbol != SYMBOLS[place]:
            assert fault_of(SYMBOLS[:place] + symbol + SYMBOLS[place + 1 :]) == "code_mistyped"


def test_any_two_symbols_that_changed_places_are_a_slip() -> None:
    for first, second in itertools.combinations(range(len(SYMBOLS)), 2):
        if SYMBOLS[first] != SYMBOLS[second]:
            swapped = list(SYMBOLS)
            swapped[first], swapped[second] = SYMBOLS[second], SYMBOLS[first]
            assert fault_of("".join(swapped)) == "code_mistyped"


def test_text_of_another_length_or_with_strange_symbols_is_no_code() -> None:
    assert fault_of("") == "code_length"
    assert fault_of(SYMBOLS[:-1]) == "code_length"
    assert fault_of(SYMBOLS + "0") == "code_length"
    assert fault_of("1" * 1_000_000) == "code_length"
    assert fault_of(SYMBOLS[:-1] + "U") == "code_symbol"
    assert fault_of(SYMBOLS[:-1] + "ß") == "code_symbol"
    assert fault_of(SYMBOLS[:-1] + "\0") == "code_symbol"


def test_the_hash_depends_on_the_secret_alone() -> None:
    elsewhere = make_code(SECRET, "ff" * 32)
    assert code_hash(elsewhere) == code_hash(CODE)
    assert code_hash(make_code(bytes(16), KEY_ID)) != code_hash(CODE)
    assert len(code_hash(CODE)) == 64


def test_a_code_of_another_server_is_told_by_its_key() -> None:
    _, prefix = parse_code(CODE)
    assert key_matches(KEY_ID, prefix)
    assert not key_matches("ff" * 32, prefix)
    assert not key_matches(KEY_ID, prefix[:9])


def test_a_code_is_made_only_of_a_whole_secret_and_a_real_key_id() -> None:
    for secret, server_key_id in ((SECRET[1:], KEY_ID), (SECRET, "abc"), (SECRET, "ab" * 9)):
        with pytest.raises(ValueError, match=r"bytes|hex"):
            make_code(secret, server_key_id)
