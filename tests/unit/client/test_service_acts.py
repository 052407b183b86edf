"""Acts are decided here as the server decides them, saved before they are called done, done once."""

from pathlib import Path

import pytest

from support import commands as build
from support.laptop import TASK, Laptop, laptop
from workmate_client.service import acts, submission
from workmate_client.service.acts import ActRefusedError
from workmate_client.service.device import ServiceError
from workmate_client.service.possible import possible_actions
from workmate_client.service.submission import Travel
from workmate_shared.kernel.command import DeviceReading
from workmate_shared.tasks.values import Fix
from workmate_shared.wire.commitment import open_disclosure

PLACE = Fix(lat_e7=-338567000, lon_e7=1512093000, accuracy_m=5000, source="manual")


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile")


def test_an_offline_chain_builds_each_act_on_the_one_before_and_all_on_what_was_pulled(
    it: Laptop,
) -> None:
    pulled = it.story.state.version
    done = [
        acts.accept(it.device, TASK),
        acts.start_travel(it.device, TASK),
        acts.arrive(it.device, TASK, fix=PLACE),
        submission.submit_proof(it.device, TASK, incomplete=True),
    ]
    assert [act.state for act in done] == ["accepted", "en_route", "in_progress", "proof_pending"]
    queue = it.device.journal.pending()
    assert [c.expected_version for c in queue] == [pulled] * 4
    assert [c.after for c in queue] == [None, *(c.command_id for c in queue[:-1])]
    assert all(outcome.status == "committed" for outcome in it.answer_all())
    it.pull()
    assert acts.situation(it.device, TASK).task == it.story.state


def test_a_command_carries_the_workers_time_and_the_devices_readings(it: Laptop) -> None:
    it.device.journal.update_profile(last_server_time="2026-03-01T08:59:00.000Z")
    it.clock.sleep(2.5)
    acts.accept(it.device, TASK)
    command = it.device.journal.pending()[0].command()
    assert command.occurred_at == "2026-03-01T09:00:02.500+00:00"
    assert command.device == DeviceReading(
        device_seq=1,
        monotonic_ms=2500,
        boot_id="boot-of-the-test",
        last_server_time="2026-03-01T08:59:00.000Z",
    )
    assert command.actor.device_id == it.device.keys.device_id


def test_the_next_act_builds_on_what_was_answered_though_it_was_not_pulled(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    (outcome,) = it.answer_all()
    acts.start_travel(it.device, TASK)
    (second,) = it.device.journal.pending()
    assert (second.expected_version, second.after) == (outcome.version, None)
    assert it.answer(second).status == "committed"


def test_an_act_that_builds_on_a_pending_one_survives_its_answer(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    acts.start_travel(it.device, TASK)
    first, second = it.device.journal.pending()
    it.answer(first)
    found = acts.situation(it.device, TASK)
    assert found.task.state == "en_route"
    assert [act.status for act in found.acts] == ["committed", "committed"]
    assert it.answer(second).status == "committed"


def test_what_the_lifecycle_forbids_is_refused_with_its_code_and_leaves_no_trace(
    it: Laptop,
) -> None:
    with pytest.raises(ActRefusedError) as raised:
        acts.start_travel(it.device, TASK)
    assert raised.value.code == "state_not_allowed"
    assert "assigned" in raised.value.detail
    assert raised.value.todo
    assert it.device.journal.pending() == ()


def test_the_same_act_twice_is_done_once(it: Laptop) -> None:
    first = acts.accept(it.device, TASK)
    again = acts.accept(it.device, TASK)
    assert (again.already, again.state, again.command) == (True, "accepted", first.command)
    acts.start_travel(it.device, TASK)
    assert acts.accept(it.device, TASK).already
    assert len(it.device.journal.pending()) == 2


def test_a_task_never_heard_of_is_not_found(it: Laptop) -> None:
    with pytest.raises(ActRefusedError) as raised:
        acts.accept(it.device, "unheard-of")
    assert raised.value.code == "not_found"
    with pytest.raises(ServiceError) as unknown:
        _ = acts.situation(it.device, "unheard-of").task
    assert unknown.value.code == "not_found"


def test_a_job_that_went_to_somebody_else_can_only_be_told_about(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    it.answer_all()
    it.pull(removed="reassigned")
    with pytest.raises(ActRefusedError) as raised:
        acts.start_travel(it.device, TASK)
    assert raised.value.code == "not_assignee"
    assert submission.note(it.device, TASK, "the key is under the mat").command is not None


@pytest.mark.parametrize(("fix", "reason"), [(None, None), (PLACE, "indoors")])
def test_arriving_needs_a_position_or_the_reason_why_there_is_none(
    tmp_path: Path, fix: Fix | None, reason: str | None
) -> None:
    it = laptop(tmp_path / "profile", "en_route")
    with pytest.raises(ServiceError) as raised:
        acts.arrive(it.device, TASK, fix=fix, no_fix_reason=reason)
    assert raised.value.code == "arrival_needs_fix"


def test_a_position_travels_as_a_value_under_the_policys_class_and_not_in_signed_bytes(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile", "en_route")
    acts.arrive(it.device, TASK, fix=PLACE, evidence=(build.OTHER_FILE,))
    (queued,) = it.device.journal.pending()
    command = queued.command()
    assert command.position is not None
    disclosure = queued.parts.disclosures[command.position]
    assert disclosure.retention_class == "operational_90d"
    assert b"1512093000" in open_disclosure(command.position, disclosure)
    assert b"1512093000" not in queued.parts.payload
    assert it.answer(queued).status == "committed"


def test_two_equal_values_leave_under_two_salts(it: Laptop) -> None:
    for _ in range(2):
        submission.note(it.device, TASK, "the same words")
    first, second = (c.command().personal for c in it.device.journal.pending())
    assert first != second


def test_a_note_builds_on_nothing_so_that_nothing_can_take_it_along(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    submission.note(it.device, TASK, "no light in the hall")
    note = it.device.journal.pending()[1]
    assert (note.after, note.expected_version) == (None, None)
    acts.start_travel(it.device, TASK)
    assert it.device.journal.pending()[2].after == it.device.journal.pending()[0].command_id
    it.story.tell("amend")
    assert [outcome.status for outcome in it.answer_all()] == ["conflict", "committed", "conflict"]


def test_declining_keeps_a_reason_and_gives_the_job_back(it: Laptop) -> None:
    done = acts.decline(it.device, TASK, "unsafe", "the dog is loose")
    assert done.state == "unassigned"
    (outcome,) = it.answer_all()
    assert outcome.status == "committed"


def test_a_value_that_breaks_its_rule_is_refused_before_it_is_signed(it: Laptop) -> None:
    with pytest.raises(ServiceError) as raised:
        acts.decline(it.device, TASK, "other", "   ")
    assert raised.value.code == "invalid_command"
    assert "$.personal.reason" in raised.value.detail
    assert it.device.journal.pending() == ()


def test_an_arrival_is_told_with_readings_and_a_wrong_time_is_refused(it: Laptop) -> None:
    travel = Travel(arrive_at="2026-03-01T15:00:00+05:30", fix=PLACE, deviation_m=850)
    submission.tell_arrival(it.device, TASK, travel)
    (queued,) = it.device.journal.pending()
    assert [str(r.__struct_config__.tag) for r in queued.command().readings] == [  # type: ignore[attr-defined]
        "eta",
        "route_deviation",
        "position",
    ]
    assert it.answer(queued).status == "committed"
    with pytest.raises(ServiceError) as raised:
        submission.tell_arrival(it.device, TASK, Travel(arrive_at="15:00"))
    assert raised.value.code == "time_invalid"


@pytest.mark.parametrize(
    ("state", "allowed", "already"),
    [
        ("assigned", {"accept", "decline", "hand_over", "observe"}, set()),
        ("accepted", {"start_travel", "decline", "hand_over", "observe"}, {"accept"}),
        ("en_route", {"arrive", "decline", "hand_over", "observe"}, {"accept", "start_travel"}),
        (
            "in_progress",
            {"submit_proof", "decline", "hand_over", "observe"},
            {"accept", "start_travel", "arrive"},
        ),
        ("completed", {"hand_over", "observe"}, {"accept", "start_travel", "arrive"}),
        ("cancelled", {"hand_over", "observe"}, {"accept", "start_travel", "arrive"}),
    ],
)
def test_each_action_is_allowed_done_or_refused_with_a_reason(
    tmp_path: Path, state: str, allowed: set[str], already: set[str]
) -> None:
    it = laptop(tmp_path / "profile", state)
    actions = possible_actions(acts.situation(it.device, TASK), it.device)
    assert {action.name for action in actions if action.allowed} == allowed
    assert {action.name for action in actions if action.already} == already
    refused = [action for action in actions if not action.allowed and not action.already]
    assert all(action.code and action.reason for action in refused)
