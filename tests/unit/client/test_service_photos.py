"""Photos are taken as they are; what looks odd about one is remarked, and never blocks it."""

from pathlib import Path

import pytest
from blake3 import blake3
from msgspec.structs import replace

from support.commands import make_policy
from support.laptop import TASK, Laptop, laptop
from support.pictures import PHOTOS, picture, place
from workmate_client.journal.source import SourceError
from workmate_client.service import photos, proof, submission
from workmate_client.service.device import ServiceError
from workmate_shared.tasks.manifest import PhotoItem
from workmate_shared.tasks.policy import PhotoSlot
from workmate_shared.tasks.task import decode_manifest

NOW = "2026:03:01 09:55:00"
AT_SITE = place("40 35 11", "N", "73 55 57", "W", "5")


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile", "in_progress")


def saved(it: Laptop, content: bytes, name: str = "IMG_0412.jpg") -> Path:
    path = it.folder.parent / name
    path.write_bytes(content)
    return path


def codes(added: photos.AddedPhoto) -> set[str]:
    return {remark.code for remark in added.remarks}


def test_a_good_photo_is_kept_as_it_is_with_time_and_place_and_without_a_remark(
    it: Laptop,
) -> None:
    content = picture(taken=NOW, offset="+01:00", gps=AT_SITE)
    added = photos.add_photo(it.device, TASK, saved(it, content))
    item = added.evidence
    assert (added.added, codes(added)) == (True, set())
    assert item.hash == blake3(content).hexdigest()
    assert b"".join(it.device.sealed.open_chunks(item.sealed_name)) == content
    assert (item.media_type, item.slot, item.file_name) == ("image/jpeg", "after", "IMG_0412.jpg")
    assert (item.captured_at, item.captured_from) == ("2026-03-01T09:55:00+01:00", "exif")
    assert item.fix is not None
    assert item.fix.source == "exif"
    assert it.reopen().journal.evidence(TASK) == (item,)
    (photo,) = proof.proof_status(it.device, TASK).draft.photos
    assert (photo.hash, photo.captured_at, photo.fix) == (item.hash, item.captured_at, item.fix)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (picture(), {"no_time", "no_position"}),
        (picture(taken="2026:02:20 09:00:00", offset="+01:00", gps=AT_SITE), {"looks_old"}),
        (picture(taken="2026:03:01 23:00:00", offset="+01:00", gps=AT_SITE), {"looks_early"}),
        (
            picture(taken=NOW, offset="+01:00", gps=place("40 40 0", "N", "73 55 57", "W")),
            {"looks_far"},
        ),
        (picture(taken="2026:03:01 08:55:00", gps=AT_SITE), {"zone_assumed"}),
        (b"\xff\xd8\xff\xe1 broken", {"exif_unreadable", "no_time", "no_position"}),
        (b"%PDF-1.7 not a photo", {"not_an_image", "no_time", "no_position"}),
    ],
    ids=["bare", "old", "early", "far", "no zone", "broken", "not an image"],
)
def test_what_looks_odd_is_remarked_and_the_photo_counts_all_the_same(
    it: Laptop, content: bytes, expected: set[str]
) -> None:
    added = photos.add_photo(it.device, TASK, saved(it, content))
    assert codes(added) == expected
    assert added.added
    assert all(remark.sentence for remark in added.remarks)
    advice = {remark.code for remark in proof.proof_status(it.device, TASK).advice}
    assert expected <= advice


def test_the_same_file_twice_is_one_piece_of_evidence_and_said(it: Laptop) -> None:
    content = picture(taken=NOW, offset="+01:00", gps=AT_SITE)
    first = photos.add_photo(it.device, TASK, saved(it, content))
    again = photos.add_photo(it.device, TASK, saved(it, content, "copy.jpg"))
    assert (again.added, codes(again)) == (False, {"same_file"})
    assert it.device.journal.evidence() == (first.evidence,)
    names = it.device.sealed.inventory([first.evidence.sealed_name])
    assert (names.unlisted, names.missing) == ((), ())
    assert len(again.draft.photos) == 1


def test_a_photo_of_another_job_is_remarked_and_stored_once(it: Laptop) -> None:
    content = picture(color=9)
    first = photos.add_photo(it.device, TASK, saved(it, content))
    it.device.journal.add_evidence(replace(first.evidence, task_id="another-job"))
    with it.device.journal._database.write() as connection:
        connection.exec_driver_sql("DELETE FROM evidence_item WHERE task_id <> 'another-job'")
    again = photos.add_photo(it.device, TASK, saved(it, content))
    assert "already_used" in codes(again)
    assert again.evidence.sealed_name == first.evidence.sealed_name
    assert it.device.sealed.inventory([again.evidence.sealed_name]).unlisted == ()


def test_a_slot_is_chosen_by_name_or_is_the_first_that_is_not_full(tmp_path: Path) -> None:
    policy = make_policy(
        photos=(PhotoSlot(slot="before", prompt="?"), PhotoSlot(slot="after", prompt="?", max=2))
    )
    it = laptop(tmp_path / "profile", "in_progress", proof_policy=policy)
    slots = [
        photos.add_photo(it.device, TASK, saved(it, picture(color=color))).slot
        for color in (1, 2, 3)
    ]
    assert slots == ["before", "after", "after"]
    chosen = photos.add_photo(it.device, TASK, saved(it, picture(color=4)), "before")
    assert chosen.slot == "before"
    missing = {remark.code for remark in proof.proof_status(it.device, TASK).missing}
    assert "too_many_photos" in missing
    with pytest.raises(ServiceError) as raised:
        photos.add_photo(it.device, TASK, saved(it, picture()), "inside")
    assert raised.value.code == "slot_unknown"
    assert "before, after" in raised.value.detail


def test_a_photo_taken_out_of_the_proof_stays_as_evidence(it: Laptop) -> None:
    added = photos.add_photo(it.device, TASK, saved(it, picture()))
    assert photos.remove_photo(it.device, TASK, added.evidence.hash).photos == ()
    assert len(it.device.journal.evidence()) == 1
    with pytest.raises(ServiceError) as raised:
        photos.remove_photo(it.device, TASK, added.evidence.hash)
    assert raised.value.code == "photo_unknown"


def test_a_file_that_is_not_there_is_refused_and_nothing_is_listed(it: Laptop) -> None:
    with pytest.raises(SourceError) as raised:
        photos.add_photo(it.device, TASK, it.folder.parent / "gone.jpg")
    assert raised.value.code == "source_missing"
    assert it.device.journal.evidence() == ()


def test_the_manifest_names_the_original_bytes_and_its_fix_lies_in_the_values(
    it: Laptop,
) -> None:
    content = picture(taken=NOW, offset="+01:00", gps=AT_SITE)
    added = photos.add_photo(it.device, TASK, saved(it, content))
    done = submission.submit_proof(it.device, TASK, incomplete=True)
    assert done.command is not None
    manifest = decode_manifest(done.command.command().manifest)  # type: ignore[attr-defined]
    (item,) = manifest.items
    assert isinstance(item, PhotoItem)
    assert (item.item_id, item.hash, item.size) == ("after-1", added.evidence.hash, len(content))
    assert item.captured_at == "2026-03-01T09:55:00+01:00"
    assert manifest.position in done.command.parts.disclosures
    assert manifest.personal is None
    assert str(added.evidence.fix.lat_e7) not in str(manifest)  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "content"), PHOTOS)
def test_a_photo_is_kept_byte_by_byte(it: Laptop, name: str, content: bytes) -> None:
    added = photos.add_photo(it.device, TASK, saved(it, content, name))
    assert added.evidence.hash == blake3(content).hexdigest()
    assert added.evidence.media_type == "image/jpeg"
