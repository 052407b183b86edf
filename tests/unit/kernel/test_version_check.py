"""The version check: what makes a command stale, and what does not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commands import ASSIGNEE, DISPATCHER, make_command
from support.contexts import Story, decide, refer_to, story_to
from workmate_shared.kernel.decision import Committed, Conflict, Decision, Retry
from workmate_shared.kernel.lifecycle import EventRef
from workmate_shared.principals.principal import Principal

COMMITTED = "committed"


def offline(*kinds: str) -> tuple[Story, int]:
    """A worker whose queued commands arrived one after the other; the version that he saw."""
    story = story_to("assigned")
    seen = story.state.version
    for number, kind in enumerate(kinds):
        story.tell(kind, command_id=f"queued-{number}")
    return story, seen


def follow(story: Story, seen: int, kind: str, ancestors: set[str], **fields: Any) -> Decision:
    """Decide the next queued command, which still expects the version that was seen."""
    command = make_command(kind, expected_version=seen, **({"after": "queued-0"} | fields))
    return decide(
        story.state,
        command,
        after_outcome="committed",
        ancestors=frozenset(ancestors),
        since=refer_to(story.events[seen:]),
    )


def code_of(decision: Decision) -> str:
    return decision.status if isinstance(decision, Committed) else decision.code or decision.status


def test_a_whole_chain_of_own_commands_is_accepted_from_the_version_that_was_seen() -> None:
    story, seen = offline("accept", "start_travel")
    decision = follow(story, seen, "arrive", {"queued-0", "queued-1"})
    assert isinstance(decision, Committed)
    assert decision.events[0].aggregate_version == story.state.version + 1


def test_events_at_or_below_the_version_that_was_seen_do_not_count() -> None:
    story, seen = offline("accept")
    command = make_command("start_travel", expected_version=seen, after="queued-0")
    facts = {"after_outcome": "committed", "ancestors": frozenset({"queued-0"})}
    assert story.events[seen - 1].actor.id != ASSIGNEE
    decision = decide(story.state, command, since=refer_to(story.events), **facts)
    assert code_of(decision) == COMMITTED


def test_an_own_change_outside_the_chain_makes_a_command_stale() -> None:
    story, seen = offline("accept", "start_travel")
    assert code_of(follow(story, seen, "arrive", {"queued-0"})) == "version_conflict"


def test_an_own_earlier_command_that_after_does_not_reach_does_not_count() -> None:
    story, seen = offline("accept")
    decision = follow(story, seen, "start_travel", set(), after=None)
    assert code_of(decision) == "version_conflict"


def test_somebody_elses_change_makes_a_command_stale_even_inside_its_chain() -> None:
    story, seen = offline("accept")
    story.tell("amend", command_id="queued-1")
    decision = follow(story, seen, "start_travel", {"queued-0", "queued-1"})
    assert decision == Conflict(
        "version_conflict",
        {
            "expected_version": seen,
            "version": story.state.version,
            "changed_version": story.state.version,
            "state": "accepted",
        },
    )


def test_the_same_key_of_another_principal_is_not_in_the_chain() -> None:
    story, seen = offline("accept")
    since = (EventRef(seen + 1, False, DISPATCHER, "queued-0"),)
    command = make_command("start_travel", expected_version=seen, after="queued-0")
    decision = decide(
        story.state,
        command,
        after_outcome="unchanged",
        ancestors=frozenset({"queued-0"}),
        since=since,
    )
    assert code_of(decision) == "version_conflict"


def test_annotations_in_between_make_no_command_stale() -> None:
    story, seen = offline()
    for kind in ("observe", "store_evidence", "hand_over"):
        story.tell(kind)
    assert story.state.changed_version == seen
    assert code_of(follow(story, seen, "accept", set(), after=None)) == COMMITTED


def test_annotations_between_the_steps_of_a_chain_do_not_break_it() -> None:
    story, seen = offline("accept", "observe", "start_travel")
    story.tell("observe", actor=make_command("assign").actor)
    decision = follow(story, seen, "arrive", {"queued-0", "queued-2"})
    assert code_of(decision) == COMMITTED


def test_an_annotation_is_never_stale_and_never_ahead() -> None:
    story = story_to("in_progress")
    for expected_version in (0, 1, story.state.version, 99, None):
        command = make_command("observe", expected_version=expected_version)
        assert code_of(decide(story.state, command)) == COMMITTED


def test_the_version_of_the_last_annotation_is_as_good_as_that_of_the_last_change() -> None:
    story, seen = offline()
    story.tell("observe")
    for expected_version in (seen, seen + 1):
        decision = follow(story, expected_version, "accept", set(), after=None)
        assert code_of(decision) == COMMITTED


def test_the_facts_must_show_the_change_before_a_chain_is_believed() -> None:
    story, seen = offline("accept")
    command = make_command("start_travel", expected_version=seen, after="queued-0")
    facts = {"after_outcome": "committed", "ancestors": frozenset({"queued-0"})}
    assert code_of(decide(story.state, command, since=(), **facts)) == "version_conflict"


@pytest.mark.parametrize("outcome", ["committed", "unchanged"])
def test_a_chain_goes_on_after_a_step_that_had_its_effect(outcome: str) -> None:
    story, _ = offline("accept")
    command = make_command("start_travel", expected_version=story.state.version, after="queued-0")
    assert code_of(decide(story.state, command, after_outcome=outcome)) == COMMITTED


@pytest.mark.parametrize("outcome", ["conflict", "rejected"])
@pytest.mark.parametrize("kind", ["start_travel", "observe"])
def test_a_chain_ends_where_a_step_had_none(outcome: str, kind: str) -> None:
    story, _ = offline("accept")
    command = make_command(kind, expected_version=story.state.version, after="queued-0")
    decision = decide(story.state, command, after_outcome=outcome)
    assert decision == Conflict("chain_broken", {"after": "queued-0", "after_outcome": outcome})


@pytest.mark.parametrize("kind", ["start_travel", "observe"])
def test_a_step_whose_predecessor_has_not_arrived_waits_for_it(kind: str) -> None:
    story, _ = offline("accept")
    command = make_command(kind, expected_version=story.state.version, after="queued-9")
    waiting = Retry("blocked_by", {"after": "queued-9"}, blocked_by="queued-9")
    assert decide(story.state, command) == waiting


def test_a_version_that_the_server_does_not_have_is_tried_again() -> None:
    story, seen = offline()
    assert code_of(follow(story, seen + 1, "accept", set(), after=None)) == "version_ahead"


def test_a_version_of_a_lost_lineage_is_a_conflict() -> None:
    story, seen = offline()
    lost = {"lineage": "lineage-before", "after": None}
    assert code_of(follow(story, seen + 1, "accept", set(), **lost)) == "history_lost"
    assert code_of(follow(story, seen, "accept", set(), **lost)) == COMMITTED


def test_a_principals_command_may_leave_its_version_out_and_is_held_to_one_it_states() -> None:
    story = Story()
    story.tell("create_principal")
    story.tell("change_principal")
    principal: Principal = story.state
    for expected_version, code in (
        (None, COMMITTED),
        (2, COMMITTED),
        (1, "version_conflict"),
        (3, "version_ahead"),
    ):
        command = make_command("change_principal", expected_version=expected_version)
        facts = {"since": refer_to(story.events[expected_version or 0 :])}
        assert code_of(decide(principal, command, **facts)) == code


REFS = st.builds(
    EventRef,
    version=st.integers(1, 12),
    annotates=st.booleans(),
    principal_id=st.sampled_from([ASSIGNEE, DISPATCHER]),
    command_id=st.sampled_from(["queued-0", "queued-1", "other"]),
)


@given(st.lists(REFS, max_size=6), st.integers(0, 12), st.sets(st.sampled_from(["queued-0"])))
def test_no_facts_let_a_command_pass_a_foreign_change(
    refs: list[EventRef], expected_version: int, ancestors: set[str]
) -> None:
    story, _ = offline("accept")
    command = make_command("start_travel", expected_version=expected_version)
    decision = decide(story.state, command, since=tuple(refs), ancestors=frozenset(ancestors))
    foreign = [
        ref
        for ref in refs
        if ref.version > expected_version
        and not ref.annotates
        and (ref.principal_id != ASSIGNEE or ref.command_id not in ancestors)
    ]
    if foreign and expected_version < story.state.changed_version:
        assert code_of(decision) == "version_conflict"
