"""Commands in the journal: numbered, whole, pending until one outcome is recorded, never overwritten."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from support.device import failing_at
from support.laptop import TASK, Laptop, laptop, machine_for_tests
from workmate_client.journal.authoring import Act
from workmate_client.journal.files import Hook
from workmate_client.journal.parts import CommandUnknownError
from workmate_client.journal.queue_store import IssueUncertainError, NotLostError
from workmate_client.journal.rows import SignedParts
from workmate_client.ports import StorageError
from workmate_client.service import acts, submission
from workmate_shared.tasks.commands import Accept
from workmate_shared.wire.commitment import open_disclosure
from workmate_shared.wire.dsse import COMMAND_TYPE, keys_by_id, open_envelope
from workmate_shared.wire.messages import Outcome


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile")


def walk(it: Laptop) -> list[str]:
    """Four acts in a row, offline."""
    done = [
        acts.accept(it.device, TASK),
        acts.start_travel(it.device, TASK),
        acts.arrive(it.device, TASK, no_fix_reason="indoors"),
        submission.note(it.device, TASK, "the dog bites"),
    ]
    return [act.command.command_id for act in done if act.command]


def test_commands_are_numbered_from_one_without_a_gap_and_kept_in_their_order(it: Laptop) -> None:
    names = walk(it)
    for journal in (it.device.journal, it.reopen().journal):
        queue = journal.pending()
        assert [command.command_id for command in queue] == names
        assert [command.device_seq for command in queue] == [1, 2, 3, 4]
        assert [command.local_order for command in queue] == [1, 2, 3, 4]


def test_a_saved_command_is_sent_as_it_was_signed_with_values_that_open_its_commitments(
    it: Laptop,
) -> None:
    walk(it)
    note = it.device.journal.pending()[-1]
    signed = note.signed()
    keys = keys_by_id([it.device.keys.public_key])
    assert open_envelope(signed.envelope, COMMAND_TYPE, keys) == note.parts.payload
    command = note.command()
    assert command.personal is not None
    assert b"dog bites" in open_disclosure(command.personal, signed.disclosures[command.personal])
    assert b"dog bites" not in note.parts.payload
    assert it.reopen().journal.pending()[-1].signed() == signed


def test_what_building_a_command_raises_saves_nothing_and_uses_no_number(it: Laptop) -> None:
    def fail(seq: int) -> SignedParts:
        raise RuntimeError(str(seq))

    with pytest.raises(RuntimeError, match="1"):
        it.device.journal.issue(fail)
    assert it.device.journal.pending() == ()
    assert it.reopen().journal.conservation().issued == 0
    assert acts.accept(it.device, TASK).command is not None
    assert it.device.journal.pending()[0].device_seq == 1


def test_a_command_that_carries_another_number_than_its_own_is_a_fault_of_the_program(
    it: Laptop,
) -> None:
    profile = it.device.profile()
    act = Act(kind=Accept, aggregate_id=TASK)
    with pytest.raises(ValueError, match="number"):
        it.device.journal.issue(lambda seq: it.device.author.write(profile, act, seq + 1).parts)
    assert it.device.journal.pending() == ()


@pytest.mark.parametrize("point", ["unsent.write.before", "unsent.fsync.before"])
def test_a_full_disk_saves_nothing_and_nothing_of_it_turns_up_later(
    tmp_path: Path, point: str
) -> None:
    it = laptop(tmp_path / "profile")
    it.reopen(machine_for_tests(failing_at(point, 28)))
    with pytest.raises(StorageError) as raised:
        acts.accept(it.device, TASK)
    assert raised.value.code == "disk_full"
    assert it.device.journal.pending() == ()
    it.reopen(machine_for_tests())
    assert it.device.journal.pending() == ()
    assert acts.accept(it.device, TASK).state == "accepted"


def failing_after_the_log(also: str = "") -> Hook:
    """A disk that fails when the act is in the unsent log and not yet in the database."""

    def hook(point: str, path: Path) -> None:
        if point == "journal.issue.appended":
            raise StorageError("disk_full", path, "no space left")
        if point == also:
            raise OSError(28, "no space left")

    return hook


def test_an_act_that_could_not_be_committed_is_taken_out_of_the_log_again(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile")
    it.reopen(machine_for_tests(failing_after_the_log()))
    with pytest.raises(StorageError):
        acts.accept(it.device, TASK)
    assert it.device.journal.pending() == ()
    it.reopen(machine_for_tests())
    assert it.device.journal.pending() == ()
    assert it.device.journal.notices() == ()


def test_an_act_of_which_even_that_is_not_known_is_said_to_be_uncertain(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile")
    it.reopen(machine_for_tests(failing_after_the_log("unsent_rewrite.write.before")))
    with pytest.raises(IssueUncertainError):
        acts.accept(it.device, TASK)
    it.reopen(machine_for_tests())
    assert len(it.device.journal.pending()) == 1
    assert [notice.code for notice in it.device.journal.notices()] == ["acts_recovered"]


def test_an_outcome_ends_waiting_and_is_never_written_over_in_its_lineage(it: Laptop) -> None:
    walk(it)
    first = it.device.journal.pending()[0]
    it.device.journal.record_wait(
        first.command_id, "overloaded", next_attempt_at="2026-03-01T09:00:01Z"
    )
    waiting = it.device.journal.command(first.command_id)
    assert waiting is not None
    assert (waiting.attempts, waiting.wait_code) == (1, "overloaded")
    outcome = it.decide(first)
    assert it.device.journal.record_outcome(first.command_id, outcome)
    other = replace(outcome, status="rejected", code="not_assignee")
    assert not it.device.journal.record_outcome(first.command_id, other)
    answered = it.reopen().journal.command(first.command_id)
    assert answered is not None
    assert answered.outcome is not None
    assert (answered.status, answered.wait_code) == ("committed", None)
    assert answered.outcome.receipt == outcome.receipt
    assert [event.type for event in answered.outcome.events] == ["task.accepted"]


def test_a_retry_is_no_outcome_and_an_unknown_command_has_none(it: Laptop) -> None:
    name = walk(it)[0]
    with pytest.raises(ValueError, match="retry"):
        it.device.journal.record_outcome(name, Outcome(command_id=name, status="retry"))
    with pytest.raises(CommandUnknownError):
        it.device.journal.record_outcome("x", Outcome(command_id="x", status="committed"))
    assert len(it.device.journal.pending()) == 4


def test_under_a_new_lineage_everything_is_pending_again_and_old_receipts_stay(it: Laptop) -> None:
    walk(it)
    it.answer_all()
    journal = it.device.journal
    old = journal.commands()
    assert journal.pending() == ()
    journal.update_profile(lineage="lineage-2")
    assert [c.command_id for c in journal.pending()] == [c.command_id for c in old]
    counts = journal.conservation()
    assert (counts.issued, counts.pending, counts.committed, counts.holds) == (4, 4, 0, True)
    assert journal.profile().past_lineages == (it.log.lineage,)  # type: ignore[union-attr]
    # The damaged journal's rebuilder needs them in the log again.
    it.device.close()
    (it.folder / "journal.db").unlink()
    assert len(it.reopen().journal.pending()) == 4
    it.device.journal.update_profile(lineage=it.log.lineage)


def test_the_unsent_log_is_emptied_when_all_is_answered_and_keeps_profile_and_numbers(
    it: Laptop,
) -> None:
    walk(it)
    it.answer_all()
    size = (it.folder / "unsent.log").stat().st_size
    profile = replace(it.device.profile(), answered_before=((1, 4),))
    it.device.close()
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        (it.folder / name).unlink(missing_ok=True)
    journal = it.reopen().journal
    assert size < 4000
    assert journal.commands() == ()
    assert journal.profile() == profile
    assert [notice.code for notice in journal.notices()] == ["journal_rebuilt"]
    done = submission.note(it.device, TASK, "after the loss")
    assert done.command is not None
    assert done.command.device_seq == 5
    # What was answered is not lost, although its rows are gone.
    assert journal.conservation().lost == ()
    assert it.reopen().journal.conservation().holds


def test_conservation_counts_every_command_once_by_how_it_ended(it: Laptop) -> None:
    names = walk(it)
    it.story.tell("amend")
    it.answer_all()
    counts = it.device.journal.conservation()
    assert (counts.issued, counts.pending, counts.committed, counts.conflict) == (4, 0, 1, 3)
    assert counts.holds
    assert {c.command_id for c in it.device.journal.commands()} == set(names)


def test_only_a_lost_act_can_be_set_aside_and_it_can_be_brought_back(it: Laptop) -> None:
    first, second, *_ = walk(it)
    journal = it.device.journal
    with pytest.raises(NotLostError):
        journal.set_aside(first, "no")
    it.story.tell("amend")
    it.answer_all()
    aside = journal.set_aside(first, "given to somebody else")
    assert (aside.set_aside_reason, aside.needs_decision) == ("given to somebody else", False)
    back = journal.bring_back(first)
    assert (back.set_aside_reason, back.needs_decision) == (None, True)
    assert journal.command(second).needs_decision  # type: ignore[union-attr]
    with pytest.raises(CommandUnknownError):
        journal.set_aside("x", "no")
