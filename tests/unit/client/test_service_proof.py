"""A proof is gathered step by step, judged by the policy's own rules, and never lost on the way."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from support.commands import make_policy
from support.device import failing_at
from support.laptop import TASK, Laptop, laptop, machine_for_tests
from workmate_client.ports import StorageError
from workmate_client.service import acts, proof, submission
from workmate_client.service.acts import ActRefusedError
from workmate_client.service.device import ServiceError
from workmate_client.service.drafts import PROOF_FORM, DraftPhoto, ProofDraft, gather
from workmate_client.service.photos import add_photo
from workmate_client.service.submission import ProofIncompleteError
from workmate_shared.tasks.policy import (
    BarcodeItem,
    ChoiceItem,
    ConfirmItem,
    DateItem,
    NumberItem,
    ProofPolicy,
    TextItem,
)
from workmate_shared.tasks.task import decode_manifest
from workmate_shared.wire.intake import check_message

VOLTS = NumberItem(item_id="volts", prompt="Reading", unit="V", min="0", max="250")
PHOTO = b"\xff\xd8\xff" + bytes(300)


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile", "in_progress")


def take_photo(it: Laptop, content: bytes = PHOTO, name: str = "photo.jpg") -> Path:
    path = it.folder.parent / name
    path.write_bytes(content)
    return path


def codes(it: Laptop) -> list[str]:
    return [remark.code for remark in proof.proof_status(it.device, TASK).missing]


def complete(it: Laptop) -> None:
    """Gather everything that the example policy asks for; the photo has no time of its own."""
    proof.answer(it.device, TASK, "isolated", "yes")
    proof.answer(it.device, TASK, "volts", "231")
    proof.sign(it.device, TASK, "worker", name="Ann Onym")
    proof.consent(it.device, TASK, "Frau Müller")


@pytest.mark.parametrize(
    ("item", "text", "value"),
    [
        (ConfirmItem(item_id="a", prompt="?"), " Yes ", True),
        (ConfirmItem(item_id="a", prompt="?"), "n", False),
        (VOLTS, " 231.5 ", "231.5"),
        (VOLTS, "0", "0"),
        (VOLTS, "250", "250"),
        (ChoiceItem(item_id="a", prompt="?", options=("red", "blue")), "blue", "blue"),
        (DateItem(item_id="a", prompt="?"), "2026-02-28", "2026-02-28"),
        (TextItem(item_id="a", prompt="?"), "wie neu\nund sauber", "wie neu\nund sauber"),
        (BarcodeItem(item_id="a", prompt="?"), "4006381333931", "4006381333931"),
    ],
)
def test_typed_text_becomes_an_answer_of_the_items_kind(
    item: ConfirmItem, text: str, value: object
) -> None:
    assert proof.parse_answer(item, text) == value


@pytest.mark.parametrize(
    ("item", "text", "code", "valid"),
    [
        (ConfirmItem(item_id="a", prompt="Isolated?"), "perhaps", "answer_invalid", "yes or no"),
        (VOLTS, "231,5", "answer_invalid", "a number V"),
        (VOLTS, "250.01", "answer_out_of_bounds", "0 to 250 V"),
        (VOLTS, "-0.5", "answer_out_of_bounds", "0 to 250 V"),
        (
            ChoiceItem(item_id="a", prompt="?", options=("red", "blue")),
            "green",
            "answer_invalid",
            "red or blue",
        ),
        (DateItem(item_id="a", prompt="?"), "2026-02-30", "answer_invalid", "YYYY-MM-DD"),
        (TextItem(item_id="a", prompt="?"), "  ", "answer_missing", "not answered"),
    ],
)
def test_an_answer_that_is_wrong_is_refused_at_once_with_what_would_be_valid(
    item: ConfirmItem, text: str, code: str, valid: str
) -> None:
    with pytest.raises(ServiceError) as raised:
        proof.parse_answer(item, text)
    assert raised.value.code == code
    assert valid in raised.value.detail
    assert item.prompt in raised.value.detail


def test_what_is_missing_is_told_in_the_policys_order_and_shrinks_as_it_is_gathered(
    it: Laptop,
) -> None:
    assert codes(it) == [
        "answer_missing",
        "answer_missing",
        "photos_missing",
        "signature_missing",
        "consent_missing",
    ]
    complete(it)
    assert codes(it) == ["photos_missing"]
    status = proof.proof_status(it.device, TASK)
    assert not status.ready
    assert status.missing[0].sentence == "after: 0 of at least 1 photos"
    assert status.saved_at is not None


def test_an_answer_can_be_changed_and_taken_back_and_survives_the_program(it: Laptop) -> None:
    proof.answer(it.device, TASK, "volts", "12")
    proof.answer(it.device, TASK, "volts", "231")
    it.reopen()
    assert proof.proof_status(it.device, TASK).draft.answers == {"volts": "231"}
    assert proof.answer(it.device, TASK, "volts", None).answers == {}
    with pytest.raises(ServiceError) as raised:
        proof.answer(it.device, TASK, "amperes", "1")
    assert raised.value.code == "item_unknown"
    assert "isolated, volts" in raised.value.detail


def test_an_answer_that_does_not_pass_is_kept_and_told(it: Laptop) -> None:
    proof.answer(it.device, TASK, "isolated", "no")
    assert "answer_does_not_pass" in codes(it)


def test_a_typed_signature_is_a_file_that_shows_the_name_and_nothing_else_it_could_do(
    it: Laptop,
) -> None:
    draft = proof.sign(it.device, TASK, "worker", name='Änne <script>"&\x1b[31m')
    signature = draft.signatures["worker"]
    (item,) = it.device.journal.evidence(TASK)
    assert (item.kind, item.hash, item.media_type) == ("signature", signature.hash, "image/svg+xml")
    drawn = b"".join(it.device.sealed.open_chunks(item.sealed_name))
    texts = [element.text for element in ET.fromstring(drawn)]
    assert texts == ['Änne <script>"&\ufffd[31m'] * 2
    assert "script" not in [element.tag for element in ET.fromstring(drawn).iter()]


def test_a_blank_signature_is_refused_and_a_refusal_to_sign_is_an_answer(it: Laptop) -> None:
    for name, refused in ((None, None), ("  ", None), ("Ann", "no pen")):
        with pytest.raises(ServiceError) as raised:
            proof.sign(it.device, TASK, "worker", name=name, refused=refused)
        assert raised.value.code == "name_missing"
    with pytest.raises(ServiceError) as long:
        proof.sign(it.device, TASK, "worker", name="n" * 501)
    assert long.value.code == "name_too_long"
    assert it.device.journal.evidence() == ()
    proof.sign(it.device, TASK, "worker", refused="the hand is hurt")
    assert "signature_missing" not in codes(it)
    draft = proof.proof_status(it.device, TASK).draft
    assert gather(draft).personal.notes == "sig-worker: the hand is hurt"


def test_consent_is_to_the_exact_version_and_by_name(it: Laptop, tmp_path: Path) -> None:
    with pytest.raises(ServiceError) as raised:
        proof.consent(it.device, TASK, " ")
    assert raised.value.code == "name_missing"
    draft = proof.consent(it.device, TASK, "Frau Müller")
    assert draft.consent is not None
    assert (draft.consent.name, draft.consent.text_version) == ("Frau Müller", "2026-01")
    other = laptop(tmp_path / "other", "in_progress", proof_policy=ProofPolicy())
    with pytest.raises(ServiceError) as unwanted:
        proof.consent(other.device, TASK, "Frau Müller")
    assert unwanted.value.code == "no_consent_wanted"


def test_a_change_of_the_rules_is_told_and_costs_nothing_that_was_gathered(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile", "en_route")
    proof.answer(it.device, TASK, "volts", "231")
    it.story.tell("amend", proof_policy=make_policy(signature=()))
    it.pull()
    status = proof.proof_status(it.device, TASK)
    assert status.draft.answers == {"volts": "231"}
    assert [remark.code for remark in status.advice] == ["policy_changed"]


def test_an_incomplete_proof_is_not_submitted_unless_the_worker_insists(it: Laptop) -> None:
    proof.answer(it.device, TASK, "volts", "231")
    with pytest.raises(ProofIncompleteError) as raised:
        submission.submit_proof(it.device, TASK)
    assert {remark.code for remark in raised.value.missing} >= {"photos_missing"}
    assert it.device.journal.pending() == ()
    assert proof.proof_status(it.device, TASK).draft.answers == {"volts": "231"}
    assert submission.submit_proof(it.device, TASK, incomplete=True).state == "proof_pending"


def test_a_submitted_proof_is_one_manifest_whose_values_open_and_the_draft_has_ended(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile", "in_progress", proof_policy=make_policy(photos=()))
    complete(it)
    done = submission.submit_proof(it.device, TASK)
    assert done.command is not None
    command = done.command.command()
    message = check_message(command, done.command.parts.disclosures, command.tenant_id)
    manifest = message.manifest
    assert manifest is not None
    assert manifest.task_version == it.story.state.version
    assert [item.item_id for item in manifest.items] == [
        "isolated",
        "volts",
        "sig-worker",
        "consent",
    ]
    opened = message.opened[manifest.personal or ""]
    assert opened.answers == {"isolated": True, "volts": "231"}
    assert opened.names == {"sig-worker": "Ann Onym", "consent": "Frau Müller"}
    assert b"Onym" not in done.command.parts.payload
    assert it.device.journal.draft(TASK, PROOF_FORM) is None
    assert [outcome.status for outcome in it.answer_all()] == ["committed"]
    assert it.story.state.state == "proof_pending"


def test_a_proof_that_cannot_be_submitted_now_stays_as_it_is(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile", "accepted")
    proof.answer(it.device, TASK, "volts", "231")
    with pytest.raises(ActRefusedError) as raised:
        submission.submit_proof(it.device, TASK, incomplete=True)
    assert raised.value.code == "state_not_allowed"
    assert proof.proof_status(it.device, TASK).draft.answers == {"volts": "231"}


def test_a_full_disk_while_submitting_keeps_the_draft_and_says_so(it: Laptop) -> None:
    proof.answer(it.device, TASK, "volts", "231")
    it.reopen(machine_for_tests(failing_at("unsent.write.before", 28)))
    with pytest.raises(StorageError):
        submission.submit_proof(it.device, TASK, incomplete=True)
    it.reopen(machine_for_tests())
    assert proof.proof_status(it.device, TASK).draft.answers == {"volts": "231"}
    assert it.device.journal.pending() == ()


def test_what_was_gathered_for_a_job_that_went_away_can_be_handed_over(it: Laptop) -> None:
    with pytest.raises(ServiceError) as raised:
        submission.hand_over(it.device, TASK)
    assert raised.value.code == "nothing_gathered"
    add_photo(it.device, TASK, take_photo(it))
    it.story.tell("release")
    it.pull(removed="released")
    done = submission.hand_over(it.device, TASK)
    assert done.command is not None
    assert done.command.name == "hand_over"
    (outcome,) = it.answer_all()
    assert [event.type for event in outcome.events] == ["evidence.handed_over"]
    assert it.story.state.manifests[-1].status == "handed_over"


def test_a_proof_that_was_returned_is_begun_anew_and_can_be_submitted(it: Laptop) -> None:
    submission.submit_proof(it.device, TASK, incomplete=True)
    it.answer_all()
    manifest_id = it.story.state.current_manifest_id
    it.story.tell("reject_proof", manifest_id=manifest_id)
    it.pull()
    assert acts.situation(it.device, TASK).task.state == "in_progress"
    proof.answer(it.device, TASK, "volts", "230")
    submission.submit_proof(it.device, TASK, incomplete=True)
    assert [outcome.status for outcome in it.answer_all()] == ["committed"]
    assert it.story.state.current_manifest_id != manifest_id


def test_items_never_share_an_id_whatever_the_policy_calls_its_own() -> None:
    photo = DraftPhoto(slot="after", hash="aa" * 32, size=1, media_type="image/jpeg")
    draft = ProofDraft(
        policy_version="00" * 32,
        answers={"after-1": True, "after-2": "x", "consent": "y", "sig-worker": "z"},
        photos=(photo, DraftPhoto(slot="after", hash="bb" * 32, size=1, media_type="image/png")),
    )
    names = [item.item_id for item in gather(draft).items]
    assert names == ["after-1", "after-2", "consent", "sig-worker", "after-3", "after-4"]


def test_a_draft_that_cannot_be_read_is_said_and_is_not_overwritten(it: Laptop) -> None:
    it.device.journal.save_draft(TASK, PROOF_FORM, b"{broken")
    for attempt in (
        lambda: proof.answer(it.device, TASK, "volts", "1"),
        lambda: proof.proof_status(it.device, TASK),
        lambda: submission.submit_proof(it.device, TASK, incomplete=True),
    ):
        with pytest.raises(ServiceError) as raised:
            attempt()
        assert raised.value.code == "draft_unreadable"
    saved = it.device.journal.draft(TASK, PROOF_FORM)
    assert saved is not None
    assert saved.content == b"{broken"


def test_a_manifest_is_the_same_bytes_however_often_it_is_read(it: Laptop) -> None:
    submission.submit_proof(it.device, TASK, incomplete=True)
    (first,) = it.device.journal.pending()
    (again,) = it.reopen().journal.pending()
    texts = [getattr(queued.command(), "manifest", "") for queued in (first, again)]
    assert texts[0] == texts[1]
    assert decode_manifest(texts[0]).task_id == TASK
