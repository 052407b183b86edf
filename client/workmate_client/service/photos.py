"""Add a photo to the proof of a job: copied, sealed, hashed as it is; then its metadata is read.

Nothing about a photo blocks it: what looks old, far, used or broken is remarked, to the worker and
later to the supervisor. Its original bytes are the evidence; no copy of them is ever altered.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from workmate_client.journal.media import HEAD_BYTES, media_type
from workmate_client.journal.rows import EvidenceItem
from workmate_client.journal.sealed import Progress, SealedEvidence, no_progress
from workmate_client.service.acts import situation
from workmate_client.service.copies import keep_one_copy
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.drafts import PROOF_FORM, DraftPhoto, ProofDraft, read_draft, site_of
from workmate_client.service.exif import HEAD_BYTES as CAMERA_BYTES
from workmate_client.service.exif import CameraFacts, read_camera_facts
from workmate_client.service.proof import ProofRemark, changed_by, edit_draft, remark
from workmate_client.service.situation import Situation
from workmate_client.service.wording import visible_name
from workmate_client.sync.evidence import files_named
from workmate_shared.kernel.command import CLOCK_TOLERANCE_SECONDS
from workmate_shared.kernel.instants import seconds_between
from workmate_shared.tasks.policy import PhotoSlot
from workmate_shared.tasks.proof import distance_m

FAR_METRES = 1000
"""From the site at this distance, beyond its accuracy, a photo is remarked where there is no fence."""


class AddedPhoto(Struct, frozen=True, kw_only=True):
    """A photo as it was taken up, what was remarked about it, and whether it is new in the proof."""

    evidence: EvidenceItem
    slot: str
    added: bool
    remarks: tuple[ProofRemark, ...]
    draft: ProofDraft


def add_photo(
    device: Device,
    task_id: str,
    path: Path,
    slot: str | None = None,
    progress: Progress = no_progress,
) -> AddedPhoto:
    """Take a file as a photo of a slot; without a slot, of the only one or of the first not full.

    The same file twice is one piece of evidence; adding it again heals a copy that was damaged or
    lost, also for a proof that was handed in. Raises ServiceError `slot_unknown`, SourceError
    about the file, StorageError about the place where it is kept.
    """
    found = situation(device, task_id)
    saved = device.journal.draft(task_id, PROOF_FORM)
    draft = read_draft(saved.content if saved else None, found.task.policy_version)
    chosen = _slot(found, draft, slot)
    sealed = device.sealed.import_file(path, progress)
    item, codes = _described(device, found, sealed, path, chosen)
    earlier = device.journal.evidence_by_hash(item.hash)
    kept = keep_one_copy(device, sealed)
    known = device.journal.evidence_by_hash(item.hash)
    here = [other for other in known if other.task_id == task_id]
    healed = any(other not in known for other in earlier if other.task_id == task_id)
    if any(other.task_id not in (task_id, "") for other in known):
        codes = (*codes, "already_used")
    item = here[0] if here else msgspec.structs.replace(item, sealed_name=kept, remarks=codes)
    added = not any((p.hash, p.slot) == (item.hash, chosen.slot) for p in draft.photos)
    if healed and saved is None and _was_handed_in(found, item.hash):
        # It belongs to the proof that is on its way, and not to a new one.
        added = False
    else:
        change = changed_by(lambda old: _with_photo(old, _photo(item, chosen.slot)), found)
        device.journal.add_evidence(item, form=PROOF_FORM, change=change)
    saved = device.journal.draft(task_id, PROOF_FORM)
    codes = item.remarks
    if healed:
        codes = (*codes, "healed")
    elif here or not added:
        codes = (*codes, "same_file")
    return AddedPhoto(
        evidence=item,
        slot=chosen.slot,
        added=added,
        remarks=tuple(remark(code, chosen.slot) for code in codes),
        draft=read_draft(saved.content if saved else None, found.task.policy_version),
    )


def _was_handed_in(found: Situation, content_hash: str) -> bool:
    """Whether a proof that is not being worked on any more names the file."""
    named = any(content_hash in files_named(act.command) for act in found.acts)
    return named and found.task.state != "in_progress"


def remove_photo(device: Device, task_id: str, content_hash: str) -> ProofDraft:
    """Take a photo out of the proof; the file itself stays as evidence. See `edit_draft`."""

    def edit(draft: ProofDraft) -> ProofDraft:
        photos = tuple(photo for photo in draft.photos if photo.hash != content_hash)
        if photos == draft.photos:
            raise ServiceError("photo_unknown", f"{content_hash} is no photo of this proof")
        return msgspec.structs.replace(draft, photos=photos)

    return edit_draft(device, task_id, edit)


def _slot(found: Situation, draft: ProofDraft, name: str | None) -> PhotoSlot:
    slots = found.task.proof_policy.photos
    named = [slot for slot in slots if name in (None, slot.slot)]
    if not named:
        listed = ", ".join(slot.slot for slot in slots) or "none"
        raise ServiceError(
            "slot_unknown", f"no photo {name or ''} is asked for; there are: {listed}"
        )
    taken = [photo.slot for photo in draft.photos]
    free = [slot for slot in named if taken.count(slot.slot) < slot.max]
    return (free or named)[0]


def _described(
    device: Device, found: Situation, sealed: SealedEvidence, path: Path, slot: PhotoSlot
) -> tuple[EvidenceItem, tuple[str, ...]]:
    head = device.sealed.read_range(sealed.name, 0, CAMERA_BYTES)
    kind = media_type(head[:HEAD_BYTES])
    now = device.clock.now()
    facts = read_camera_facts(head, kind, now.tzinfo)
    item = EvidenceItem(
        task_id=found.task_id,
        hash=sealed.hash,
        size_bytes=sealed.size_bytes,
        sealed_name=sealed.name,
        kind="photo",
        media_type=kind,
        file_name=visible_name(path),
        slot=slot.slot,
        captured_at=facts.captured_at,
        captured_from=facts.captured_from,
        fix=facts.fix,
        added_at=device.now(),
    )
    return item, tuple(_remarks(facts, item, found, slot))


def _remarks(
    facts: CameraFacts, item: EvidenceItem, found: Situation, slot: PhotoSlot
) -> list[str]:
    codes = []
    if not item.media_type.startswith("image/"):
        codes.append("not_an_image")
    if not facts.readable:
        codes.append("exif_unreadable")
    if facts.captured_from == "exif_zone_assumed":
        codes.append("zone_assumed")
    if facts.captured_at is None:
        codes.append("no_time")
    elif _looks_old(facts.captured_at, item.added_at, found, slot):
        codes.append("looks_old")
    elif seconds_between(item.added_at, facts.captured_at) > CLOCK_TOLERANCE_SECONDS:
        codes.append("looks_early")
    if facts.fix is None:
        codes.append("no_position")
    elif _looks_far(facts, found):
        codes.append("looks_far")
    return codes


def _looks_old(captured_at: str, now: str, found: Situation, slot: PhotoSlot) -> bool:
    if slot.max_age_seconds is not None:
        return seconds_between(captured_at, now) > slot.max_age_seconds
    began = found.task.state_entered_at
    return seconds_between(captured_at, began) > CLOCK_TOLERANCE_SECONDS


def _looks_far(facts: CameraFacts, found: Situation) -> bool:
    site, fix = site_of(found), facts.fix
    if site is None or fix is None or site.lat_e7 is None or site.lon_e7 is None:
        return False
    away = distance_m(site.lat_e7, site.lon_e7, fix.lat_e7, fix.lon_e7)
    return away - (fix.accuracy_m or 0) > (found.task.proof_policy.geofence_m or FAR_METRES)


def _photo(item: EvidenceItem, slot: str) -> DraftPhoto:
    return DraftPhoto(
        slot=slot,
        hash=item.hash,
        size=item.size_bytes,
        media_type=item.media_type,
        captured_at=item.captured_at,
        fix=item.fix,
    )


def _with_photo(draft: ProofDraft, photo: DraftPhoto) -> ProofDraft:
    if any((p.hash, p.slot) == (photo.hash, photo.slot) for p in draft.photos):
        return draft
    return msgspec.structs.replace(draft, photos=(*draft.photos, photo))
