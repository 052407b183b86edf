"""A supervisor may act for the assignee, or for the author of what was handed over; nobody else."""

from typing import Any

import pytest

from support.commands import (
    ASSIGNEE,
    FORMER,
    OTHER_SUPERVISOR,
    OVERRIDE_REASON,
    STRANGER,
    SUPERVISOR,
    disclose,
    make_actor,
    make_command,
    make_manifest,
    manifest_fields,
)
from support.contexts import HANDED_OVER_ID, decide, story_to, walk_to
from workmate_shared.kernel.decision import Conflict, Rejection
from workmate_shared.kernel.table import Role

SVEN = make_actor(Role.SUPERVISOR, SUPERVISOR)
BY_ID: dict[str, Any] = {
    "manifest": None,
    "content_hash": None,
    "manifest_id": HANDED_OVER_ID,
}


@pytest.mark.parametrize(
    ("state", "kind", "reached"),
    [
        ("assigned", "accept", "accepted"),
        ("accepted", "start_travel", "en_route"),
        ("en_route", "arrive", "in_progress"),
        ("in_progress", "submit_proof", "proof_pending"),
        ("in_progress", "decline", "unassigned"),
    ],
)
def test_the_event_records_who_acted_for_whom_and_why(state: str, kind: str, reached: str) -> None:
    story = story_to(state)
    task = story.tell(kind, actor=SVEN, override=ASSIGNEE)
    event = story.events[-1]
    assert task.state == reached
    assert (event.actor, event.on_behalf_of) == (SVEN, ASSIGNEE)
    assert event.personal is not None
    if kind != "decline":
        assert event.personal == disclose(OVERRIDE_REASON)[0]


@pytest.mark.parametrize("wanted", [FORMER, STRANGER, SUPERVISOR])
def test_an_override_names_the_present_assignee(wanted: str) -> None:
    task = walk_to("assigned")
    command = make_command("accept", actor=SVEN, override=wanted, expected_version=task.version)
    assert decide(task, command) == Rejection("override_invalid", {"on_behalf_of": wanted})


def test_a_supervisor_without_an_override_is_not_the_assignee() -> None:
    task = walk_to("assigned")
    command = make_command("accept", actor=SVEN, expected_version=task.version)
    details = {"role": "supervisor", "command": "accept"}
    assert decide(task, command) == Rejection("role_not_allowed", details)


def test_what_is_submitted_for_the_assignee_is_the_assignees_proof() -> None:
    task = story_to("in_progress").tell("submit_proof", actor=SVEN, override=ASSIGNEE)
    record = task.known_manifest(task.current_manifest_id)
    assert (record.author_id, record.submitted_by) == (ASSIGNEE, SUPERVISOR)
    assert record.on_behalf_of == ASSIGNEE


def test_a_supervisor_takes_a_hand_over_over_on_behalf_of_its_author() -> None:
    story = story_to("in_progress", hand_over=True)
    task = story.tell("submit_proof", actor=SVEN, override=FORMER, **BY_ID)
    event: Any = story.events[-1]
    assert (event.manifest_id, event.author_id, event.manifest) == (HANDED_OVER_ID, FORMER, None)
    record = task.known_manifest(HANDED_OVER_ID)
    assert (task.state, task.current_manifest_id) == ("proof_pending", HANDED_OVER_ID)
    assert (record.status, record.submitted_by, record.on_behalf_of) == (
        "submitted",
        SUPERVISOR,
        FORMER,
    )


@pytest.mark.parametrize("wanted", [ASSIGNEE, STRANGER, SUPERVISOR])
def test_a_hand_over_is_taken_over_for_nobody_but_its_author(wanted: str) -> None:
    task = walk_to("in_progress", hand_over=True)
    command = make_command(
        "submit_proof", actor=SVEN, override=wanted, expected_version=task.version, **BY_ID
    )
    assert decide(task, command) == Rejection("override_invalid", {"on_behalf_of": wanted})


@pytest.mark.parametrize("approver", [SUPERVISOR, FORMER])
def test_neither_who_took_it_over_nor_its_author_approves_a_hand_over(approver: str) -> None:
    story = story_to("in_progress", hand_over=True)
    task = story.tell("submit_proof", actor=SVEN, override=FORMER, **BY_ID)
    command = make_command(
        "approve_proof",
        actor=make_actor(Role.SUPERVISOR, approver),
        manifest_id=HANDED_OVER_ID,
        expected_version=task.version,
    )
    details = {"actor": approver, "manifest_id": HANDED_OVER_ID}
    assert decide(task, command) == Rejection("self_approval", details)


def test_a_third_person_approves_what_was_taken_over() -> None:
    story = story_to("in_progress", hand_over=True)
    story.tell("submit_proof", actor=SVEN, override=FORMER, **BY_ID)
    third = make_actor(Role.SUPERVISOR, OTHER_SUPERVISOR)
    assert story.tell("approve_proof", actor=third, manifest_id=HANDED_OVER_ID).state == "completed"


@pytest.mark.parametrize("approver", [SUPERVISOR, ASSIGNEE])
def test_neither_who_submitted_nor_for_whom_approves_a_proof(approver: str) -> None:
    task = story_to("in_progress").tell("submit_proof", actor=SVEN, override=ASSIGNEE)
    actor = make_actor(Role.SUPERVISOR, approver)
    command = make_command("approve_proof", actor=actor, expected_version=task.version)
    decision = decide(task, command)
    assert isinstance(decision, Rejection)
    assert decision.code == "self_approval"


def test_the_author_of_a_hand_over_stays_its_author_when_the_assignee_submits_it() -> None:
    carried = manifest_fields(make_manifest(manifest_id=HANDED_OVER_ID))
    for fields in (BY_ID, carried):
        story = story_to("in_progress", hand_over=True)
        task = story.tell("submit_proof", **fields)
        event: Any = story.events[-1]
        record = task.known_manifest(HANDED_OVER_ID)
        assert event.author_id == record.author_id == FORMER
        assert record.submitted_by == ASSIGNEE


def test_what_was_taken_over_cannot_be_taken_over_again() -> None:
    story = story_to("in_progress", hand_over=True)
    story.tell("submit_proof", actor=SVEN, override=FORMER, **BY_ID)
    task = story.tell("reject_proof", manifest_id=HANDED_OVER_ID)
    command = make_command(
        "submit_proof", actor=SVEN, override=FORMER, expected_version=task.version, **BY_ID
    )
    details = {"manifest_id": HANDED_OVER_ID, "manifest_status": "rejected"}
    assert decide(task, command) == Conflict("manifest_decided", details)
