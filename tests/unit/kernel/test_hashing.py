"""Hashing with domain tags and derived ids."""

import re
import struct
from uuid import UUID

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.kernel.hashing import (
    blake3_digest,
    blake3_hex,
    derive_uuid8,
    length_prefixed,
)


def test_each_part_follows_its_length_as_eight_big_endian_bytes() -> None:
    assert length_prefixed(b"ab", b"") == struct.pack(">Q2sQ", 2, b"ab", 0)


@given(st.lists(st.binary(max_size=20)), st.lists(st.binary(max_size=20)))
def test_different_parts_never_join_into_the_same_bytes(
    one: list[bytes], other: list[bytes]
) -> None:
    assert (length_prefixed(*one) == length_prefixed(*other)) == (one == other)


def test_the_domain_tag_is_the_first_length_prefixed_part() -> None:
    expected = blake3(struct.pack(">Q3sQ1s", 3, b"tag", 1, b"x"))
    assert blake3_digest("tag", b"x") == expected.digest()
    assert blake3_hex("tag", b"x") == expected.hexdigest()


def test_the_same_bytes_hash_differently_under_another_domain() -> None:
    assert blake3_hex("one", b"x") != blake3_hex("other", b"x")


@given(st.text(min_size=1, max_size=20), st.lists(st.text(max_size=10)))
def test_a_derived_id_is_a_uuid_of_version_8_in_canonical_form(
    context: str, parts: list[str]
) -> None:
    derived = derive_uuid8(context, *parts)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", derived)
    assert derived[14] == "8"
    assert derived[19] in "89ab"
    assert UUID(derived).variant == UUID(int=0x8 << 60).variant
    assert derive_uuid8(context, *parts) == derived


def test_a_derived_id_keeps_every_derived_bit_but_version_and_variant() -> None:
    material = length_prefixed(b"a", "ü".encode())
    raw = bytearray(blake3(material, derive_key_context="ctx").digest(16))
    raw[6] = raw[6] & 0x0F | 0x80
    raw[8] = raw[8] & 0x3F | 0x80
    assert derive_uuid8("ctx", "a", "ü") == str(UUID(bytes=bytes(raw)))


def test_derived_ids_differ_by_context_and_by_where_the_parts_are_cut() -> None:
    ids = {derive_uuid8("c", "a", "b"), derive_uuid8("d", "a", "b"), derive_uuid8("c", "ab")}
    assert len(ids) == 3


def test_text_that_is_no_utf_8_derives_no_id() -> None:
    with pytest.raises(UnicodeEncodeError):
        derive_uuid8("c", "\ud800")
