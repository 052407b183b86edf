"""Evidence rows and drafts: each file listed once, its way followed, forms saved as they were."""

from functools import partial
from pathlib import Path

import pytest

from support.laptop import TASK, Laptop, laptop
from workmate_client.journal.evidence_store import EvidenceUnknownError
from workmate_client.journal.rows import EvidenceItem
from workmate_shared.tasks.commands import StoreEvidence
from workmate_shared.tasks.values import Fix


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile", "in_progress")


def keep(it: Laptop, content: bytes = b"a photo", task_id: str = TASK) -> EvidenceItem:
    sealed = it.device.sealed.import_bytes(content)
    item = EvidenceItem(
        task_id=task_id,
        hash=sealed.hash,
        size_bytes=sealed.size_bytes,
        sealed_name=sealed.name,
        kind="photo",
        media_type="image/jpeg",
        file_name="Übersicht.jpg",
        slot="after",
        captured_at="2026-03-01T09:45:00+05:30",
        captured_from="exif",
        fix=Fix(lat_e7=1, lon_e7=-2, accuracy_m=3, source="exif"),
        remarks=("looks_old",),
        added_at="2026-03-01T09:00:00Z",
    )
    it.device.journal.add_evidence(item)
    return item


def test_a_file_is_listed_as_it_was_described_and_only_once_for_a_task(it: Laptop) -> None:
    item = keep(it)
    assert it.reopen().journal.evidence(TASK) == (item,)
    assert not it.device.journal.add_evidence(item)
    assert keep(it, task_id="task-2").hash == item.hash
    assert len(it.device.journal.evidence_by_hash(item.hash)) == 2
    assert it.device.journal.evidence("task-2")[0].task_id == "task-2"


def test_progress_of_an_upload_is_kept_and_starts_the_attempts_anew(it: Laptop) -> None:
    item = keep(it)
    journal = it.device.journal
    held = journal.record_upload_wait(
        TASK, item.hash, "stalled", next_attempt_at="2026-03-01T10:00:00Z"
    )
    assert (held.attempts, held.wait_code, held.bytes_left) == (1, "stalled", 7)
    journal.mark_uploaded(TASK, item.hash, 3, upload_url="/v1/uploads/1")
    moved = it.reopen().journal.evidence_item(TASK, item.hash)
    assert moved is not None
    assert (moved.attempts, moved.wait_code, moved.uploaded_bytes, moved.bytes_left) == (
        0,
        None,
        3,
        4,
    )
    it.device.journal.mark_uploaded(TASK, item.hash, 7, upload_url="/v1/uploads/1", done=True)
    done = it.device.journal.evidence_item(TASK, item.hash)
    assert done is not None
    assert done.upload_done_at is not None
    assert done.verified_at is None
    with pytest.raises(EvidenceUnknownError):
        journal.mark_uploaded(TASK, "00" * 32, 1)


def test_a_file_is_verified_by_the_servers_event_about_it_and_by_nothing_else(it: Laptop) -> None:
    first, second = keep(it), keep(it, b"another photo")
    command = it.device.author.issue(StoreEvidence, TASK, hashes=(first.hash,))
    assert [item.verified_at for item in it.device.journal.evidence()] == [None, None]
    outcome = it.answer(command)
    assert [event.type for event in outcome.events] == ["evidence.stored"]
    verified = {item.hash for item in it.device.journal.evidence() if item.verified_at}
    assert verified == {first.hash}
    assert [item.bytes_left for item in it.device.journal.evidence()] == [0, second.size_bytes]


def test_a_new_lineage_offers_every_file_again(it: Laptop) -> None:
    item = keep(it)
    it.device.journal.mark_uploaded(TASK, item.hash, 7, upload_url="/v1/uploads/1", done=True)
    it.device.journal.mark_verified(TASK, [item.hash])
    it.device.journal.update_profile(lineage="lineage-2")
    again = it.device.journal.evidence_item(TASK, item.hash)
    assert again is not None
    assert (again.upload_url, again.upload_done_at, again.verified_at) == (None, None, None)
    assert again.bytes_left == item.size_bytes


def test_a_file_that_is_set_aside_can_be_tried_again_from_the_start(it: Laptop) -> None:
    item = keep(it)
    journal = it.device.journal
    journal.record_upload_wait(TASK, item.hash, "hash_mismatch")
    journal.quarantine(TASK, item.hash, "hash_mismatch")
    assert journal.evidence()[0].quarantined == "hash_mismatch"
    journal.release_quarantine(TASK, item.hash)
    assert (journal.evidence()[0].quarantined, journal.evidence()[0].attempts) == (None, 0)


def test_a_file_that_a_recovery_had_found_gives_way_to_what_is_known_of_it(it: Laptop) -> None:
    sealed = it.device.sealed.import_bytes(b"found and then described")
    (found,) = it.reopen().journal.evidence()
    assert (found.kind, found.task_id) == ("found", "")
    item = EvidenceItem(
        task_id=TASK,
        hash=sealed.hash,
        size_bytes=sealed.size_bytes,
        sealed_name=sealed.name,
        kind="photo",
        media_type="image/jpeg",
        added_at=found.added_at,
    )
    it.device.journal.add_evidence(item)
    assert it.device.journal.evidence() == (item,)


def test_a_form_is_saved_on_every_change_and_comes_back_as_it_was(it: Laptop) -> None:
    journal = it.device.journal
    journal.save_draft(TASK, "note", b"one")
    journal.edit_draft(TASK, "note", lambda old: (old or b"") + b" two")
    saved = it.reopen().journal.draft(TASK, "note")
    assert saved is not None
    assert saved.content == b"one two"
    assert [draft.form for draft in it.device.journal.drafts()] == ["note"]
    it.device.journal.delete_draft(TASK, "note")
    assert it.device.journal.draft(TASK, "note") is None


def appended(entry: bytes, old: bytes | None) -> bytes:
    return (old or b"") + entry


def test_sixty_repeated_entries_are_all_there_in_their_order(it: Laptop) -> None:
    for number in range(60):
        entry = b"%d " % number
        it.device.journal.edit_draft(TASK, "rows", partial(appended, entry))
    saved = it.reopen().journal.draft(TASK, "rows")
    assert saved is not None
    assert saved.content.split() == [b"%d" % number for number in range(60)]


def test_what_a_change_of_a_form_raises_changes_nothing(it: Laptop) -> None:
    it.device.journal.save_draft(TASK, "note", b"kept")

    def fail(old: bytes | None) -> bytes:
        raise RuntimeError(old)

    with pytest.raises(RuntimeError):
        it.device.journal.edit_draft(TASK, "note", fail)
    with pytest.raises(RuntimeError):
        it.device.journal.add_evidence(
            EvidenceItem(
                task_id=TASK,
                hash="ab" * 32,
                size_bytes=1,
                sealed_name="x",
                kind="photo",
                media_type="image/jpeg",
                added_at="2026-03-01T09:00:00Z",
            ),
            form="note",
            change=fail,
        )
    saved = it.device.journal.draft(TASK, "note")
    assert saved is not None
    assert saved.content == b"kept"
    assert it.device.journal.evidence() == ()
