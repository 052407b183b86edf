"""What a device predicts is what the server decides, as long as the server knows no more."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from support.laptop import TASK, Laptop, laptop
from workmate_client.service import acts, submission
from workmate_client.service.acts import ActRefusedError, Done
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.jobs import list_jobs, show_job
from workmate_shared.tasks.commands import Window
from workmate_shared.wire.messages import Change, Pull

DO: dict[str, Callable[[Device], Done]] = {
    "accept": lambda d: acts.accept(d, TASK),
    "start_travel": lambda d: acts.start_travel(d, TASK),
    "arrive": lambda d: acts.arrive(d, TASK, no_fix_reason="indoors"),
    "decline": lambda d: acts.decline(d, TASK, "other", "why not"),
    "submit_proof": lambda d: submission.submit_proof(d, TASK, incomplete=True),
    "note": lambda d: submission.note(d, TASK, "seen"),
}


def attempt(it: Laptop, name: str) -> Done | None:
    try:
        return DO[name](it.device)
    except ActRefusedError:
        return None


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    script=st.lists(st.sampled_from([*DO, "answer", "answer one", "pull"]), max_size=12),
)
def test_every_act_that_was_allowed_offline_is_committed_when_nobody_else_acted(
    tmp_path_factory: pytest.TempPathFactory, script: list[str]
) -> None:
    it = laptop(tmp_path_factory.mktemp("laptop") / "profile")
    for step in script:
        if step == "pull":
            it.pull()
        elif step == "answer":
            it.answer_all()
        elif step == "answer one":
            for command in it.device.journal.pending()[:1]:
                it.answer(command)
        else:
            attempt(it, step)
    expected = acts.situation(it.device, TASK)
    it.answer_all()
    statuses = {command.status for command in it.device.journal.commands()}
    assert statuses <= {"committed"}
    assert it.device.journal.conservation().holds
    state = it.story.state
    told = acts.situation(it.device, TASK)
    it.pull()
    pulled = acts.situation(it.device, TASK)
    for found in (expected, told, pulled):
        assert (found.task.state, found.task.assignee_id, found.task.version) == (
            state.state,
            state.assignee_id,
            state.version,
        )
    assert pulled.task == state
    it.device.close()


def test_after_a_pull_that_changes_everything_pending_acts_show_what_will_become_of_them(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile")
    acts.accept(it.device, TASK)
    acts.start_travel(it.device, TASK)
    it.story.tell("amend")
    it.pull()
    view = show_job(it.device, TASK)
    assert (view.task.state, view.pulled_state) == ("assigned", "assigned")
    assert [line.status for line in view.history] == ["pending", "pending"]
    assert "builds on version 5" in (view.history[0].sentence or "")
    assert "ended as conflict" in (view.history[1].sentence or "")
    found = acts.situation(it.device, TASK)
    assert [act.status for act in found.acts] == ["conflict", "conflict"]
    assert [o.status for o in it.answer_all()] == ["conflict", "conflict"]


def test_an_annotation_of_others_makes_no_pending_act_stale(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile")
    acts.accept(it.device, TASK)
    it.story.tell("observe")
    it.pull()
    assert [act.status for act in acts.situation(it.device, TASK).acts] == ["committed"]
    assert [o.status for o in it.answer_all()] == ["committed"]


def test_the_list_shows_where_a_job_stands_here_with_its_values_and_what_is_unsent(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile")
    acts.accept(it.device, TASK)
    (line,) = list_jobs(it.device)
    assert (line.state, line.unsent, line.needs_decision) == ("accepted", 1, 0)
    assert (line.client, line.site_name) == ("Frau Müller", "Depot 7")
    assert line.window_start == "2026-03-01T08:00:00+01:00"
    it.answer_all()
    it.pull(removed="released")
    assert list_jobs(it.device) == ()
    (gone,) = list_jobs(it.device, include_gone=True)
    assert (gone.removed, gone.client) == ("released", None)


def test_jobs_are_listed_by_the_moment_of_their_window_whatever_zone_it_is_written_in(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile")
    starts = {
        "tokyo": "2026-03-01T16:00:00+09:00",
        "berlin": "2026-03-01T08:30:00+01:00",
        "london": "2026-03-01T06:45:00Z",
    }
    end = "2026-03-02T00:00:00Z"
    changes = tuple(
        Change(
            kind="task",
            id=name,
            seq=2,
            task=replace(it.story.state, task_id=name, window=Window(start, end)),
        )
        for name, start in starts.items()
    )
    it.device.replica.apply_page(Pull(changes=changes, since="1", cursor="2"))
    listed = [line.task_id for line in list_jobs(it.device) if line.task_id in starts]
    assert listed == ["london", "tokyo", "berlin"]


def test_a_job_that_is_gone_stays_listed_while_something_of_it_is_undecided(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile")
    acts.accept(it.device, TASK)
    it.story.tell("amend")
    it.answer_all()
    it.pull(removed="reassigned")
    (line,) = list_jobs(it.device)
    assert (line.removed, line.needs_decision) == ("reassigned", 1)


def test_a_job_is_shown_with_actions_history_and_its_site(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile")
    acts.accept(it.device, TASK)
    view = show_job(it.device, TASK)
    assert view.task.position is not None
    assert view.task.position["mappls_pin"] == "3F45CB"
    assert view.task.withheld == ()
    assert [(line.name, line.shown.words) for line in view.history] == [
        ("accept", "saved on this laptop")
    ]
    assert {action.name for action in view.actions if action.allowed} >= {"start_travel"}
    it.answer_all()
    (line,) = show_job(it.device, TASK).history
    assert line.shown.words == "verified (receipts held)"
    with pytest.raises(ServiceError):
        show_job(it.device, "unheard-of")


def test_a_value_that_does_not_open_its_commitment_is_withheld_and_never_shown(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile")
    forged = {
        name: type(value)(value.salt, value.retention_class, '{"client": "forged"}')
        for name, value in it.disclosures.items()
    }
    it.disclosures = forged
    it.pull()
    view = show_job(it.device, TASK)
    assert view.task.personal is None
    assert set(view.task.withheld) == {"personal", "position"}
