"""Every code that a decision can give is reachable, recorded as stated, and explained."""

import ast
import json
from pathlib import Path
from string import Formatter

import msgspec
import pytest

from support.commands import OVERRIDE_REASON, PERSONAL
from support.decisions import CODES
from workmate_shared.kernel import explain as explanation
from workmate_shared.kernel import lifecycle
from workmate_shared.kernel.catalogue import CATALOGUE, Recorded
from workmate_shared.kernel.decision import Committed, Conflict, Rejection, Retry, Unchanged
from workmate_shared.kernel.explain import explain
from workmate_shared.principals import principal
from workmate_shared.tasks import guards
from workmate_shared.tasks import lifecycle as task_lifecycle

KINDS = {
    Recorded.CONFLICT: Conflict,
    Recorded.REJECTED: Rejection,
    Recorded.RETRY: Retry,
    Recorded.REFUSED: Retry,
}
DECIDERS = (lifecycle, task_lifecycle, guards, principal)


def codes_in_the_source() -> set[str]:
    """Every code that a refusal is made with, anywhere in the deciding modules."""
    found: set[str] = set()
    for module in DECIDERS:
        for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            places = [word.value for word in node.keywords if word.arg == "exists_code"]
            if node.func.id == "Refusal":
                places.append(node.args[0])
            for part in (part for place in places for part in ast.walk(place)):
                if isinstance(part, ast.Constant):
                    found.add(str(part.value))
    return found


def test_an_example_exists_for_every_code_that_the_source_gives() -> None:
    assert set(CODES) == codes_in_the_source()


def test_every_code_that_is_recorded_is_one_that_a_decision_gives() -> None:
    recorded = {
        entry.code
        for entry in CATALOGUE.values()
        if entry.recorded in (Recorded.CONFLICT, Recorded.REJECTED)
    }
    assert recorded <= set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_the_example_of_a_code_ends_with_it_in_the_way_that_the_catalogue_states(
    code: str,
) -> None:
    decision = CODES[code]()
    assert not isinstance(decision, Committed | Unchanged)
    assert decision.code == code
    assert type(decision) is KINDS[CATALOGUE[code].recorded]


@pytest.mark.parametrize("code", CODES)
def test_the_sentence_of_a_code_is_whole_from_the_details_that_are_stored(code: str) -> None:
    decision = CODES[code]()
    assert not isinstance(decision, Committed | Unchanged)
    stored = json.loads(msgspec.json.encode(decision.details))
    sentence = explain(decision.status, decision.code, stored)
    template = explanation._SENTENCES.get(code, "")
    wanted = {name for _, name, _, _ in Formatter().parse(template) if name}
    assert wanted <= set(stored)
    assert sentence.endswith(".")
    assert not any(fault in sentence for fault in ("(not stated)", "{", "}", "  ", " .", "None"))


@pytest.mark.parametrize("code", CODES)
def test_the_details_of_a_code_hold_no_personal_value_and_no_float(code: str) -> None:
    decision = CODES[code]()
    assert not isinstance(decision, Committed)
    stored = msgspec.json.encode(decision.details).decode()
    for value in (*PERSONAL.values(), OVERRIDE_REASON):
        assert not any(text in stored for text in value.values())
    json.loads(stored, parse_float=pytest.fail)


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_of_the_catalogue_is_explained_even_without_details(code: str) -> None:
    sentence = explain("rejected", code, {})
    assert sentence.endswith(".")
    assert "{" not in sentence


def test_a_sentence_belongs_to_a_code_of_the_catalogue() -> None:
    assert set(explanation._SENTENCES) <= set(CATALOGUE)


def test_an_unknown_code_is_explained_by_its_name() -> None:
    assert explain("rejected", "of_the_future", {}) == "The server answered of_the_future."
    assert explain("retry", None, {}) == "The server answered retry."


def test_what_was_done_is_explained_by_its_events_and_version() -> None:
    details = {"events": ["task.accepted"], "version": 3}
    assert explain("committed", None, details) == "Done: task.accepted, now at version 3."
    assert explain("unchanged", None, {}).startswith("Already so")


def test_a_finding_is_told_with_all_its_words() -> None:
    details = {
        "manifest_id": "m-1",
        "findings": [
            {"code": "photos_missing", "about": "after", "wanted": "1"},
            {"code": "file_missing", "about": "aa"},
        ],
    }
    assert explain("rejected", "proof_policy_unmet", details) == (
        "Proof m-1 does not meet the policy: photos_missing after 1, file_missing aa."
    )


def test_text_in_details_is_never_read_as_a_template() -> None:
    sentence = explain("rejected", "actor_deactivated", {"actor": "{device_id} {0.__class__}"})
    assert sentence == "{device_id} {0.__class__} is no longer active."
