"""Each row of the table once: the event that it writes and the task that comes of it."""

from typing import Any

import pytest

from support.commands import (
    ANSWERS,
    ASSIGNEE,
    DEVICE,
    DISPATCHER,
    DRAWING,
    EXTERNAL_ID,
    FIX,
    FORMER,
    LINEAGE,
    MANIFEST_ID,
    NOW,
    OCCURRED_AT,
    OTHER_FILE,
    PERSONAL,
    PHOTO,
    SITE,
    SOURCE,
    STRANGER,
    SUPERVISOR,
    SYSTEM,
    TASK,
    TENANT,
    disclose,
    make_actor,
    make_command,
    make_manifest,
    make_policy,
    make_reading,
    manifest_fields,
)
from support.contexts import HANDED_OVER_ID, Story, decide, events_of, story_to, walk_to
from workmate_shared.kernel.decision import Committed, Rejection, Retry
from workmate_shared.kernel.ids import event_id_for
from workmate_shared.kernel.lifecycle import Blob, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.tasks import events as e
from workmate_shared.tasks.commands import RouteDeviation, SlaBreach, Window
from workmate_shared.tasks.policy import policy_version
from workmate_shared.tasks.task import Task


def tell_from(state: str, kind: str, **fields: Any) -> tuple[Task, Any]:
    """Let one command happen in a state; return the task after it and its event."""
    story = story_to(state, hand_over=True)
    story.tell(kind, **fields)
    return story.state, story.events[-1]


def test_an_event_says_who_did_what_when_and_to_which_version() -> None:
    task = walk_to("assigned")
    actor = make_actor(device_id=DEVICE)
    command = make_command("accept", actor=actor, expected_version=task.version)
    (event,) = events_of(decide(task, command))
    assert event == e.TaskAccepted(
        schema_version=1,
        event_id=event_id_for(TENANT, ASSIGNEE, "key-accept", 0),
        tenant_id=TENANT,
        aggregate_id=TASK,
        aggregate_version=task.version + 1,
        actor=actor,
        command_id="key-accept",
        occurred_at=OCCURRED_AT,
        recorded_at=NOW,
    )


def test_create_task_begins_an_unassigned_task_with_all_that_the_command_says() -> None:
    task, event = tell_from("unassigned", "amend")[0], story_to("unassigned").events[0]
    assert isinstance(event, e.TaskCreated)
    assert (event.aggregate_version, event.source, event.external_id) == (1, SOURCE, EXTERNAL_ID)
    assert event.proof_policy == make_policy()
    assert event.policy_version == policy_version(make_policy()) == task.policy_version
    assert event.personal == disclose(PERSONAL["create_task"])[0]
    assert event.position == disclose(SITE)[0] == task.position
    assert task.required_skills == ("electrical",)
    assert (task.task_id, task.tenant_id) == (TASK, TENANT)


def test_assign_gives_the_task_to_the_worker_and_commits_to_the_reason() -> None:
    task, event = tell_from("unassigned", "assign", worker_id=STRANGER)
    assert isinstance(event, e.TaskAssigned)
    assert event.personal == disclose(PERSONAL["assign"])[0]
    assert (task.state, task.assignee_id) == ("assigned", STRANGER)
    assert task.holders == (FORMER, STRANGER)


def test_an_assigned_task_can_be_assigned_to_somebody_else_who_starts_from_nothing() -> None:
    task, _ = tell_from("assigned", "assign", worker_id=STRANGER)
    assert (task.assignee_id, task.visited) == (STRANGER, ("assigned",))
    assert task.holds_or_held(ASSIGNEE)


def test_somebody_elses_holding_begins_when_the_task_was_given_to_them() -> None:
    story = story_to("assigned")
    later = "2026-03-01T10:00:00.000Z"
    story.tell("assign", worker_id=STRANGER, facts={"now": later})
    assert story.state.state_entered_at == later


def test_accept_moves_the_task_to_accepted() -> None:
    task, event = tell_from("assigned", "accept")
    assert isinstance(event, e.TaskAccepted)
    assert (task.state, task.assignee_id) == ("accepted", ASSIGNEE)


def test_decline_takes_the_task_from_its_assignee_and_says_why() -> None:
    task, event = tell_from("en_route", "decline", reason_code="unsafe")
    assert isinstance(event, e.TaskDeclined)
    assert (event.worker_id, event.reason_code) == (ASSIGNEE, "unsafe")
    assert event.personal == disclose(PERSONAL["decline"])[0]
    assert (task.state, task.assignee_id, task.visited) == ("unassigned", None, ())


def test_start_travel_moves_the_task_to_en_route() -> None:
    task, event = tell_from("accepted", "start_travel")
    assert isinstance(event, e.TaskEnRoute)
    assert task.state == "en_route"


def test_arrive_binds_the_fix_and_the_evidence_to_the_start_of_work() -> None:
    task, event = tell_from("en_route", "arrive")
    assert isinstance(event, e.TaskStarted)
    assert event.position == disclose(FIX)[0]
    assert (event.evidence, event.no_fix_reason) == ((OTHER_FILE,), None)
    assert task.state == "in_progress"


def test_arrive_without_a_fix_says_why_there_is_none() -> None:
    _, event = tell_from("en_route", "arrive", position=None, no_fix_reason="indoors")
    assert (event.position, event.no_fix_reason) == (None, "indoors")


def test_submit_proof_keeps_the_manifest_whole_and_makes_it_the_current_one() -> None:
    task, event = tell_from("in_progress", "submit_proof")
    assert isinstance(event, e.ProofSubmitted)
    carried = manifest_fields(make_manifest())
    assert {"manifest": event.manifest, "content_hash": event.content_hash} == carried
    assert (event.manifest_id, event.author_id) == (MANIFEST_ID, ASSIGNEE)
    assert (task.state, task.current_manifest_id) == ("proof_pending", MANIFEST_ID)
    record = task.known_manifest(MANIFEST_ID)
    assert (record.status, record.author_id, record.task_version) == ("submitted", ASSIGNEE, 5)
    assert (record.submitted_by, record.on_behalf_of) == (ASSIGNEE, None)
    assert record.submitted_at == OCCURRED_AT
    assert record.hashes == (PHOTO, DRAWING)
    assert record.commitments == make_manifest().commitments()


def test_approve_proof_completes_the_task_on_the_manifest_named() -> None:
    task, event = tell_from("proof_pending", "approve_proof")
    assert isinstance(event, e.TaskCompleted)
    record = task.known_manifest(MANIFEST_ID)
    assert (event.manifest_id, event.content_hash) == (MANIFEST_ID, record.content_hash)
    assert (task.state, record.status, record.decided_by) == ("completed", "approved", SUPERVISOR)


def test_the_system_approves_where_the_policy_says_automatic() -> None:
    policy = make_policy(validation="automatic")
    manifest = make_manifest(policy_version=policy_version(policy))
    story = story_to("in_progress", proof_policy=policy)
    story.tell("submit_proof", **manifest_fields(manifest))
    actor = make_actor(Role.SYSTEM)
    story.tell("approve_proof", actor=actor, facts={"manifest": manifest})
    assert story.state.state == "completed"
    assert story.state.known_manifest(MANIFEST_ID).decided_by == SYSTEM


def test_reject_proof_sends_the_task_back_to_work_and_keeps_what_was_rejected() -> None:
    task, event = tell_from("proof_pending", "reject_proof")
    assert isinstance(event, e.ProofRejected)
    record = task.known_manifest(MANIFEST_ID)
    assert (event.manifest_id, event.content_hash) == (MANIFEST_ID, record.content_hash)
    assert event.manifest_version == make_manifest().task_version
    assert event.personal == disclose(PERSONAL["reject_proof"])[0]
    assert (task.state, task.assignee_id) == ("in_progress", ASSIGNEE)
    assert (record.status, record.decided_by) == ("rejected", SUPERVISOR)
    assert record.reason == event.personal
    assert record.hashes == (PHOTO, DRAWING)


def test_release_takes_the_task_from_its_assignee_and_keeps_the_evidence() -> None:
    story = story_to("proof_pending")
    story.tell("reject_proof")
    task = story.tell("release")
    event = story.events[-1]
    assert isinstance(event, e.TaskReleased)
    assert (event.worker_id, event.actor.id) == (ASSIGNEE, DISPATCHER)
    assert (task.state, task.assignee_id) == ("unassigned", None)
    assert task.known_manifest(MANIFEST_ID).status == "rejected"


def test_amend_changes_what_is_present_and_nothing_else() -> None:
    before = walk_to("accepted", hand_over=True)
    window = Window("2026-03-02T08:00:00Z", "2026-03-02T09:00:00Z")
    personal = disclose({"client": None}, salt=7)[0]
    task, event = tell_from(
        "accepted", "amend", due_at=None, window=window, priority=0, personal=personal
    )
    assert isinstance(event, e.TaskAmended)
    assert (task.due_at, task.window, task.priority) == (None, window, 0)
    assert task.personal == (*before.personal, personal)
    assert (task.state, task.state_entered_at) == (before.state, before.state_entered_at)
    assert (task.required_skills, task.position) == (before.required_skills, before.position)
    assert task.policy_version == before.policy_version


def test_amending_the_proof_policy_changes_its_version_too() -> None:
    policy = make_policy(geofence_m=500)
    task, event = tell_from("accepted", "amend", proof_policy=policy)
    assert event.policy_version == task.policy_version == policy_version(policy)
    assert task.proof_policy == policy


def test_amending_the_position_replaces_it() -> None:
    position = disclose({"mappls_pin": "ABC123"}, salt=7)[0]
    task, _ = tell_from("accepted", "amend", position=position)
    assert task.position == position


def test_cancel_ends_the_task_and_keeps_who_held_it() -> None:
    task, event = tell_from("in_progress", "cancel")
    assert isinstance(event, e.TaskCancelled)
    assert (event.actor.id, event.personal) == (DISPATCHER, disclose(PERSONAL["cancel"])[0])
    assert (task.state, task.assignee_id) == ("cancelled", ASSIGNEE)


def test_observe_records_many_readings_at_once_and_moves_nothing() -> None:
    before = walk_to("completed", hand_over=True)
    readings = (RouteDeviation(at=OCCURRED_AT, metres=9), RouteDeviation(at=NOW, metres=0))
    task, event = tell_from("completed", "observe", readings=readings)
    assert isinstance(event, e.TaskObserved)
    assert event.readings == readings
    assert (task.version, task.changed_version) == (before.version + 1, before.changed_version)
    assert (task.state, task.visited) == (before.state, before.visited)


def test_the_system_alone_records_that_a_deadline_passed() -> None:
    readings = (SlaBreach(at=NOW, due_at="2026-03-01T08:30:00Z"),)
    _, event = tell_from("assigned", "observe", readings=readings, actor=make_actor(Role.SYSTEM))
    assert event.readings == readings


def test_store_evidence_records_the_files_that_are_held() -> None:
    task, event = tell_from("in_progress", "store_evidence", hashes=(PHOTO, OTHER_FILE))
    assert isinstance(event, e.EvidenceStored)
    assert event.hashes == (PHOTO, OTHER_FILE)
    assert task.state == "in_progress"


@pytest.mark.parametrize(
    "blob",
    [None, Blob(verified=False, uploaded_by_actor=True), Blob(verified=True)],
    ids=["not held", "not verified", "uploaded by another"],
)
def test_store_evidence_waits_for_files_verified_and_uploaded_by_this_actor(
    blob: Blob | None,
) -> None:
    held = Blob(verified=True, uploaded_by_actor=True)
    blobs = {PHOTO: held} if blob is None else {PHOTO: held, DRAWING: blob}
    command = make_command("store_evidence")
    decision = decide(walk_to("in_progress"), command, blobs=blobs)
    assert decision == Retry("bytes_missing", {"hashes": [DRAWING]})


def test_hand_over_files_the_manifest_for_the_office() -> None:
    other = make_manifest(manifest_id="manifest-2")
    task, event = tell_from("in_progress", "hand_over", **manifest_fields(other))
    assert isinstance(event, e.EvidenceHandedOver)
    assert (event.manifest_id, event.author_id, event.because) == ("manifest-2", ASSIGNEE, None)
    record = task.known_manifest("manifest-2")
    assert (record.status, record.author_id, record.submitted_by) == ("handed_over", ASSIGNEE, None)
    assert task.state == "in_progress"


def test_dismiss_handover_ends_what_waits_for_the_office() -> None:
    task, event = tell_from("in_progress", "dismiss_handover", manifest_id=HANDED_OVER_ID)
    assert isinstance(event, e.EvidenceDismissed)
    assert event.personal == disclose(PERSONAL["dismiss_handover"])[0]
    record = task.known_manifest(HANDED_OVER_ID)
    assert (record.status, record.decided_by, record.author_id) == ("dismissed", SUPERVISOR, FORMER)
    assert event.content_hash == record.content_hash


@pytest.mark.parametrize(
    ("facts", "reason", "missing"),
    [
        (None, "not active or unknown", ["electrical"]),
        (PrincipalFacts(False), "not active or unknown", ["electrical"]),
        (PrincipalFacts(True, frozenset({Role.EDITOR})), "not a worker", ["electrical"]),
        (PrincipalFacts(True, frozenset({Role.WORKER})), "lacks electrical", ["electrical"]),
    ],
)
def test_only_an_active_worker_with_every_skill_can_be_assigned(
    facts: PrincipalFacts | None, reason: str, missing: list[str]
) -> None:
    task = walk_to("unassigned")
    command = make_command("assign", expected_version=task.version)
    decision = decide(task, command, principals={ASSIGNEE: facts} if facts else {})
    details = {"worker_id": ASSIGNEE, "reason": reason, "missing": missing}
    assert decision == Rejection("worker_not_eligible", details)


def test_every_missing_skill_is_named() -> None:
    task = Story().tell("create_task", required_skills=("heights", "electrical", "gas"))
    command = make_command("assign", expected_version=task.version)
    decision = decide(task, command)
    assert isinstance(decision, Rejection)
    assert decision.details["missing"] == ["gas", "heights"]


def test_no_event_of_a_task_holds_a_personal_value() -> None:
    for event in story_to("completed", hand_over=True).events:
        text = repr(event)
        for values in (*PERSONAL.values(), ANSWERS["names"]):
            assert not any(value in text for value in values.values())


def test_a_device_whose_clock_contradicts_the_server_is_flagged_and_not_refused() -> None:
    task = walk_to("assigned")
    for occurred_at, heard, doubtful in (
        ("2026-03-01T09:05:00Z", None, False),
        ("2026-03-01T09:05:01Z", None, True),
        ("2026-03-01T08:00:00Z", "2026-03-01T08:05:00Z", False),
        ("2026-03-01T08:00:00Z", "2026-03-01T08:05:01Z", True),
        ("2020-01-01T00:00:00Z", None, False),
    ):
        command = make_command(
            "accept",
            expected_version=task.version,
            occurred_at=occurred_at,
            device=make_reading(last_server_time=heard),
        )
        decision = decide(task, command)
        assert isinstance(decision, Committed)
        assert decision.events[0].clock_doubtful is doubtful


def test_a_command_of_an_older_lineage_is_decided_like_any_other_while_it_is_not_ahead() -> None:
    task = walk_to("assigned")
    command = make_command("accept", expected_version=task.version, lineage="lineage-before")
    assert command.lineage != LINEAGE
    assert isinstance(decide(task, command), Committed)
