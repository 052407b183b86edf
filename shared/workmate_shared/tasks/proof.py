"""Evaluate a manifest against its policy: one pure function for the device and the server.

`evaluate` returns what stands between the proof and completion; an empty tuple is a pass. `advise`
returns what a supervisor should see and what blocks nothing: a GPS that lies strands nobody.
"""

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from workmate_shared.kernel.instants import seconds_between
from workmate_shared.kernel.lifecycle import Blob, Context
from workmate_shared.tasks import policy as p
from workmate_shared.tasks.manifest import (
    AnswerItem,
    ConsentItem,
    Manifest,
    PhotoItem,
    SignatureItem,
)
from workmate_shared.tasks.values import Fix, ManifestPersonal, SitePosition

EARTH_RADIUS_M = 6_371_008.8

_DECIMAL = re.compile(p.DECIMAL_PATTERN)


class Finding(Struct, frozen=True, omit_defaults=True):
    """One thing missing or wrong: a stable code, what it is about, and public numbers."""

    code: str
    about: str
    wanted: str | None = None
    found: str | None = None

    def public(self) -> dict[str, str]:
        """Return the finding as public details of an outcome."""
        fields = (("code", self.code), ("about", self.about), ("wanted", self.wanted))
        return {name: value for name, value in fields if value is not None}


class Facts(Struct, frozen=True, kw_only=True):
    """What evaluation knows besides policy and manifest.

    `blobs` is None on a device that judges before anything was uploaded: then files count as held.
    """

    personal: ManifestPersonal = ManifestPersonal()
    fixes: Mapping[str, Fix] = {}
    blobs: Mapping[str, Blob] | None = None
    site: SitePosition | None = None
    policy_version: str | None = None
    submitted_at: str | None = None


def facts_for(state: Any, record: Any, context: Context) -> Facts:
    """Return the facts of a submitted manifest from the values and files of the context."""
    manifest: Manifest = context.manifest
    opened = context.opened
    return Facts(
        personal=opened.get(manifest.personal or "") or ManifestPersonal(),
        fixes=opened.get(manifest.position or "") or {},
        blobs=context.blobs,
        site=opened.get(state.position or ""),
        policy_version=state.policy_version,
        submitted_at=record.submitted_at,
    )


def evaluate(policy: p.ProofPolicy, manifest: Manifest, facts: Facts) -> tuple[Finding, ...]:
    """Return every finding that keeps the proof from completing the task, in policy order."""
    return tuple(_findings(policy, manifest, facts))


def _findings(policy: p.ProofPolicy, manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    if facts.policy_version is not None and manifest.policy_version != facts.policy_version:
        yield Finding("policy_differs", "policy", facts.policy_version, manifest.policy_version)
    answered = {item.item_id for item in manifest.items if isinstance(item, AnswerItem)}
    for item in policy.checklist:
        answer = facts.personal.answers.get(item.item_id) if item.item_id in answered else None
        yield from _judge_answer(item, answer)
    photos = [item for item in manifest.items if isinstance(item, PhotoItem)]
    for slot in policy.photos:
        yield from _judge_slot(slot, [photo for photo in photos if photo.slot == slot.slot], facts)
    slots = {slot.slot for slot in policy.photos}
    for photo in photos:
        if photo.slot not in slots:
            yield Finding("slot_unknown", photo.item_id, found=photo.slot)
        if not photo.media_type.startswith("image/"):
            yield Finding("not_an_image", photo.item_id, "image/*", photo.media_type)
    yield from _judge_people(policy, manifest, facts)
    if policy.geofence_enforce:
        yield from _judge_place(policy, manifest, facts)
    yield from _judge_files(manifest, facts)


def advise(policy: p.ProofPolicy, manifest: Manifest, facts: Facts) -> tuple[Finding, ...]:
    """Return remarks that block nothing: a fix outside a fence that is not enforced."""
    return () if policy.geofence_enforce else tuple(_judge_place(policy, manifest, facts))


def _judge_answer(item: p.ChecklistItem, answer: bool | str | None) -> Iterator[Finding]:
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        if item.required:
            yield Finding("answer_missing", item.item_id)
        return
    wrong = check_answer(item, answer)
    if wrong is not None:
        yield wrong
        return
    if item.passes is None:
        return
    passed = (
        Decimal(str(answer)) == Decimal(item.passes)
        if isinstance(item, p.NumberItem)
        else answer == item.passes
    )
    if not passed:
        wanted = item.passes if isinstance(item.passes, str) else str(item.passes).lower()
        yield Finding("answer_does_not_pass", item.item_id, wanted)


def check_answer(item: p.ChecklistItem, answer: bool | str) -> Finding | None:
    """Return why the answer is not one of the item's kind, or None where it is."""
    if isinstance(item, p.ConfirmItem):
        good = isinstance(answer, bool)
        return None if good else Finding("answer_invalid", item.item_id, "yes or no")
    if not isinstance(answer, str):
        return Finding("answer_invalid", item.item_id, "text")
    match item:
        case p.NumberItem():
            return _check_number(item, answer)
        case p.ChoiceItem() if answer not in item.options:
            return Finding("answer_invalid", item.item_id, " or ".join(item.options))
        case p.DateItem():
            return (
                None if p.is_date(answer) else Finding("answer_invalid", item.item_id, "YYYY-MM-DD")
            )
    return None


def _check_number(item: p.NumberItem, answer: str) -> Finding | None:
    unit = f" {item.unit}" if item.unit else ""
    if not is_decimal(answer):
        return Finding("answer_invalid", item.item_id, f"a number{unit}")
    number = Decimal(answer)
    low, high = item.min, item.max
    if (low is not None and number < Decimal(low)) or (high is not None and number > Decimal(high)):
        bounds = f"{low or 'any'} to {high or 'any'}{unit}"
        return Finding("answer_out_of_bounds", item.item_id, bounds)
    return None


def is_decimal(text: str) -> bool:
    """Whether the text is a decimal number of at most 18 digits either side of the point."""
    return _DECIMAL.fullmatch(text) is not None


def _judge_slot(slot: p.PhotoSlot, photos: list[PhotoItem], facts: Facts) -> Iterator[Finding]:
    different = {photo.hash for photo in photos}
    if len(different) < slot.min:
        yield Finding("photos_missing", slot.slot, str(slot.min), str(len(different)))
    if len(photos) > slot.max:
        yield Finding("too_many_photos", slot.slot, str(slot.max), str(len(photos)))
    for photo in photos:
        if slot.position_required and photo.item_id not in facts.fixes:
            yield Finding("photo_without_position", photo.item_id)
        if slot.max_age_seconds is not None and facts.submitted_at is not None:
            if photo.captured_at is None:
                yield Finding("photo_without_time", photo.item_id)
            elif seconds_between(photo.captured_at, facts.submitted_at) > slot.max_age_seconds:
                yield Finding("photo_too_old", photo.item_id, f"{slot.max_age_seconds} s")


def _judge_people(policy: p.ProofPolicy, manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    signed = {item.signer: item for item in manifest.items if isinstance(item, SignatureItem)}
    for signer in policy.signature:
        item = signed.get(signer)
        if item is None:
            yield Finding("signature_missing", signer)
        elif not item.refused and not facts.personal.names.get(item.item_id, "").strip():
            yield Finding("name_missing", item.item_id)
    if policy.consent is None:
        return
    wanted = policy.consent.text_version
    consents = [item for item in manifest.items if isinstance(item, ConsentItem)]
    if not consents:
        yield Finding("consent_missing", "consent", wanted)
    for consent in consents:
        if consent.text_version != wanted:
            yield Finding("consent_differs", consent.item_id, wanted, consent.text_version)
        elif not facts.personal.names.get(consent.item_id, "").strip():
            yield Finding("name_missing", consent.item_id)


def _judge_place(policy: p.ProofPolicy, manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    site = facts.site
    if policy.geofence_m is None or site is None or site.lat_e7 is None or site.lon_e7 is None:
        return
    for item in manifest.items:
        fix = facts.fixes.get(item.item_id)
        if fix is None:
            continue
        away = distance_m(site.lat_e7, site.lon_e7, fix.lat_e7, fix.lon_e7)
        if away - (fix.accuracy_m or 0) > policy.geofence_m:
            yield Finding("outside_fence", item.item_id, f"{policy.geofence_m} m")


def _judge_files(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    if facts.blobs is None:
        return
    for name in manifest.hashes():
        blob = facts.blobs.get(name)
        if blob is None or not blob.verified:
            yield Finding("file_missing", name)
    for item in manifest.items:
        if not isinstance(item, PhotoItem | SignatureItem) or item.hash is None:
            continue
        blob = facts.blobs.get(item.hash)
        if blob is not None and blob.size not in (None, item.size):
            yield Finding("size_differs", item.item_id, f"{blob.size} bytes", f"{item.size} bytes")


def distance_m(lat_e7: int, lon_e7: int, other_lat_e7: int, other_lon_e7: int) -> float:
    """Return the great-circle distance in metres between two points in 1e-7 degree (haversine)."""
    lat, lon = math.radians(lat_e7 / 1e7), math.radians(lon_e7 / 1e7)
    other_lat, other_lon = math.radians(other_lat_e7 / 1e7), math.radians(other_lon_e7 / 1e7)
    half = (
        math.sin((other_lat - lat) / 2) ** 2
        + math.cos(lat) * math.cos(other_lat) * math.sin((other_lon - lon) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))
