"""A task is its events: what they make of it, who hears of them, and what its readers are shown."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from support.commands import (
    ASSIGNEE,
    DISCLOSURES,
    FORMER,
    MANIFEST_ID,
    PERSONAL,
    SITE,
    STRANGER,
    disclose,
)
from support.contexts import HANDED_OVER_ID, story_to, walk_to
from workmate_shared.tasks.events import TaskEvent
from workmate_shared.tasks.feed import OFFICE, FeedEntry, feed_entries, worker_audience
from workmate_shared.tasks.table import STATES, TASK_TABLE
from workmate_shared.tasks.task import _CHANGES, Task, evolve
from workmate_shared.tasks.view import former_view, project_task


def test_every_event_changes_a_task_in_a_way_that_is_stated() -> None:
    others = {kind for kind in TaskEvent.__args__ if kind not in _CHANGES}
    assert [kind.__name__ for kind in others] == ["TaskCreated"]


def test_every_row_writes_an_event_that_exists() -> None:
    names = {str(kind.__struct_config__.tag) for kind in TaskEvent.__args__}
    assert {row.event for row in TASK_TABLE.rows} == names


def test_the_table_asks_for_states_and_results_that_exist() -> None:
    for row in TASK_TABLE.rows:
        assert row.allowed_from <= set(STATES)
        assert row.result is None or row.result in STATES
        assert not (row.annotates and row.result)
    with pytest.raises(KeyError):
        TASK_TABLE.row("teleport")


@pytest.mark.parametrize("state", STATES)
def test_a_task_is_the_same_projected_from_nothing(state: str) -> None:
    story = story_to(state, hand_over=True)
    task: Task | None = None
    for event in story.events:
        task = evolve(task, event)
    assert task == story.state


@pytest.mark.parametrize("state", STATES)
def test_a_task_comes_back_from_its_stored_form(state: str) -> None:
    task = walk_to(state, hand_over=True)
    assert msgspec.json.decode(msgspec.json.encode(task), type=Task) == task


def test_no_stream_begins_with_anything_but_the_creation() -> None:
    for event in story_to("completed", hand_over=True).events[1:]:
        with pytest.raises(ValueError, match="cannot begin a task"):
            evolve(None, event)


def test_an_event_about_a_proof_that_the_task_lacks_is_a_fault_of_the_log() -> None:
    completed = story_to("completed").events[-1]
    with pytest.raises(KeyError):
        evolve(walk_to("in_progress"), completed)


def test_a_task_remembers_when_it_came_into_its_state() -> None:
    story = story_to("assigned")
    entered = story.state.state_entered_at
    later = {"now": "2026-03-01T10:00:00.000Z"}
    for kind in ("observe", "amend", "hand_over"):
        story.tell(kind, facts=later)
        assert story.state.state_entered_at == entered
    story.tell("accept", facts=later)
    assert story.state.state_entered_at == later["now"]


def test_a_change_is_told_to_the_office_and_to_who_holds_the_task() -> None:
    assert feed_entries(None, walk_to("unassigned")) == (FeedEntry(OFFICE),)
    accepted, en_route = walk_to("accepted"), walk_to("en_route")
    assert feed_entries(accepted, en_route) == (
        FeedEntry(OFFICE),
        FeedEntry(worker_audience(ASSIGNEE)),
    )


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        ("release", {}, "released"),
        ("decline", {}, "released"),
    ],
)
def test_who_loses_a_task_is_told_why_it_left(kind: str, fields: dict[str, Any], why: str) -> None:
    story = story_to("accepted")
    before = story.state
    after = story.tell(kind, **fields)
    assert feed_entries(before, after) == (
        FeedEntry(OFFICE),
        FeedEntry(worker_audience(ASSIGNEE), why),
    )


def test_a_reassigned_task_comes_to_one_worker_and_leaves_the_other() -> None:
    story = story_to("assigned")
    before = story.state
    after = story.tell("assign", worker_id=STRANGER)
    assert feed_entries(before, after) == (
        FeedEntry(OFFICE),
        FeedEntry(worker_audience(STRANGER)),
        FeedEntry(worker_audience(ASSIGNEE), "reassigned"),
    )


def test_a_cancelled_task_stays_with_who_held_it() -> None:
    story = story_to("accepted")
    before = story.state
    audiences = feed_entries(before, story.tell("cancel"))
    assert audiences[1] == FeedEntry(worker_audience(ASSIGNEE))


def open_value(commitment: str) -> Mapping[str, Any] | None:
    disclosure = DISCLOSURES.get(commitment)
    value: Mapping[str, Any] | None = msgspec.json.decode(disclosure.value) if disclosure else None
    return value


def test_a_reader_is_shown_the_values_that_can_be_opened() -> None:
    view = project_task(walk_to("assigned"), open_value)
    assert view.personal == PERSONAL["create_task"]
    assert view.position == SITE
    assert view.withheld == ()
    assert (view.state, view.assignee_id, view.priority) == ("assigned", ASSIGNEE, 2)


def test_a_value_whose_disclosure_is_gone_is_null_and_named() -> None:
    view = project_task(walk_to("assigned"), lambda _: None)
    assert (view.personal, view.position) == (None, None)
    assert view.withheld == ("personal", "position")


def test_a_position_is_withheld_from_who_states_no_purpose() -> None:
    view = project_task(walk_to("assigned"), open_value, with_position=False)
    assert (view.position, view.withheld) == (None, ("position",))
    assert view.personal == PERSONAL["create_task"]


def test_what_is_left_of_amended_values_is_shown_with_the_loss_named() -> None:
    gone = disclose({"address": "Kurze Gasse 2"}, salt=9)[0]
    task = story_to("assigned").tell("amend", personal=gone)
    view = project_task(task, open_value)
    assert view.personal == PERSONAL["create_task"]
    assert view.withheld == ("personal",)


def test_a_task_without_values_withholds_none() -> None:
    task = walk_to("assigned", personal=None, position=None)
    view = project_task(task, open_value)
    assert (view.personal, view.position, view.withheld) == (None, None, ())


def test_a_former_holder_sees_state_version_holder_and_since_when_and_no_more() -> None:
    task = walk_to("en_route", hand_over=True)
    assert task.holds_or_held(FORMER)
    assert msgspec.to_builtins(former_view(task)) == {
        "task_id": task.task_id,
        "state": "en_route",
        "version": task.version,
        "assignee_id": ASSIGNEE,
        "state_entered_at": task.state_entered_at,
    }


def test_a_manifest_of_a_task_is_found_by_its_id() -> None:
    task = walk_to("proof_pending", hand_over=True)
    found = {name: task.known_manifest(name).status for name in (MANIFEST_ID, HANDED_OVER_ID)}
    assert found == {MANIFEST_ID: "submitted", HANDED_OVER_ID: "handed_over"}
    assert task.manifest("manifest-9") is None
    assert task.manifest(None) is None
