"""Ids are opaque text in a narrow alphabet; derived ones are the same for ever."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.kernel.ids import (
    CommandId,
    HashHex,
    Identifier,
    event_id_for,
    principal_id_for,
    task_id_for,
)


def fits(text: str, kind: object) -> bool:
    """Whether the text is one of this kind, as the wire reads it."""
    try:
        msgspec.json.decode(msgspec.json.encode(text), type=kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("usr_8x92a", True),
        ("01930000-0000-7000-8000-000000000001", True),
        ("A.b:c@d-e_f", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("_x", False),
        ("-x", False),
        ("a b", False),
        ("a/b", False),
        ("a\n", False),
        ("ä", False),
        ("\u0661", False),
    ],
)
def test_an_identifier_is_letters_digits_and_five_signs(text: str, good: bool) -> None:
    assert fits(text, Identifier) is good


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("uuid-7a3b9c2d-1e4f-5g6h-7i8j-9k0l1m2n3o4p", True),
        ('nyc311:"42254749"', True),
        ("!~", True),
        ("x" * 255, True),
        ("x" * 256, False),
        ("", False),
        ("a b", False),
        ("a\n", False),
        ("a\x7f", False),
        ("ü", False),
    ],
)
def test_a_command_id_is_visible_ascii(text: str, good: bool) -> None:
    assert fits(text, CommandId) is good


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("0a" * 32, True),
        ("0A" * 32, False),
        ("0a" * 31, False),
        ("0a" * 33, False),
        ("0a" * 32 + "\n", False),
        ("0g" * 32, False),
    ],
)
def test_a_hash_is_lower_case_hex_of_32_bytes(text: str, good: bool) -> None:
    assert fits(text, HashHex) is good


def test_derived_ids_never_change() -> None:
    assert task_id_for("tenant-1", "nyc311", "42254749") == "38fcb5ca-6915-80fe-9c05-3d5d524ea768"
    assert event_id_for("tenant-1", "usr_ann", "key-1", 0) == "c17342bf-4ebe-8f75-aed5-ec46c9aa9a84"
    assert (
        principal_id_for("tenant-1", "usr_adam", "key-1") == "90edb38e-9107-8f05-9c5d-c3a67a86859f"
    )


PARTS = st.tuples(*[st.text(max_size=4)] * 3)


@given(PARTS, PARTS)
def test_different_jobs_are_different_tasks(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert (task_id_for(*one) == task_id_for(*other)) == (one == other)


def test_the_events_of_one_command_have_ids_of_their_own() -> None:
    ids = {event_id_for("t", "p", "k", index) for index in range(12)}
    assert len(ids) == 12
    assert event_id_for("t", "p", "k1", 1) != event_id_for("t", "p", "k", 11)
    assert task_id_for("t", "p", "k") != principal_id_for("t", "p", "k")
