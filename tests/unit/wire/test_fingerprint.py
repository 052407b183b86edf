"""Fingerprints tell whether a key was used again for the same content."""

import pytest
from msgspec import Struct

from workmate_shared.wire.fingerprint import request_fingerprint, signed_fingerprint

KEY = bytes(range(32))


class Body(Struct, omit_defaults=True):
    b: int
    a: str = "x"
    occurred_at: str | None = None


def of(decoded: object, **changes: object) -> str:
    given = {"key": KEY, "command": "assign", "aggregate_id": "t", "expected_version": 3} | changes
    return request_fingerprint(**given, decoded=decoded)  # type: ignore[arg-type]


def test_a_signed_command_is_compared_by_its_bytes() -> None:
    assert signed_fingerprint(b'{"a":1}') == signed_fingerprint(b'{"a":1}')
    assert signed_fingerprint(b'{"a":1}') != signed_fingerprint(b'{"a": 1}')


def test_the_order_of_members_changes_no_fingerprint_at_any_depth() -> None:
    assert of({"a": {"x": 1, "y": 2}, "b": 3}) == of({"b": 3, "a": {"y": 2, "x": 1}})


def test_the_order_of_a_list_changes_the_fingerprint() -> None:
    assert of({"a": [1, 2]}) != of({"a": [2, 1]})


def test_the_callers_time_does_not_count_at_the_top_and_does_below() -> None:
    assert of({"b": 1, "occurred_at": "2026-03-01T09:00:00Z"}) == of({"b": 1})
    assert of({"b": {"occurred_at": "2026-03-01T09:00:00Z"}}) != of({"b": {}})


def test_a_struct_has_the_fingerprint_of_the_body_it_was_decoded_from() -> None:
    assert of(Body(b=1, occurred_at="2026-03-01T09:00:00Z")) == of({"b": 1})


def test_command_aggregate_version_content_and_key_all_count() -> None:
    different = [
        of({}),
        of({"a": None}),
        of({}, command="amend"),
        of({}, aggregate_id=None),
        of({}, aggregate_id=""),
        of({}, expected_version=None),
        of({}, expected_version=0),
        of({}, key=KEY[::-1]),
    ]
    assert len(set(different)) == len(different)


def test_a_key_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="32"):
        of({}, key=b"short")
