"""A command whose effect is already there is answered `unchanged`: no event, no second trip."""

from typing import Any

import pytest

from support.commands import (
    ASSIGNEE,
    FORMER,
    MANIFEST_ID,
    OTHER_SUPERVISOR,
    STRANGER,
    make_actor,
    make_command,
    make_manifest,
    manifest_fields,
)
from support.contexts import HANDED_OVER_ID, decide, fingerprint_of, story_to, walk_to
from workmate_shared.kernel.decision import Conflict, Decision, Unchanged
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.task import Task

LATER = ("accepted", "en_route", "in_progress", "proof_pending", "completed", "cancelled")


def again(task: Task, kind: str, /, **fields: Any) -> Decision:
    """Decide a command with a new key on the present version."""
    given = {"command_id": "again", "expected_version": task.version} | fields
    return decide(task, make_command(kind, **given))


def is_unchanged(task: Task, decision: Decision) -> bool:
    return decision == Unchanged({"state": task.state, "version": task.version})


@pytest.mark.parametrize(
    ("kind", "states"),
    [("accept", LATER), ("start_travel", LATER[1:]), ("arrive", LATER[2:])],
)
def test_a_step_that_the_assignee_has_taken_is_unchanged_wherever_the_task_is_now(
    kind: str, states: tuple[str, ...]
) -> None:
    for state in states:
        task = walk_to(state)
        assert is_unchanged(task, again(task, kind))
        assert is_unchanged(task, again(task, kind, expected_version=1))


def test_a_step_repeated_after_a_rejected_proof_is_still_unchanged() -> None:
    task = story_to("proof_pending").tell("reject_proof")
    assert is_unchanged(task, again(task, "arrive"))


def test_a_step_of_an_earlier_holding_does_not_count_in_the_next_one() -> None:
    story = story_to("in_progress")
    story.tell("release")
    story.tell("assign")
    assert story.tell("accept").state == "accepted"
    assert story.tell("start_travel").state == "en_route"


def test_the_same_manifest_while_pending_is_unchanged() -> None:
    task = walk_to("proof_pending")
    assert is_unchanged(task, again(task, "submit_proof"))
    by_id = {"manifest": None, "content_hash": None, "manifest_id": MANIFEST_ID}
    assert is_unchanged(task, again(task, "submit_proof", **by_id))


def test_another_manifest_while_one_is_pending_is_no_repeat() -> None:
    task = walk_to("proof_pending")
    other = manifest_fields(make_manifest(manifest_id="manifest-2"))
    decision = again(task, "submit_proof", **other)
    assert isinstance(decision, Conflict)
    assert decision.code == "state_not_allowed"


def test_the_same_manifest_after_its_rejection_is_decided_and_no_repeat() -> None:
    task = story_to("proof_pending").tell("reject_proof")
    decision = again(task, "submit_proof")
    assert decision == Conflict(
        "manifest_decided", {"manifest_id": MANIFEST_ID, "manifest_status": "rejected"}
    )


@pytest.mark.parametrize("last", ["approve_proof", "cancel"])
def test_the_same_manifest_is_no_repeat_once_it_is_no_longer_pending(last: str) -> None:
    task = story_to("proof_pending").tell(last)
    decision = again(task, "submit_proof")
    assert isinstance(decision, Conflict)
    assert (decision.code, decision.annotations) == ("state_not_allowed", ())


@pytest.mark.parametrize("kind", ["approve_proof", "reject_proof"])
def test_the_same_decision_by_the_same_supervisor_is_unchanged(kind: str) -> None:
    task = story_to("proof_pending").tell(kind)
    assert is_unchanged(task, again(task, kind))
    assert is_unchanged(task, again(task, kind, expected_version=1))


@pytest.mark.parametrize("kind", ["approve_proof", "reject_proof"])
def test_the_same_decision_by_another_supervisor_is_no_repeat(kind: str) -> None:
    task = story_to("proof_pending").tell(kind)
    decision = again(task, kind, actor=make_actor(Role.SUPERVISOR, OTHER_SUPERVISOR))
    assert isinstance(decision, Conflict)
    assert decision.code == "state_not_allowed"


def test_the_other_decision_by_the_same_supervisor_is_no_repeat() -> None:
    task = story_to("proof_pending").tell("reject_proof")
    decision = again(task, "approve_proof")
    assert isinstance(decision, Conflict)
    assert decision.code == "state_not_allowed"


def test_a_manifest_that_waits_for_the_office_is_handed_over_once() -> None:
    task = walk_to("in_progress", hand_over=True)
    manifest = manifest_fields(make_manifest(manifest_id=HANDED_OVER_ID))
    former = make_actor(principal_id=FORMER)
    assert is_unchanged(task, again(task, "hand_over", actor=former, **manifest))


def test_a_manifest_that_was_submitted_need_not_be_handed_over() -> None:
    task = walk_to("proof_pending")
    assert is_unchanged(task, again(task, "hand_over"))


def test_a_dismissed_hand_over_is_not_opened_again() -> None:
    story = story_to("in_progress", hand_over=True)
    task = story.tell("dismiss_handover", manifest_id=HANDED_OVER_ID)
    manifest = manifest_fields(make_manifest(manifest_id=HANDED_OVER_ID))
    decision = again(task, "hand_over", actor=make_actor(principal_id=FORMER), **manifest)
    assert decision == Conflict(
        "manifest_decided", {"manifest_id": HANDED_OVER_ID, "manifest_status": "dismissed"}
    )


def test_a_creation_with_the_same_content_is_unchanged_in_every_state() -> None:
    created = make_command("create_task", command_id="story-1")
    for state in ("unassigned", "completed", "cancelled"):
        task = walk_to(state)
        decision = decide(task, created, fingerprint=fingerprint_of(created))
        assert is_unchanged(task, decision)


def test_a_creation_with_other_content_names_the_task_that_exists() -> None:
    task = walk_to("assigned")
    decision = decide(task, make_command("create_task", priority=9))
    assert decision == Conflict(
        "external_id_conflict",
        {
            "aggregate_id": task.task_id,
            "source": task.source,
            "external_id": task.external_id,
            "version": task.version,
            "state": "assigned",
        },
    )


@pytest.mark.parametrize("kind", ["assign", "decline", "release", "amend", "cancel"])
def test_a_command_without_a_repeat_rule_is_never_unchanged(kind: str) -> None:
    state = {"assign": "unassigned", "cancel": "accepted"}.get(kind, "accepted")
    story = story_to(state)
    before = story.state
    task = story.tell(kind)
    again_stale = again(task, kind, expected_version=before.version)
    assert isinstance(again_stale, Conflict)
    assert again_stale.code == "version_conflict"


def test_what_somebody_else_has_done_is_no_repeat() -> None:
    task = walk_to("en_route")
    for principal_id in (FORMER, STRANGER):
        decision = again(task, "accept", actor=make_actor(principal_id=principal_id))
        assert not isinstance(decision, Unchanged)
    assert task.assignee_id == ASSIGNEE
