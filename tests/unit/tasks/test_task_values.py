"""What lies under the commitments: who may say what, and how later values replace earlier ones."""

from typing import Any

import msgspec
import pytest

from support.commands import FIX, SITE
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.tasks.values import (
    PERSONAL_KINDS,
    POSITION_KINDS,
    Fix,
    ManifestPersonal,
    OverridePersonal,
    SitePosition,
    merge_personal,
    read_value,
)


def test_every_command_that_can_be_overridden_has_room_for_the_reason() -> None:
    for row in TASK_TABLE.rows:
        if row.overridable:
            assert issubclass(PERSONAL_KINDS[row.command], OverridePersonal)


def test_values_belong_to_commands_of_the_table() -> None:
    commands = {row.command for row in TASK_TABLE.rows}
    assert {*PERSONAL_KINDS, *POSITION_KINDS} <= commands


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("assign", {}),
        ("assign", {"selection_reason": ""}),
        ("assign", {"selection_reason": " \t"}),
        ("decline", {"override_reason": "x"}),
        ("release", {"reason": "\n"}),
        ("cancel", {"reason": "x" * 4001}),
        ("reject_proof", {"reason": None}),
        ("observe", {}),
        ("create_task", {"client": 1}),
        ("create_task", {"phone": "1"}),
        ("accept", {"reason": "x"}),
    ],
)
def test_a_personal_value_that_says_too_little_or_too_much_is_refused(
    command: str, value: dict[str, Any]
) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_value(PERSONAL_KINDS[command], msgspec.json.encode(value))


@pytest.mark.parametrize(
    "position",
    [
        {},
        {"lat_e7": 1},
        {"lon_e7": 1},
        {"lat_e7": 900_000_001, "lon_e7": 0},
        {"lat_e7": 0, "lon_e7": -1_800_000_001},
        {"lat_e7": 40.5, "lon_e7": -73.9},
        {"mappls_pin": "3f45cb"},
        {"mappls_pin": "3F45C"},
        {"mappls_pin": "3F45CB\n"},
        SITE | {"accuracy_m": 1},
    ],
)
def test_a_site_is_whole_coordinates_or_a_pin_in_capitals(position: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_value(SitePosition, msgspec.json.encode(position))


def test_a_site_may_have_a_pin_alone() -> None:
    pin = read_value(SitePosition, '{"mappls_pin": "3F45CB"}')
    assert (pin.mappls_pin, pin.lat_e7) == ("3F45CB", None)


@pytest.mark.parametrize(
    "change",
    [
        {"source": "guess"},
        {"accuracy_m": -1},
        {"at": "2026-02-30T00:00:00Z"},
        {"at": "yesterday"},
        {"lat_e7": None},
    ],
)
def test_a_fix_says_where_from_what_and_how_well(change: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_value(Fix, msgspec.json.encode(FIX | change))


def test_observations_commit_to_one_fix_or_to_many() -> None:
    one, many = msgspec.json.encode(FIX), msgspec.json.encode([FIX, FIX])
    assert read_value(POSITION_KINDS["observe"], one) == Fix(**FIX)
    assert read_value(POSITION_KINDS["observe"], many) == (Fix(**FIX), Fix(**FIX))


@pytest.mark.parametrize("answer", [1, 1.5, None, ["a"], {"a": 1}])
def test_an_answer_is_yes_or_no_or_text(answer: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_value(ManifestPersonal, msgspec.json.encode({"answers": {"x": answer}}))


def test_later_personal_values_replace_earlier_ones_and_null_takes_away() -> None:
    first = {"client": "A", "address": "B"}
    assert merge_personal([first, {"address": None, "site_name": "C"}]) == {
        "client": "A",
        "site_name": "C",
    }
    assert merge_personal([first, {"client": None}, {"client": "D"}])["client"] == "D"
    assert merge_personal([]) == {}
