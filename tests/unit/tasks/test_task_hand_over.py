"""Work done offline on a task that was lost meanwhile is handed over and never moves the task."""

from typing import Any

import pytest

from support.commands import (
    ASSIGNEE,
    DRAWING,
    FORMER,
    PHOTO,
    STRANGER,
    make_actor,
    make_command,
    make_manifest,
    manifest_fields,
)
from support.contexts import Story, decide, events_of, refer_to, story_to, walk_to
from workmate_shared.kernel.decision import Conflict, Decision, Rejection, Retry
from workmate_shared.kernel.lifecycle import Blob, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.events import EvidenceHandedOver, EvidenceStored
from workmate_shared.tasks.task import Task, evolve

OFFLINE = make_manifest(manifest_id="manifest-offline")
CARRIED = manifest_fields(OFFLINE)


def submit(story: Story, expected_version: int, facts: Any = None, **fields: Any) -> Decision:
    """Let a worker submit, long after the version he saw, what he gathered offline."""
    given = {"actor": make_actor(), "expected_version": expected_version} | CARRIED | fields
    since = refer_to(story.events[expected_version:])
    return decide(
        story.state, make_command("submit_proof", **given), **{"since": since} | (facts or {})
    )


def assert_handed_over(state: Task, decision: Decision, code: str) -> None:
    assert isinstance(decision, Conflict | Rejection)
    assert decision.code == code
    (event,) = decision.annotations
    assert isinstance(event, EvidenceHandedOver)
    assert (event.because, event.manifest_id, event.author_id) == (
        code,
        OFFLINE.manifest_id,
        event.actor.id,
    )
    assert {"manifest": event.manifest, "content_hash": event.content_hash} == CARRIED
    after = evolve(state, event)
    assert after.known_manifest(OFFLINE.manifest_id).status == "handed_over"
    assert (after.state, after.assignee_id) == (state.state, state.assignee_id)
    assert (after.version, after.changed_version) == (state.version + 1, state.changed_version)


@pytest.mark.parametrize("lost_by", ["release", "reassign", "cancel"])
def test_what_was_gathered_while_the_task_was_lost_is_handed_over(lost_by: str) -> None:
    story = story_to("in_progress")
    seen = story.state.version
    match lost_by:
        case "release":
            story.tell("release")
        case "reassign":
            story.tell("release")
            story.tell("assign", worker_id=STRANGER)
        case "cancel":
            story.tell("cancel")
    assert_handed_over(story.state, submit(story, seen), "version_conflict")


def test_what_completed_meanwhile_without_this_proof_hands_it_over() -> None:
    story = story_to("in_progress", hand_over=True)
    seen = story.state.version
    story.tell("submit_proof", actor=make_actor(Role.SUPERVISOR), override=ASSIGNEE)
    story.tell("approve_proof", actor=make_actor(Role.SUPERVISOR, "usr_other"))
    assert_handed_over(story.state, submit(story, seen), "version_conflict")


def test_an_assignee_whose_task_was_only_amended_keeps_the_proof_and_does_it_again() -> None:
    story = story_to("in_progress")
    seen = story.state.version
    story.tell("amend")
    decision = submit(story, seen)
    assert isinstance(decision, Conflict)
    assert (decision.code, decision.annotations) == ("version_conflict", ())


def test_a_broken_chain_hands_over_only_what_its_worker_no_longer_holds() -> None:
    for lost in (False, True):
        story = story_to("in_progress")
        if lost:
            story.tell("release")
        facts = {"after_outcome": "conflict"}
        decision = submit(story, story.state.version, facts, after="earlier")
        if lost:
            assert_handed_over(story.state, decision, "chain_broken")
        else:
            assert isinstance(decision, Conflict)
            assert (decision.code, decision.annotations) == ("chain_broken", ())


def test_a_former_holder_on_the_present_version_hands_over() -> None:
    story = story_to("in_progress")
    decision = submit(story, story.state.version, actor=make_actor(principal_id=FORMER))
    assert_handed_over(story.state, decision, "not_assignee")


@pytest.mark.parametrize("state", ["assigned", "accepted", "en_route", "proof_pending"])
def test_a_proof_that_its_state_does_not_allow_is_handed_over(state: str) -> None:
    story = story_to(state)
    assert_handed_over(story.state, submit(story, story.state.version), "state_not_allowed")


def test_a_proof_for_history_that_was_lost_is_handed_over() -> None:
    story = story_to("assigned")
    decision = submit(story, 99, lineage="lineage-before")
    assert_handed_over(story.state, decision, "history_lost")


def test_a_deactivated_worker_hands_over_what_he_held() -> None:
    story = story_to("in_progress")
    facts = {"actor": PrincipalFacts(False, frozenset({Role.WORKER}))}
    decision = submit(story, story.state.version, facts)
    assert_handed_over(story.state, decision, "actor_deactivated")


def test_a_revoked_device_hands_over_what_its_worker_held() -> None:
    story = story_to("in_progress")
    actor = make_actor(device_id="device-1")
    decision = submit(story, story.state.version, {"device_revoked": True}, actor=actor)
    assert_handed_over(story.state, decision, "device_revoked")


@pytest.mark.parametrize("facts", [{"actor": PrincipalFacts(False)}, {"device_revoked": True}])
def test_handing_over_is_refused_and_done_for_who_may_no_longer_act(facts: Any) -> None:
    story = story_to("in_progress")
    decision = decide(story.state, make_command("hand_over", **CARRIED), **facts)
    code = "device_revoked" if "device_revoked" in facts else "actor_deactivated"
    assert_handed_over(story.state, decision, code)


@pytest.mark.parametrize("facts", [{"actor": PrincipalFacts(False)}, {"device_revoked": True}])
def test_files_of_who_may_no_longer_act_are_stored_with_the_rejection(facts: Any) -> None:
    task = walk_to("in_progress")
    decision = decide(task, make_command("store_evidence"), **facts)
    assert isinstance(decision, Rejection)
    (event,) = decision.annotations
    assert isinstance(event, EvidenceStored)
    assert event.hashes == (PHOTO, DRAWING)
    assert event.aggregate_version == task.version + 1


def test_files_still_on_their_way_are_waited_for_even_from_who_may_no_longer_act() -> None:
    blobs = {PHOTO: Blob(verified=True, uploaded_by_actor=True)}
    facts = {"actor": PrincipalFacts(False), "blobs": blobs}
    decision = decide(walk_to("in_progress"), make_command("store_evidence"), **facts)
    assert decision == Retry("bytes_missing", {"hashes": [DRAWING]})


@pytest.mark.parametrize("kind", ["submit_proof", "hand_over", "store_evidence"])
@pytest.mark.parametrize("role", [Role.DISPATCHER, Role.SUPERVISOR, Role.SYSTEM])
def test_a_deactivated_actor_of_the_office_files_nothing(kind: str, role: Role) -> None:
    facts = {"actor": PrincipalFacts(False, frozenset({role}))}
    decision = decide(walk_to("in_progress"), make_command(kind, actor=make_actor(role)), **facts)
    assert isinstance(decision, Rejection)
    assert (decision.code, decision.annotations) == ("actor_deactivated", ())


@pytest.mark.parametrize("kind", ["submit_proof", "hand_over", "store_evidence"])
def test_somebody_who_never_held_the_task_files_nothing(kind: str) -> None:
    command = make_command(kind, actor=make_actor(principal_id=STRANGER))
    facts = {"actor": PrincipalFacts(False, frozenset({Role.WORKER}))}
    assert decide(walk_to("in_progress"), command, **facts) == Retry("not_found")


@pytest.mark.parametrize("kind", ["accept", "arrive", "decline", "observe"])
def test_a_lost_command_without_a_manifest_carries_nothing(kind: str) -> None:
    facts = {"actor": PrincipalFacts(False)}
    decision = decide(walk_to("in_progress"), make_command(kind), **facts)
    assert isinstance(decision, Rejection)
    assert decision.annotations == ()


@pytest.mark.parametrize("status", ["handed_over", "rejected", "submitted", "approved"])
def test_a_manifest_that_the_task_has_is_not_handed_over_again(status: str) -> None:
    story = story_to("in_progress")
    story.tell("hand_over" if status == "handed_over" else "submit_proof", **CARRIED)
    match status:
        case "rejected":
            story.tell("reject_proof", manifest_id=OFFLINE.manifest_id)
        case "approved":
            story.tell(
                "approve_proof", manifest_id=OFFLINE.manifest_id, facts={"manifest": OFFLINE}
            )
    facts = {"actor": PrincipalFacts(False, frozenset({Role.WORKER}))}
    decision = submit(story, story.state.version, facts)
    assert isinstance(decision, Rejection)
    assert (decision.code, decision.annotations) == ("actor_deactivated", ())


def test_a_take_over_that_is_refused_hands_nothing_over() -> None:
    story = story_to("accepted", hand_over=True)
    by_id = {"manifest": None, "content_hash": None, "manifest_id": "manifest-handed-over"}
    decision = decide(
        story.state,
        make_command("submit_proof", expected_version=story.state.version, **by_id),
    )
    assert isinstance(decision, Conflict)
    assert (decision.code, events_of(decision)) == ("state_not_allowed", ())


def test_a_hand_over_says_on_whose_behalf_nobody_acted() -> None:
    story = story_to("in_progress")
    decision = submit(story, story.state.version, actor=make_actor(principal_id=FORMER))
    (event,) = events_of(decision)
    assert (event.on_behalf_of, event.personal, event.position) == (None, None, None)
