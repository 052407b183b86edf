"""Lost acts are shown with what happened, done again as one intentional act, or set aside."""

from pathlib import Path

import msgspec
import pytest

from support.commands import FORMER, make_actor
from support.laptop import TASK, Laptop, laptop
from support.pictures import picture
from workmate_client.journal.rows import QueuedCommand
from workmate_client.service import acts, conflicts, proof, submission
from workmate_client.service.acts import ActRefusedError
from workmate_client.service.device import ServiceError
from workmate_client.service.photos import add_photo
from workmate_client.service.redo import bring_back, redo, set_aside
from workmate_shared.kernel.command import Command
from workmate_shared.tasks.values import Fix
from workmate_shared.wire.commitment import open_disclosure

PLACE = Fix(lat_e7=405863974, lon_e7=-739325913, accuracy_m=9, source="gps")


def lost_chain(folder: Path) -> Laptop:
    """Four acts offline, with a photo, on a job that the office had amended meanwhile."""
    it = laptop(folder)
    acts.accept(it.device, TASK)
    it.clock.sleep(60)
    acts.start_travel(it.device, TASK)
    it.clock.sleep(60)
    acts.arrive(it.device, TASK, fix=PLACE)
    path = folder.parent / "photo.jpg"
    path.write_bytes(picture())
    add_photo(it.device, TASK, path)
    proof.answer(it.device, TASK, "volts", "231")
    submission.submit_proof(it.device, TASK, incomplete=True)
    submission.note(it.device, TASK, "the gate is locked at night")
    it.story.tell("amend", priority=1)
    it.answer_all()
    it.pull()
    it.clock.sleep(3600)
    return it


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return lost_chain(tmp_path / "profile")


def own_fields(command: Command) -> dict[str, object]:
    shared = set(Command.__struct_fields__)
    return {n: getattr(command, n) for n in command.__struct_fields__ if n not in shared}


def lost(it: Laptop) -> list[QueuedCommand]:
    return [c for c in it.device.journal.commands() if c.needs_decision]


def test_a_conflict_shows_what_i_did_what_happened_and_why_it_was_lost(it: Laptop) -> None:
    (found,) = conflicts.list_conflicts(it.device)
    assert [act.name for act in found.acts] == ["accept", "start_travel", "arrive", "submit_proof"]
    assert [act.code for act in found.acts] == ["version_conflict", *["chain_broken"] * 3]
    assert all(act.sentence and act.shown.needs_decision for act in found.acts)
    assert (found.task_id, found.command_id) == (TASK, found.acts[0].command_id)


def test_what_happened_meanwhile_is_told_with_who_and_when(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile")
    acts.accept(it.device, TASK)
    (queued,) = it.device.journal.pending()
    event = it.story.tell("amend") and it.story.events[-1]
    outcome = it.decide(queued)
    payload = msgspec.json.encode(event).decode()
    since = type(it.log.decide(queued.parts.payload).events[0])(9, 6, event.type, payload)
    told = msgspec.structs.replace(outcome, events_since=(since,), current={"state": "assigned"})
    it.device.journal.record_outcome(queued.command_id, told)
    (found,) = conflicts.list_conflicts(it.device)
    assert [(m.type, m.actor, m.version) for m in found.meanwhile] == [
        ("task.amended", "usr_dora", 6)
    ]
    assert found.now == {"state": "assigned"}


def test_a_chain_is_done_again_in_its_order_each_act_after_the_one_before(it: Laptop) -> None:
    old = lost(it)
    new = redo(it.device, old[0].command_id)
    assert [c.name for c in new] == ["accept", "start_travel", "arrive", "submit_proof"]
    assert [c.supersedes for c in new] == [c.command_id for c in old]
    assert [c.after for c in new] == [None, *(c.command_id for c in new[:-1])]
    assert {c.expected_version for c in new} == {it.story.state.version}
    assert not {c.command_id for c in new} & {c.command_id for c in old}
    assert lost(it) == []
    assert conflicts.list_conflicts(it.device) == ()
    assert [outcome.status for outcome in it.answer_all()] == ["committed"] * 4
    assert it.story.state.state == "proof_pending"
    assert it.device.journal.conservation().holds


def test_a_redo_copies_times_readings_fix_and_manifest_and_salts_its_values_freshly(
    it: Laptop,
) -> None:
    old = lost(it)
    for before, after in zip(old, redo(it.device, old[0].command_id), strict=True):
        was, now = before.command(), after.command()
        assert now.occurred_at == was.occurred_at
        assert was.device is not None
        assert now.device is not None
        readings = msgspec.structs.replace(now.device, device_seq=was.device.device_seq)
        assert readings == was.device
        assert after.device_seq > before.device_seq
        assert own_fields(now) == own_fields(was)
        if was.position is not None:
            assert now.position is not None
            assert now.position != was.position
            values = [
                open_disclosure(c, q.parts.disclosures[c])
                for c, q in ((was.position, before), (now.position, after))
            ]
            assert values[0] == values[1]
    # What the manifest's bytes commit to travels on unchanged.
    proof_before, proof_after = old[-1], it.device.journal.pending()[-1]
    assert proof_after.parts.disclosures == proof_before.parts.disclosures
    assert proof_after.parts.disclosures


def test_one_act_can_be_done_again_alone_and_the_rest_still_asks(it: Laptop) -> None:
    first, *rest = lost(it)
    (new,) = redo(it.device, first.command_id, chain=False)
    assert new.name == "accept"
    assert [c.command_id for c in lost(it)] == [c.command_id for c in rest]


def test_a_chain_of_which_one_act_cannot_be_done_is_not_begun(it: Laptop) -> None:
    first = lost(it)[0]
    it.story.tell("assign", worker_id=FORMER)
    it.pull(removed="reassigned")
    issued = it.device.journal.conservation().issued
    with pytest.raises(ActRefusedError) as raised:
        redo(it.device, first.command_id)
    assert raised.value.code == "not_assignee"
    assert it.device.journal.conservation().issued == issued
    assert lost(it)[0].command_id == first.command_id


def test_an_act_is_done_again_only_once(it: Laptop) -> None:
    first = lost(it)[0]
    redo(it.device, first.command_id)
    with pytest.raises(ServiceError) as raised:
        redo(it.device, first.command_id)
    assert raised.value.code == "not_lost"
    with pytest.raises(ServiceError) as unknown:
        redo(it.device, "never issued")
    assert unknown.value.code == "command_unknown"


def test_a_redo_that_is_lost_again_asks_again_and_can_be_redone(it: Laptop) -> None:
    redo(it.device, lost(it)[0].command_id)
    it.story.tell("amend", priority=2)
    it.answer_all()
    it.pull()
    again = lost(it)
    assert [c.name for c in again] == ["accept", "start_travel", "arrive", "submit_proof"]
    redo(it.device, again[0].command_id)
    assert [outcome.status for outcome in it.answer_all()] == ["committed"] * 4


def test_setting_aside_takes_the_whole_chain_needs_a_reason_and_can_be_taken_back(
    it: Laptop,
) -> None:
    old = lost(it)
    with pytest.raises(ServiceError) as raised:
        set_aside(it.device, old[0].command_id, " ")
    assert raised.value.code == "reason_missing"
    assert len(set_aside(it.device, old[0].command_id, "somebody else was faster")) == 4
    assert lost(it) == []
    assert conflicts.list_conflicts(it.device, include_set_aside=False) == ()
    (found,) = conflicts.list_conflicts(it.device)
    assert found.set_aside_reason == "somebody else was faster"
    assert found.acts[0].shown.words == "set aside: somebody else was faster"
    assert len(bring_back(it.reopen(), old[0].command_id)) == 4
    assert len(lost(it)) == 4


def test_the_proof_of_a_job_that_was_taken_away_reaches_the_office_with_its_refusal(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile", "in_progress")
    proof.answer(it.device, TASK, "volts", "231")
    submission.submit_proof(it.device, TASK, incomplete=True)
    it.story.tell("release")
    it.story.tell("assign", worker_id=FORMER, actor=make_actor("dispatcher"))
    (outcome,) = it.answer_all()
    assert outcome.status == "conflict"
    assert [event.type for event in outcome.events] == ["evidence.handed_over"]
    it.pull(removed="reassigned")
    assert acts.situation(it.device, TASK).removed == "reassigned"
    assert it.device.journal.conservation().holds
