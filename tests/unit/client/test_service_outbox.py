"""What the device says of itself is true: counts, words, receipts, and whether it can be wiped."""

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from support.laptop import TASK, Laptop, laptop
from support.pictures import picture
from support.signing_log import OTHER_SEED
from workmate_client.journal.rows import EvidenceItem
from workmate_client.journal.sealed import SealedFileCode
from workmate_client.service import acts, copies, outbox, proof, receipts, submission
from workmate_client.service.photos import add_photo
from workmate_client.service.redo import set_aside
from workmate_client.service.wording import (
    FINDINGS,
    SHOWN,
    Stored,
    age_words,
    shown_act,
    shown_file,
    visible,
    waiting_for,
)
from workmate_client.sync.verify import UnknownReason
from workmate_shared.tasks.commands import StoreEvidence
from workmate_shared.tasks.proof import evaluate
from workmate_shared.wire.dsse import key_id, public_key_of
from workmate_shared.wire.messages import Limits


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile")


def keep_from(it: Laptop, batch: int) -> None:
    limits = Limits(commands=500, request_bytes=1, upload_bytes=1, keep_from=batch)
    it.device.journal.update_profile(limits=limits)


def test_status_counts_every_command_and_tells_the_oldest_pending_one(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    it.clock.sleep(90)
    submission.note(it.device, TASK, "later")
    status = outbox.device_status(it.device)
    assert (status.counts.issued, status.counts.pending, status.conserved) == (2, 2, True)
    assert status.oldest_pending_seconds == 90
    assert status.oldest_pending_at == "2026-03-01T09:00:00.000+00:00"
    assert not status.safe_to_wipe
    assert status.keeps[0] == "2 acts not sent or not answered"


def test_a_laptop_is_safe_to_wipe_only_when_all_is_answered_verified_and_old_enough(
    it: Laptop,
) -> None:
    assert outbox.device_status(it.device).safe_to_wipe
    acts.accept(it.device, TASK)
    it.answer_all()
    keep_from(it, 1)
    kept = outbox.device_status(it.device).keeps
    assert kept == ("1 receipts so recent that the server asks to keep them",)
    keep_from(it, 2)
    assert outbox.device_status(it.device).safe_to_wipe
    path = it.folder.parent / "photo.jpg"
    path.write_bytes(picture())
    added = add_photo(it.device, TASK, path)
    kept = outbox.device_status(it.device).keeps
    assert kept == ("1 files not confirmed by the server", "1 proofs or notes in the making")
    assert outbox.device_status(it.device).upload_bytes_left == added.evidence.size_bytes


def test_a_lost_act_keeps_the_laptop_until_it_is_decided(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    it.story.tell("amend")
    it.answer_all()
    keep_from(it, 99)
    status = outbox.device_status(it.device)
    assert (status.needs_decision, status.safe_to_wipe) == (1, False)
    set_aside(it.device, it.device.journal.commands()[0].command_id, "done by phone")
    status = outbox.device_status(it.device)
    assert (status.needs_decision, status.safe_to_wipe) == (0, True)


def test_a_doubtful_clock_is_flagged_and_stops_nobody(it: Laptop) -> None:
    it.device.journal.update_profile(clock_skew_seconds=-3600.0)
    assert outbox.device_status(it.device).clock_doubtful
    assert acts.accept(it.device, TASK).state == "accepted"
    it.device.journal.update_profile(clock_skew_seconds=3.0)
    assert not outbox.device_status(it.device).clock_doubtful


def test_the_outbox_lists_what_has_not_ended_well_oldest_first(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    it.clock.sleep(60)
    path = it.folder.parent / "photo.jpg"
    path.write_bytes(picture())
    add_photo(it.device, TASK, path)
    lines = outbox.outbox(it.device)
    assert [(line.kind, line.what) for line in lines] == [("act", "accept"), ("file", "photo.jpg")]
    it.answer_all()
    assert [line.kind for line in outbox.outbox(it.device)] == ["file"]


def test_a_submitted_proof_is_received_when_its_files_are_missing_and_verified_when_not(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile", "in_progress")
    proof.sign(it.device, TASK, "worker", name="Ann Onym")
    submission.submit_proof(it.device, TASK, incomplete=True)
    it.answer_all()
    (submitted,) = it.device.journal.commands()
    assert shown_act(submitted, files_missing=True).words.startswith("received; files missing")
    (item,) = it.device.journal.evidence()
    it.device.author.issue(StoreEvidence, TASK, hashes=(item.hash,))
    it.answer_all()
    assert shown_file(it.device.journal.evidence()[0]) == SHOWN["file_verified"]
    words = shown_act(submitted, review="submitted").words
    assert words == "verified (receipts held); in review"


def test_every_way_of_standing_has_a_symbol_and_words_and_never_the_same_for_lost_and_done() -> (
    None
):
    assert set(SHOWN) == set(get_args(Stored))
    assert all(entry.symbol and entry.words for entry in SHOWN.values())
    assert SHOWN["lost"].symbol != SHOWN["committed"].symbol


def test_each_stage_of_a_file_has_its_words() -> None:
    item = EvidenceItem(
        task_id=TASK,
        hash="aa" * 32,
        size_bytes=200,
        sealed_name="x",
        kind="photo",
        media_type="image/jpeg",
        added_at="2026-03-01T09:00:00Z",
    )
    stages = [
        item,
        replace(item, wait_code="too_large"),
        replace(item, uploaded_bytes=82),
        replace(item, upload_done_at="2026-03-01T10:00:00Z"),
        replace(item, verified_at="2026-03-01T10:00:00Z"),
        replace(item, quarantined="sealed_file_missing"),
    ]
    assert [shown_file(stage).words for stage in stages] == [
        "saved on this laptop",
        "waiting: too large",
        "sending 41 %",
        "sent, not yet confirmed",
        "verified (receipt held)",
        "set aside: its copy is gone; add it again",
    ]


def test_foreign_text_shows_its_control_and_direction_characters() -> None:
    assert visible("a\x1b[2Jb\u202ec\n") == "a\\u{1b}[2Jb\\u{202e}c\\u{a}"
    assert visible("Grüße, नमस्ते 👩‍🔧") == "Grüße, नमस्ते 👩‍🔧"


def test_an_unknown_code_is_said_in_its_own_words() -> None:
    assert waiting_for("blocked_by") == "for an earlier step"
    assert waiting_for("overloaded") == "the server is busy"
    assert waiting_for("from_the_future") == "from the future"


def test_every_finding_of_the_policy_has_a_sentence() -> None:
    sources = (inspect.getmodule(evaluate) or evaluate, copies)
    source = "".join(map(inspect.getsource, sources))
    used = set(re.findall(r'Finding\("([a-z_]+)"', source))
    assert used == set(FINDINGS)


def test_stored_receipts_prove_what_they_say_and_a_changed_one_is_found(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    submission.note(it.device, TASK, "seen")
    it.answer_all()
    report = receipts.verify_receipts(it.device)
    assert (report.all_proven, report.proven) == (True, 2)
    assert [held.batch for held in report.receipts] == [1, 2]
    with it.device.journal._database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE recorded_outcome SET body = replace(body, 'task.accepted', 'task.declined')"
        )
    report = receipts.verify_receipts(it.device)
    assert report.proven == 1
    assert [bool(held.fault) for held in report.receipts] == [True, False]


def test_a_receipt_of_a_key_that_is_not_pinned_or_of_another_command_proves_nothing(
    it: Laptop,
) -> None:
    acts.accept(it.device, TASK)
    submission.note(it.device, TASK, "seen")
    first, second = it.device.journal.pending()
    accepted, noted = it.decide(first), it.decide(second)
    swapped = replace(noted, receipt=accepted.receipt)
    it.device.journal.record_outcome(first.command_id, accepted)
    it.device.journal.record_outcome(second.command_id, swapped)
    faults = [held.fault for held in receipts.verify_receipts(it.device).receipts]
    assert faults == [None, "it is the receipt of another command"]
    other = public_key_of(OTHER_SEED)
    it.device.journal.update_profile(pinned_keys={key_id(other): other.hex()})
    assert receipts.verify_receipts(it.device).proven == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (89, "89 s"), (150, "2 min"), (7200, "2 h"), (200_000, "2 days")],
)
def test_an_age_is_told_in_the_unit_that_says_something(seconds: float, words: str) -> None:
    assert age_words(seconds) == words


@pytest.mark.parametrize(
    "code",
    [
        *get_args(SealedFileCode),
        *get_args(UnknownReason),
        "no_answer",
        "stalled",
        "connection_cut",
        "answer_unreadable",
        "server_busy",
        "stopped_by_you",
        "lineage_left",
        "upload_not_allowed",
        "command_unanswered",
        "metered_link",
    ],
)
def test_every_reason_to_wait_has_words_of_its_own(code: str) -> None:
    assert waiting_for(code) != code.replace("_", " ") or code == "stopped_by_you"


def test_a_file_that_is_no_longer_tried_is_counted_and_told_what_to_do(it: Laptop) -> None:
    path = it.folder.parent / "photo.jpg"
    path.write_bytes(picture())
    item = add_photo(it.device, TASK, path).evidence
    assert outbox.files_set_aside(it.device) == ()
    it.device.journal.quarantine(TASK, item.hash, "sealed_piece_damaged")
    assert [found.hash for found in outbox.files_set_aside(it.device)] == [item.hash]
    assert outbox.device_status(it.device).files_set_aside == 1
    (line,) = outbox.outbox(it.device)
    assert line.shown.words == "set aside: its copy is damaged; add it again"


def test_a_notice_stays_until_the_worker_has_read_it(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile", "in_progress")
    it.device.journal.add_notice("replica_dropped", "it was damaged; it is pulled again")
    assert len(outbox.device_status(it.device).notices) == 1
    assert outbox.dismiss_notices(it.device) == 1
    assert outbox.device_status(it.device).notices == ()
