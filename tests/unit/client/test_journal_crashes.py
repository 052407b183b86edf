"""A process that ends at any point leaves nothing or the whole act, and nothing that was called done."""

from pathlib import Path

import msgspec
import pytest

from support.laptop import TASK, Laptop, laptop
from support.laptop_kills import done_in, ended_at_each_point, open_laptop
from workmate_client.service import acts, proof
from workmate_client.service.drafts import PROOF_FORM
from workmate_client.service.photos import add_photo

PHOTO = b"\xff\xd8\xff" + bytes(range(200))


@pytest.fixture
def start(tmp_path: Path) -> Path:
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "photo.jpg").write_bytes(PHOTO)
    return folder


def prepared(start: Path, state: str = "assigned") -> Laptop:
    return laptop(start / "profile", state)


def cases(scenario: str, start: Path) -> list[tuple[str, Path, Laptop]]:
    """Each point with what was left there, opened again; whatever happened, the books balance."""
    opened = []
    for point, folder in ended_at_each_point(scenario, start.parent):
        it = open_laptop(folder)
        counts = it.device.journal.conservation()
        assert counts.holds, point
        assert not list(folder.glob("profile/*.damaged")), point
        opened.append((point, folder, it))
    assert len(opened) > 3
    return opened


def test_acts_are_there_whole_or_not_at_all_and_each_that_was_called_done_is_there(
    start: Path,
) -> None:
    prepared(start).device.close()
    for point, folder, it in cases("acts", start):
        queue = it.device.journal.pending()
        names = [command.name for command in queue]
        assert names == ["accept", "start_travel"][: len(names)], point
        assert len(done_in(folder)) <= len(names) <= len(done_in(folder)) + 1, point
        assert [command.device_seq for command in queue] == list(range(1, len(queue) + 1))
        for command in queue:
            assert set(command.command().commitments()) <= set(command.parts.disclosures)
        done = acts.start_travel(it.device, TASK) if names else acts.accept(it.device, TASK)
        assert done.command is not None
        assert it.device.journal.conservation().holds
        it.device.close()


def test_a_photo_is_a_listed_file_in_the_proof_or_found_again_and_never_a_ghost(
    start: Path,
) -> None:
    prepared(start, "in_progress").device.close()
    for point, folder, it in cases("photo", start):
        items = it.device.journal.evidence()
        status = proof.proof_status(it.device, TASK)
        listed = {item.hash for item in items if item.kind == "photo"}
        assert {photo.hash for photo in status.draft.photos} == listed, point
        names = [item.sealed_name for item in items]
        inventory = it.device.sealed.inventory(names)
        assert (inventory.unlisted, inventory.missing) == ((), ()), point
        assert listed or not done_in(folder), point
        again = add_photo(it.device, TASK, folder / "photo.jpg")
        assert [photo.hash for photo in again.draft.photos] == [again.evidence.hash], point
        assert len(it.device.journal.evidence()) == 1, point
        it.device.close()


def test_a_proof_is_an_old_draft_whole_or_a_submitted_proof_whole(start: Path) -> None:
    it = prepared(start, "in_progress")
    add_photo(it.device, TASK, start / "photo.jpg")
    proof.answer(it.device, TASK, "volts", "231")
    it.device.close()
    for point, folder, left in cases("submit", start):
        journal = left.device.journal
        draft = journal.draft(TASK, PROOF_FORM)
        submitted = [command.name for command in journal.pending()] == ["submit_proof"]
        assert submitted or not done_in(folder), point
        assert (draft is None) == submitted, point
        left.device.close()


def test_an_outcome_that_was_recorded_stays_recorded_and_the_rest_stays_pending(
    start: Path,
) -> None:
    it = prepared(start)
    acts.accept(it.device, TASK)
    acts.start_travel(it.device, TASK)
    outcomes = [it.decide(command) for command in it.device.journal.pending()]
    (start / "outcomes").write_bytes(b"\n".join(map(msgspec.json.encode, outcomes)))
    it.device.close()
    for point, folder, left in cases("answers", start):
        answered = {c.command_id for c in left.device.journal.commands() if c.outcome}
        assert set(done_in(folder)) <= answered, point
        assert len(answered) <= len(done_in(folder)) + 1, point
        left.device.close()


def test_a_change_of_lineage_is_whole_and_the_log_knows_what_is_pending_again(start: Path) -> None:
    it = prepared(start)
    acts.accept(it.device, TASK)
    it.answer_all()
    it.device.close()
    for point, _folder, left in cases("lineage", start):
        journal = left.device.journal
        again = left.device.profile().lineage == "lineage-2"
        assert len(journal.pending()) == again, point
        left.device.close()
        (left.folder / "journal.db").unlink()
        rebuilt = left.reopen().journal
        assert {c.name for c in rebuilt.pending()} >= ({"accept"} if again else set()), point
        left.device.close()


def test_a_chain_is_done_again_as_a_whole_or_not_at_all(start: Path) -> None:
    it = prepared(start)
    acts.accept(it.device, TASK)
    acts.start_travel(it.device, TASK)
    it.story.tell("amend")
    it.answer_all()
    it.pull()
    it.device.close()
    for point, folder, left in cases("redo", start):
        queue = left.device.journal.pending()
        assert len(queue) in (0, 2), point
        assert len(queue) == 2 or not done_in(folder), point
        left.device.close()


def test_typing_is_saved_whole_or_not_at_all(start: Path) -> None:
    it = prepared(start, "in_progress")
    proof.answer(it.device, TASK, "isolated", "yes")
    it.device.close()
    for point, folder, left in cases("answer", start):
        answers = proof.proof_status(left.device, TASK).draft.answers
        assert answers in ({"isolated": True}, {"isolated": True, "volts": "231"}), point
        assert "volts" in answers or not done_in(folder), point
        left.device.close()


@pytest.mark.parametrize("damaged", [True, False])
def test_a_rebuild_that_is_interrupted_anywhere_is_done_at_the_next_start(
    start: Path, damaged: bool
) -> None:
    it = prepared(start, "in_progress")
    add_photo(it.device, TASK, start / "photo.jpg")
    acts.decline(it.device, TASK, "unsafe", "no light")
    saved = [c.command_id for c in it.device.journal.pending()]
    it.device.close()
    path = start / "profile" / "journal.db"
    path.write_bytes(b"noise" * 10_000) if damaged else path.unlink()
    for point, folder in ended_at_each_point("open", start.parent):
        left = open_laptop(folder)
        journal = left.device.journal
        assert [c.command_id for c in journal.pending()] == saved, point
        assert len(journal.evidence()) == 1, point
        assert left.device.profile().enrolled, point
        assert "journal_rebuilt" in [notice.code for notice in journal.notices()], point
        assert len(list(folder.glob("profile/*.damaged"))) == damaged, point
        left.device.close()
