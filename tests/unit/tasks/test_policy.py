"""A proof policy is known by its content, and one that nobody could meet is refused."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commands import make_policy
from workmate_shared.tasks.policy import ProofPolicy, Retention, is_date, policy_version
from workmate_shared.tasks.view import spell_out

EXAMPLE: dict[str, Any] = {
    "checklist": [
        {
            "item_id": "isolated",
            "prompt": "Supply isolated",
            "kind": "confirm",
            "required": True,
            "passes": True,
        },
        {
            "item_id": "volts",
            "prompt": "Reading",
            "kind": "number",
            "unit": "V",
            "min": "0",
            "max": "250",
            "required": True,
        },
    ],
    "photos": [{"slot": "after", "prompt": "Finished work", "max": 4, "max_age_seconds": 86400}],
    "signature": ["worker"],
    "consent": {"text_version": "2026-01", "text": "I agree."},
    "geofence_m": 200,
}
USUAL: dict[str, Any] = {
    "geofence_enforce": False,
    "validation": "supervisor",
    "retention": {
        "photo": "contract_7y",
        "signature": "contract_7y",
        "personal": "contract_7y",
        "position": "operational_90d",
    },
}


def read(policy: dict[str, Any]) -> ProofPolicy:
    return msgspec.json.decode(msgspec.json.encode(policy), type=ProofPolicy)


def turn_round(value: Any) -> Any:
    """Return the same JSON value with the members of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: turn_round(member) for key, member in reversed(value.items())}
    return [turn_round(item) for item in value] if isinstance(value, list) else value


def test_the_version_of_the_example_policy_never_changes() -> None:
    assert policy_version(read(EXAMPLE)) == (
        "6c7f5fbbf115fb9eb23846134f214bb0fd2524d8876f0898b3d60f5efb3d53b0"
    )
    assert read(EXAMPLE) == make_policy()


def test_the_version_of_an_empty_policy_never_changes() -> None:
    assert policy_version(ProofPolicy()) == (
        "0f6ce75b336eec294ca29885527d0d4d7064a7f9f2342229190cc2f1149b2040"
    )


def test_the_order_of_members_makes_no_other_policy() -> None:
    turned = turn_round(EXAMPLE | USUAL)
    assert json.dumps(turned) != json.dumps(EXAMPLE | USUAL)
    assert policy_version(read(turned)) == policy_version(read(EXAMPLE | USUAL))


@pytest.mark.parametrize("name", USUAL)
def test_a_default_that_is_written_out_makes_no_other_policy(name: str) -> None:
    written = EXAMPLE | {name: USUAL[name]}
    assert policy_version(read(written)) == policy_version(read(EXAMPLE))


def test_a_policy_keeps_its_version_when_it_is_stored_and_read_again() -> None:
    for policy in (read(EXAMPLE), read(EXAMPLE | USUAL), ProofPolicy()):
        again = msgspec.json.decode(msgspec.json.encode(policy), type=ProofPolicy)
        assert (again, policy_version(again)) == (policy, policy_version(policy))


@pytest.mark.parametrize(
    "change",
    [
        {"geofence_m": 201},
        {"geofence_enforce": True},
        {"validation": "automatic"},
        {"signature": ["worker", "customer"]},
        {"consent": None},
        {"checklist": list(reversed(EXAMPLE["checklist"]))},
        {"retention": USUAL["retention"] | {"photo": "legal_hold"}},
    ],
)
def test_any_other_content_makes_another_policy(change: dict[str, Any]) -> None:
    assert policy_version(read(EXAMPLE | change)) != policy_version(read(EXAMPLE))


CONFIRM = {"kind": "confirm", "item_id": "x", "prompt": "?"}
NUMBER = {"kind": "number", "item_id": "x", "prompt": "?"}
CHOICE = {"kind": "choice", "item_id": "x", "prompt": "?"}
DAY = {"kind": "date", "item_id": "x", "prompt": "?"}
SLOT = {"slot": "x", "prompt": "?"}


@pytest.mark.parametrize(
    "policy",
    [
        {"checklist": [CONFIRM, NUMBER]},
        {"photos": [SLOT, SLOT]},
        {"signature": ["worker", "worker"]},
        {"signature": ["nobody"]},
        {"checklist": [NUMBER | {"min": "2", "max": "1.9"}]},
        {"checklist": [NUMBER | {"min": "1e3"}]},
        {"checklist": [NUMBER | {"min": 1}]},
        {"checklist": [NUMBER | {"max": "1\n"}]},
        {"checklist": [CHOICE | {"options": []}]},
        {"checklist": [CHOICE | {"options": ["a"], "passes": "b"}]},
        {"checklist": [DAY | {"passes": "2026-02-30"}]},
        {"checklist": [DAY | {"passes": "20260301"}]},
        {"checklist": [CONFIRM | {"kind": "essay"}]},
        {"checklist": [CONFIRM | {"item_id": "x\n"}]},
        {"photos": [SLOT | {"min": 2}]},
        {"photos": [SLOT | {"min": -1}]},
        {"photos": [SLOT | {"max": 0, "min": 0}]},
        {"photos": [SLOT | {"max_age_seconds": 0}]},
        {"geofence_m": 0},
        {"geofence_m": 1.5},
        {"validation": "nobody"},
        {"retention": {"photo": "7 years"}},
        {"consent": {"text_version": "1"}},
        {"surprise": 1},
    ],
)
def test_a_policy_that_nobody_could_meet_or_read_is_refused(policy: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(policy)


def test_bounds_that_one_number_meets_are_a_rule() -> None:
    assert read({"checklist": [NUMBER | {"min": "1.0", "max": "1"}]}).checklist


@given(st.dates())
def test_every_day_of_the_calendar_is_a_date(day: Any) -> None:
    assert is_date(day.isoformat())


@pytest.mark.parametrize(
    "text", ["", "2026-3-1", "2026-13-01", "2026-02-29", "0000-01-01", "2026-03-01T00:00"]
)
def test_what_is_in_no_calendar_is_no_date(text: str) -> None:
    assert not is_date(text)


def test_a_policy_is_shown_as_it_was_written_also_where_it_says_what_is_the_default() -> None:
    written: dict[str, Any] = {
        "checklist": [
            {"kind": "confirm", "item_id": "isolated", "prompt": "Off", "required": True},
            {"kind": "number", "item_id": "volts", "prompt": "Reading", "unit": "V"},
        ],
        "photos": [
            {"slot": "after", "prompt": "Done", "min": 1, "max": 1, "position_required": False}
        ],
        "signature": ["worker"],
        "geofence_enforce": False,
        "validation": "supervisor",
        "retention": msgspec.to_builtins(Retention()),
    }
    shown = spell_out(msgspec.convert(written, ProofPolicy))
    assert shown["photos"] == written["photos"]
    for name in ("signature", "geofence_enforce", "validation", "retention"):
        assert shown[name] == written[name]
    assert shown["checklist"][0] == written["checklist"][0]
    assert shown["checklist"][1] == {**written["checklist"][1], "required": False}
    assert "consent" not in shown
