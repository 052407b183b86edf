"""Lanes keep their order, hold up nobody else, and media holds up nothing."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from workmate_client.sync.backoff import Link
from workmate_client.sync.plan import (
    EvidenceFile,
    Idle,
    OpenSession,
    PendingCommand,
    Pull,
    RepeatEnrolment,
    SendCommands,
    Situation,
    StoreEvidence,
    Upload,
    WaitUntil,
    next_action,
    next_batch,
    smaller_batch,
    stored_groups,
    upload_fault,
)
from workmate_shared.tasks.commands import EVIDENCE_MAX

NOW = 1_000_000.0
LONGEST = 4000.0


def command(name: str, lane: str = "a", **fields: Any) -> PendingCommand:
    given: dict[str, Any] = {"command_id": name, "aggregate_id": lane, "size_bytes": 100}
    return PendingCommand(**(given | fields))


def file(name: str, task: str = "a", **fields: Any) -> EvidenceFile:
    given: dict[str, Any] = {"size_bytes": 10, "named_by": "c1", "allowed": True}
    return EvidenceFile(task_id=task, hash=name, **(given | fields))


def situation(*pending: PendingCommand, **fields: Any) -> Situation:
    given: dict[str, Any] = {
        "now": NOW,
        "session_open": True,
        "commands_limit": 500,
        "request_bytes": 1 << 20,
        "longest_wait_seconds": LONGEST,
        "pending": pending,
    }
    return Situation(**(given | fields))


def test_everything_that_is_due_goes_in_one_request_in_the_order_of_the_device() -> None:
    queue = [command("1", "a"), command("2", "b"), command("3", "a", after="1")]
    assert next_action(situation(*queue)) == SendCommands(("1", "2", "3"))


def test_a_waiting_head_holds_its_own_lane_and_no_other() -> None:
    queue = [
        command("1", "a", not_before=NOW + 5, wait_code="not_found"),
        command("2", "b"),
        command("3", "a"),
    ]
    assert next_batch(situation(*queue)) == ("2",)


def test_a_store_evidence_that_waits_does_not_hold_up_work_on_its_task() -> None:
    queue = [
        command("1", "a", media=True, not_before=NOW + 5, wait_code="bytes_missing"),
        command("2", "a"),
    ]
    assert next_batch(situation(*queue)) == ("2",)


def test_what_builds_on_a_command_goes_after_it_in_the_same_request_or_not_at_all() -> None:
    queue = [command("1", "a", not_before=NOW + 5), command("2", "b", after="1")]
    assert next_batch(situation(*queue)) == ()
    assert next_batch(situation(command("1", "a"), queue[1])) == ("1", "2")


def test_what_was_blocked_goes_together_with_what_it_waits_for() -> None:
    blocked = command("2", "a", blocked_by="1", not_before=NOW + 60, wait_code="blocked_by")
    assert next_batch(situation(command("1", "a"), blocked)) == ("1", "2")
    assert next_batch(situation(blocked)) == ()


def test_a_time_that_no_wait_can_reach_was_set_before_the_clock_jumped() -> None:
    assert next_batch(situation(command("1", not_before=NOW + LONGEST + 1))) == ("1",)
    assert next_batch(situation(command("1", not_before=NOW + LONGEST))) == ()


def test_a_command_larger_than_a_request_goes_alone_for_the_server_to_judge() -> None:
    queue = [command("1", "a", size_bytes=5000), command("2", "b")]
    assert next_batch(situation(*queue, request_bytes=1000)) == ("1",)


def test_a_command_that_no_longer_fits_ends_its_lane_only() -> None:
    queue = [
        command("1", "a", size_bytes=600),
        command("2", "b", size_bytes=600),
        command("3", "b"),
        command("4", "c"),
    ]
    assert next_batch(situation(*queue, request_bytes=1000)) == ("1", "4")


def test_a_link_that_failed_is_left_alone_until_its_time() -> None:
    link = Link(3, "server_unreachable", NOW + 7)
    assert next_action(situation(command("1"), link=link)) == WaitUntil(
        NOW + 7, "server_unreachable"
    )
    assert next_action(situation(command("1"), link=replace(link, not_before=NOW))) == (
        SendCommands(("1",))
    )


def test_a_session_is_opened_only_for_work() -> None:
    assert next_action(situation(session_open=False)) == Idle()
    assert next_action(situation(session_open=False, pull_due=True)) == OpenSession()
    assert next_action(situation(command("1"), session_open=False)) == OpenSession()


def test_an_enrolment_goes_before_everything_needs_no_session_and_is_never_in_a_batch() -> None:
    queue = [command("1"), command("2", "worker", enrols=True)]
    assert next_action(situation(*queue, session_open=False)) == RepeatEnrolment("2")
    assert next_batch(situation(*queue)) == ("1",)
    waiting = replace(queue[1], not_before=NOW + 5)
    assert next_action(situation(queue[0], waiting)) == SendCommands(("1",))


def test_commands_go_before_pulls_and_pulls_before_media() -> None:
    everything: dict[str, Any] = {"pull_due": True, "files": [file("f")]}
    assert next_action(situation(command("1"), **everything)) == SendCommands(("1",))
    assert next_action(situation(**everything)) == Pull()
    assert next_action(situation(files=[file("f")])) == Upload("a", "f")


def test_while_commands_wait_media_and_pulls_go_on() -> None:
    waiting = command("1", not_before=NOW + 9, wait_code="too_large")
    assert next_action(situation(waiting, pull_due=True)) == Pull()
    assert next_action(situation(waiting, files=[file("f")])) == Upload("a", "f")
    assert next_action(situation(waiting)) == WaitUntil(NOW + 9, "too_large")


def test_the_earliest_wait_is_what_a_run_ends_with() -> None:
    waits = [command("1", "a", not_before=NOW + 9), command("2", "b", not_before=NOW + 3)]
    files = [file("f", not_before=NOW + 2, wait_code="upload_not_allowed")]
    assert next_action(situation(*waits, files=files)) == WaitUntil(NOW + 2, "upload_not_allowed")


def test_one_file_that_waits_holds_up_no_other() -> None:
    files = [file("f", not_before=NOW + 2), file("g")]
    assert next_action(situation(files=files)) == Upload("a", "g")


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, None),
        ({"allowed": False}, "command_unanswered"),
        ({"size_bytes": 101}, "too_large"),
        ({"size_bytes": 51}, "metered_link"),
    ],
)
def test_a_file_that_may_not_go_is_not_tried(fields: dict[str, Any], fault: str | None) -> None:
    found = situation(files=[file("f", **fields)], upload_bytes=100, link_bytes=50)
    assert upload_fault(found.files[0], found) == fault
    assert next_action(found) == (Idle() if fault else Upload("a", "f"))


def test_a_store_evidence_names_all_files_of_one_command_once_they_are_all_there() -> None:
    done = [file("f", uploaded=True), file("g", uploaded=True)]
    other = file("h", named_by="c2")
    assert list(stored_groups(situation(files=[*done, other]))) == [StoreEvidence("a", ("f", "g"))]
    assert not list(stored_groups(situation(files=[done[0], replace(done[1], uploaded=False)])))


def test_a_file_that_was_set_aside_or_is_too_large_holds_up_no_store_evidence() -> None:
    files = [
        file("f", uploaded=True),
        file("g", set_aside=True),
        file("h", size_bytes=1000),
        file("i", uploaded=True, announced=True),
    ]
    found = situation(files=files, upload_bytes=100)
    assert list(stored_groups(found)) == [StoreEvidence("a", ("f",))]


def test_a_store_evidence_names_no_more_files_than_a_command_may() -> None:
    files = [file(f"f{index}", uploaded=True) for index in range(EVIDENCE_MAX + 1)]
    (stored,) = stored_groups(situation(files=files))
    assert len(stored.hashes) == EVIDENCE_MAX


@dataclasses.dataclass(frozen=True)
class Queue:
    """A random queue with a few lanes, chains along them, waits and sizes."""

    pending: tuple[PendingCommand, ...]


@st.composite
def queues(draw: st.DrawFn) -> Queue:
    last: dict[str, str] = {}
    pending = []
    for number in range(draw(st.integers(0, 14))):
        lane = draw(st.sampled_from("abc"))
        chained = draw(st.booleans())
        pending.append(
            command(
                f"c{number}",
                lane,
                size_bytes=draw(st.integers(1, 400)),
                after=last.get(lane) if chained else None,
                not_before=draw(st.sampled_from([None, NOW - 1, NOW + 50])),
                wait_code="not_found",
            )
        )
        last[lane] = f"c{number}"
    return Queue(tuple(pending))


limits = st.tuples(st.integers(1, 8), st.integers(1, 1500))


@given(queues(), limits)
def test_no_lane_is_ever_reordered_or_overtaken(queue: Queue, limit: tuple[int, int]) -> None:
    found = situation(*queue.pending, commands_limit=limit[0], request_bytes=limit[1])
    batch = next_batch(found)
    for lane in "abc":
        names = [c.command_id for c in queue.pending if c.aggregate_id == lane]
        sent = [name for name in batch if name in names]
        assert sent == names[: len(sent)]


@given(queues(), limits)
def test_a_request_keeps_its_limits_and_never_comes_out_empty_while_a_head_is_due(
    queue: Queue, limit: tuple[int, int]
) -> None:
    found = situation(*queue.pending, commands_limit=limit[0], request_bytes=limit[1])
    batch = next_batch(found)
    sizes = {c.command_id: c.size_bytes for c in queue.pending}
    assert len(batch) <= limit[0]
    assert len(batch) <= 1 or sum(sizes[name] for name in batch) <= limit[1]
    heads = {c.aggregate_id: c for c in reversed(queue.pending)}
    assert bool(batch) == any(found.is_due(head.not_before) for head in heads.values())


@given(queues(), st.sampled_from("abc"))
def test_a_poisoned_lane_never_changes_what_the_other_lanes_send(
    queue: Queue, poisoned: str
) -> None:
    others = [c for c in queue.pending if c.aggregate_id != poisoned]
    with_it = [
        replace(c, not_before=NOW + 50) if c.aggregate_id == poisoned else c for c in queue.pending
    ]
    assert next_batch(situation(*with_it)) == next_batch(situation(*others))


@given(queues())
def test_sending_batch_after_batch_sends_every_command_whose_lane_is_free(queue: Queue) -> None:
    pending = [replace(c, not_before=None) for c in queue.pending]
    order: list[str] = []
    while pending:
        batch = next_batch(situation(*pending, commands_limit=3, request_bytes=500))
        assert batch
        order += batch
        pending = [c for c in pending if c.command_id not in batch]
    assert sorted(order) == sorted(c.command_id for c in queue.pending)


@given(st.integers(1, 500))
def test_halving_always_ends_at_a_single_command(size: int) -> None:
    steps = 0
    while (smaller := smaller_batch(size)) is not None:
        assert 1 <= smaller < size
        size, steps = smaller, steps + 1
    assert size == 1
    assert steps <= 9
