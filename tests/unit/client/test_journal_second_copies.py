"""Drafts and evidence rows outlive the database; what has ended does not come back."""

from pathlib import Path

import pytest

from support.laptop import TASK, Laptop, laptop
from support.pictures import picture
from workmate_client.journal.log_match import OUTDATED_LIMIT, read_log
from workmate_client.journal.seq_ranges import numbers_in, ranges_of
from workmate_client.journal.unsent_records import DraftRecord, EvidenceRecord
from workmate_client.service import proof, submission
from workmate_client.service.photos import add_photo


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile", "in_progress")


def lose_the_database(it: Laptop) -> None:
    it.device.close()
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        (it.folder / name).unlink(missing_ok=True)
    it.reopen()


def logged(it: Laptop, kind: type) -> int:
    records, whole = read_log(it.device.journal._unsent)
    assert whole
    return sum(isinstance(record, kind) for record in records)


def test_a_lost_database_gives_back_the_last_state_of_every_draft_and_file(it: Laptop) -> None:
    proof.answer(it.device, TASK, "volts", "230")
    proof.answer(it.device, TASK, "volts", "231")
    path = it.folder.parent / "photo.jpg"
    path.write_bytes(picture())
    add_photo(it.device, TASK, path)
    proof.consent(it.device, TASK, "Frau Müller")
    it.device.journal.save_draft(TASK, "note", b"half a note")
    drafts, files = it.device.journal.drafts(), it.device.journal.evidence()
    lose_the_database(it)
    assert it.device.journal.drafts() == drafts
    assert it.device.journal.evidence() == files
    lose_the_database(it)
    assert it.device.journal.drafts() == drafts


def test_a_draft_that_was_finished_or_thrown_away_does_not_come_back(it: Laptop) -> None:
    proof.answer(it.device, TASK, "volts", "231")
    it.device.journal.save_draft(TASK, "note", b"half a note")
    it.device.journal.delete_draft(TASK, "note")
    submission.submit_proof(it.device, TASK, incomplete=True)
    lose_the_database(it)
    assert it.device.journal.drafts() == ()
    assert len(it.device.journal.pending()) == 1


def test_a_draft_begun_after_an_act_that_finished_one_stays(it: Laptop) -> None:
    proof.answer(it.device, TASK, "volts", "230")
    submission.submit_proof(it.device, TASK, incomplete=True)
    proof.answer(it.device, TASK, "volts", "231")
    (draft,) = it.device.journal.drafts()
    lose_the_database(it)
    assert it.device.journal.drafts() == (draft,)


def test_copies_leave_the_log_with_what_they_are_copies_of(it: Laptop) -> None:
    path = it.folder.parent / "photo.jpg"
    path.write_bytes(picture())
    item = add_photo(it.device, TASK, path).evidence
    it.device.journal.save_draft(TASK, "note", b"half a note")
    submission.submit_proof(it.device, TASK, incomplete=True)
    it.answer_all()
    assert (logged(it, DraftRecord), logged(it, EvidenceRecord)) == (1, 1)
    it.device.journal.mark_verified(TASK, [item.hash])
    submission.note(it.device, TASK, "seen")
    it.answer_all()
    assert (logged(it, DraftRecord), logged(it, EvidenceRecord)) == (1, 0)


def test_many_changes_of_one_draft_do_not_make_the_log_grow_for_ever(it: Laptop) -> None:
    for number in range(OUTDATED_LIMIT + 1):
        it.device.journal.save_draft(TASK, "note", b"%d" % number)
    (draft,) = it.device.journal.drafts()
    it.reopen()
    assert logged(it, DraftRecord) == 1
    lose_the_database(it)
    assert it.device.journal.drafts() == (draft,)


def test_a_log_without_copies_is_completed_from_the_database(it: Laptop) -> None:
    proof.answer(it.device, TASK, "volts", "231")
    (draft,) = it.device.journal.drafts()
    it.device.journal._unsent.rewrite(lambda _: False)
    it.reopen()
    lose_the_database(it)
    assert it.device.journal.drafts() == (draft,)


def test_numbers_survive_being_kept_as_ranges() -> None:
    assert ranges_of([3, 1, 2, 7, 9, 8, 1]) == ((1, 3), (7, 9))
    assert numbers_in(ranges_of([3, 1, 7])) == {1, 3, 7}
    assert ranges_of([]) == ()


def test_an_act_that_nobody_answered_and_nobody_has_is_still_said_to_be_lost(it: Laptop) -> None:
    submission.note(it.device, TASK, "answered")
    it.answer_all()
    submission.note(it.device, TASK, "lost with both stores")
    it.device.journal._unsent.rewrite(lambda data: b'"kind":"act"' not in data)
    with it.device.journal._database.write() as connection:
        connection.exec_driver_sql("DELETE FROM queued_command WHERE device_seq = 2")
    assert it.device.journal.conservation().lost == (2,)
