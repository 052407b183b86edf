"""The bounded codec takes one reading of every text, or refuses it."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from workmate_shared.wire.codec import MAX_DETAIL, MalformedError, decode, encode

LIMIT = 1_000_000


class Item(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="item"):
    size: int = 0
    name: str = ""
    sizes: dict[str, int] = {}


class Box(Struct, frozen=True, tag_field="type", tag="box"):
    items: list[Item]


def decoded(data: bytes, kind: object = Any, **options: Any) -> Any:
    return decode(data, kind, max_bytes=LIMIT, **options)


def refusal(data: bytes, kind: object = dict, **options: Any) -> MalformedError:
    with pytest.raises(MalformedError) as caught:
        decoded(data, kind, **options)
    return caught.value


integers = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    st.none() | st.booleans() | integers | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_what_is_encoded_decodes_to_the_same_value(value: object) -> None:
    assert decoded(encode(value), max_depth=100) == value


@given(values)
def test_escapes_and_white_space_change_no_value(value: object) -> None:
    data = json.dumps(value, indent=2).encode()
    assert decoded(data, max_depth=100) == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ue0d819.-', max_size=40).map(str.encode))
def test_no_input_raises_anything_but_malformed(data: bytes) -> None:
    with suppress(MalformedError):
        decode(data, Any, max_bytes=50)


def test_encoding_is_compact_and_leaves_text_unescaped() -> None:
    assert encode({"b": "Tür ✓", "a": [1, None]}) == '{"b":"Tür ✓","a":[1,null]}'.encode()


def test_the_size_limit_holds_to_the_byte() -> None:
    assert decode(b"[1]", list, max_bytes=3) == [1]
    with pytest.raises(MalformedError) as caught:
        decode(b"[12]", Any, max_bytes=3)
    assert caught.value.code == "too_large"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"[":', "}]")])
def test_the_depth_limit_holds_to_the_level(opening: str, closing: str) -> None:
    per_turn = len(closing)
    turns = 12 // per_turn
    data = (opening * turns + "1" + closing * turns).encode()
    assert decoded(data, max_depth=12)
    assert "nested" in refusal(data, Any, max_depth=11).detail


def test_brackets_within_strings_and_beside_each_other_are_no_nesting() -> None:
    value = {"a": "[" * 100, '{"\\"[{': ["\\", '"[', "\\\\[["], "b": [[]] * 100}
    assert decoded(json.dumps(value).encode(), max_depth=3) == value


def test_nesting_that_would_exhaust_a_parser_is_refused_before_parsing() -> None:
    assert refusal(b"[" * LIMIT, Any).detail == "nested deeper than 32"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":1,"a":2}', "$"),
        ('{"a":1,"\\u0061":1}', "$"),
        ('{"x":[{"y":{"a":1,"b":2,"a":3}}]}', "$.x[0].y"),
    ],
)
def test_duplicate_keys_are_refused_at_any_depth(text: str, path: str) -> None:
    error = refusal(text.encode())
    assert (error.code, error.path) == ("invalid_command", path)
    assert error.detail == "duplicate key 'a'"


def test_what_a_struct_ignores_is_held_to_the_same_rules() -> None:
    for ignored in ('{"a":1,"a":1}', "1.5", "NaN", '"\\ud800"', "9223372036854775808"):
        error = refusal(f'{{"type":"box","items":[],"extra":[{ignored}]}}'.encode(), Box)
        assert error.path.startswith("$.extra")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_no_json_are_refused_even_among_floats(number: str) -> None:
    assert "not JSON" in refusal(f"[{number}]".encode(), Any, floats=True).detail


@pytest.mark.parametrize("number", ["9223372036854775807", "-9223372036854775808", "-0"])
def test_integers_of_64_bits_are_taken(number: str) -> None:
    assert decoded(f"[{number}]".encode()) == [int(number)]


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "-9223372036854775809", "9" * 20, "9" * 100_000]
)
def test_integers_beyond_64_bits_are_refused(number: str) -> None:
    error = refusal(f'{{"a":[0,{number}]}}'.encode())
    assert (error.path, error.detail) == ("$.a[1]", "an integer beyond 64 bits")


@pytest.mark.parametrize("number", ["1.0", "1e2", "-0.5", "1E-2"])
def test_floats_are_refused_unless_the_caller_allows_them(number: str) -> None:
    data = f'{{"a":{number}}}'.encode()
    assert refusal(data).path == "$.a"
    assert decoded(data, dict, floats=True) == {"a": float(number)}


def test_a_float_out_of_range_is_refused_even_where_floats_are_allowed() -> None:
    assert refusal(b'{"a":-1e999}', floats=True).path == "$.a"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":"\\ud800"}', "$.a"),
        ('{"a":"\\uDC00 \\ud800"}', "$.a"),
        ('{"a":["\\ud800\\u0041"]}', "$.a[0]"),
        ('{"b":{"\\udfff":1}}', "$.b"),
    ],
)
def test_lone_surrogates_are_refused(text: str, path: str) -> None:
    error = refusal(text.encode())
    assert error.path == path
    assert "surrogate" in error.detail


def test_a_surrogate_pair_is_one_character_and_an_escaped_backslash_is_no_escape() -> None:
    assert decoded(b'["\\ud83d\\ude00","\\\\ud800"]') == ["😀", "\\ud800"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"\x00",
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b'{"\xff":1}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xc0\x80"}',
        '{"a":1}'.encode("utf-16"),
        b"{} {}",
        b"{}x",
        b"{}\x00",
        b"{}\x0c",
        b'{"a":"\x00"}',
        b'{"a":"\n"}',
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":1.}',
        b'{"a":"\\x"}',
        b'{"a":"\\u12 4"}',
        b'{"a":1 /* */}',
    ],
)
def test_what_is_no_strict_utf_8_json_is_refused(data: bytes) -> None:
    error = refusal(data, floats=True)
    assert (error.code, error.path) == ("invalid_command", "$")


def test_an_escaped_nul_is_a_character_like_any_other() -> None:
    assert decoded(b'["\\u0000"]') == ["\x00"]


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (
            '{"type":"box","items":[{"type":"item"},{"type":"item","size":"1"}]}',
            "$.items[1].size",
            "int",
        ),
        ('{"type":"box","items":[{"type":"item","other":1}]}', "$.items[0]", "`other`"),
        ('{"type":"item","sizes":{"a":null}}', "$.sizes[...]", "int"),
        ('{"type":"box"}', "$", "`items`"),
        ('{"type":"chest"}', "$.type", "chest"),
        ("[]", "$", "object"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_path(
    text: str, path: str, said: str
) -> None:
    error = refusal(text.encode(), Item | Box)
    assert (error.code, error.path) == ("invalid_command", path)
    assert said in error.detail


def test_an_explanation_never_grows_with_what_was_sent() -> None:
    for key in ("k" * 5000, "k` - at `$." + "x" * 5000):
        for data in ({"type": "item", key: 1}, {"type": "item", key: [1.5]}):
            error = refusal(json.dumps(data).encode(), Item)
            assert len(error.detail) <= MAX_DETAIL
            assert len(error.path) <= MAX_DETAIL


def test_a_union_is_decoded_by_its_tag() -> None:
    data = b'{"type":"box","items":[{"type":"item","size":3}],"later":null}'
    assert decoded(data, Item | Box) == Box(items=[Item(size=3)])
