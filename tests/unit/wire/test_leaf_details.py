"""What the details of a decision may hold: whatever is signed can be read back by everybody."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.wire.batch import Leaf, decode_leaf, encode_leaf
from workmate_shared.wire.codec import MAX_INTEGER, MIN_INTEGER, MalformedError

SIMPLE = st.none() | st.booleans() | st.text() | st.integers(MIN_INTEGER - 1, MAX_INTEGER + 1)
ANYTHING = st.recursive(
    SIMPLE | st.floats(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 3), inner),
    max_leaves=8,
)


def leaf(details: dict[Any, Any]) -> Leaf:
    return Leaf(
        tenant_id="t1",
        lineage="l1",
        principal_id="usr_ann",
        command_id="c1",
        command_hash="ab" * 32,
        fingerprint="cd" * 32,
        outcome="rejected",
        code="state_not_allowed",
        details=details,
        aggregate_id="task-1",
        events=(),
        evidence=(),
    )


@given(st.dictionaries(st.text() | st.sampled_from([1, "1"]), ANYTHING, max_size=4))
def test_a_leaf_is_refused_or_read_back_by_the_strictest_reader(details: dict[Any, Any]) -> None:
    try:
        data = encode_leaf(leaf(details))
    except (MalformedError, UnicodeEncodeError):
        return
    assert decode_leaf(data).details == msgspec.json.decode(msgspec.json.encode(details))


@pytest.mark.parametrize(
    "details",
    [
        {"version": 3, "events": ["task.accepted"], "because": None, "late": True},
        {"version": MAX_INTEGER, "below": MIN_INTEGER},
        {"findings": [{"code": "photo_missing", "slot": "after"}]},
    ],
)
def test_details_as_the_rules_write_them_are_taken(details: dict[str, Any]) -> None:
    assert decode_leaf(encode_leaf(leaf(details))).details == details


@pytest.mark.parametrize(
    "details",
    [
        {"version": MAX_INTEGER + 1},
        {"version": MIN_INTEGER - 1},
        {"share": 0.5},
        {1: "one", "1": "another"},
        {"deep": [[0.5]]},
    ],
)
def test_details_that_readers_could_take_differently_are_refused(details: dict[Any, Any]) -> None:
    with pytest.raises(MalformedError):
        encode_leaf(leaf(details))
