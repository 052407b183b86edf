"""What is said to be saved can be read: a copy that was lost or damaged is told, and healed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.laptop import TASK, Laptop, laptop
from support.pictures import picture
from workmate_client.service import photos, proof, submission
from workmate_client.service.drafts import PROOF_FORM
from workmate_client.service.submission import ProofIncompleteError


def remove(path: Path) -> None:
    path.unlink()


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


SPOILING = [remove, damage, cut]


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile", "in_progress")


def photo_of(it: Laptop) -> Path:
    path = it.folder.parent / "photo.jpg"
    path.write_bytes(picture())
    return path


def copy_of(it: Laptop, name: str) -> Path:
    return it.folder / "evidence" / f"{name}.sealed"


@pytest.mark.parametrize("spoil", SPOILING)
def test_adding_a_photo_again_replaces_a_copy_that_is_gone_or_damaged(
    it: Laptop, spoil: Callable[[Path], None]
) -> None:
    path = photo_of(it)
    first = photos.add_photo(it.device, TASK, path).evidence
    it.device.journal.quarantine(TASK, first.hash, "sealed_file_missing")
    it.device.journal.add_notice("evidence_missing", first.sealed_name)
    spoil(copy_of(it, first.sealed_name))
    again = photos.add_photo(it.device, TASK, path)
    assert "healed" in {remark.code for remark in again.remarks}
    (item,) = it.device.journal.evidence()
    assert (item.quarantined, item.wait_code) == (None, None)
    assert it.device.journal.notices() == ()
    assert b"".join(it.device.sealed.open_chunks(item.sealed_name)) == path.read_bytes()
    inventory = it.device.sealed.inventory([item.sealed_name])
    assert (inventory.unlisted, inventory.missing) == ((), ())
    assert len(again.draft.photos) == 1


def test_a_signature_by_the_same_name_heals_a_drawing_that_is_gone(it: Laptop) -> None:
    proof.sign(it.device, TASK, "worker", name="Ann Onym")
    (item,) = it.device.journal.evidence()
    copy_of(it, item.sealed_name).unlink()
    proof.sign(it.device, TASK, "worker", name="Ann Onym")
    (item,) = it.device.journal.evidence()
    assert it.device.sealed.verify_file(item.sealed_name, item.hash).hash == item.hash


@pytest.mark.parametrize("spoil", SPOILING)
def test_a_draft_whose_file_is_spoilt_is_not_submitted_unless_the_worker_insists(
    it: Laptop, spoil: Callable[[Path], None]
) -> None:
    item = photos.add_photo(it.device, TASK, photo_of(it)).evidence
    codes = {remark.code for remark in proof.proof_status(it.device, TASK).missing}
    assert "file_damaged" not in codes
    spoil(copy_of(it, item.sealed_name))
    (remark,) = [r for r in proof.proof_status(it.device, TASK).missing if r.code == "file_damaged"]
    assert remark.sentence == "after: the file is damaged or gone; add it again"
    with pytest.raises(ProofIncompleteError) as raised:
        submission.submit_proof(it.device, TASK)
    assert "file_damaged" in {found.code for found in raised.value.missing}
    assert submission.submit_proof(it.device, TASK, incomplete=True).state == "proof_pending"


def test_a_file_of_a_proof_that_was_handed_in_is_healed_without_a_new_proof(it: Laptop) -> None:
    path = photo_of(it)
    item = photos.add_photo(it.device, TASK, path).evidence
    submission.submit_proof(it.device, TASK, incomplete=True)
    copy_of(it, item.sealed_name).unlink()
    assert it.reopen().journal.evidence()[0].quarantined == "sealed_file_missing"
    again = photos.add_photo(it.device, TASK, path)
    assert not again.added
    assert it.device.journal.draft(TASK, PROOF_FORM) is None
    (healed,) = it.device.journal.evidence()
    assert healed.quarantined is None
    assert it.device.sealed.verify_file(healed.sealed_name, healed.hash).hash == healed.hash


def test_a_file_whose_name_is_not_text_is_taken_and_its_name_is_spelled_out(it: Laptop) -> None:
    path = it.folder.parent / "caf\udce9.jpg"
    path.write_bytes(picture())
    added = photos.add_photo(it.device, TASK, path)
    assert added.evidence.file_name == "caf\\xe9.jpg"
    names = [item.sealed_name for item in it.reopen().journal.evidence()]
    assert it.device.sealed.inventory(names).unlisted == ()
