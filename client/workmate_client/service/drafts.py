"""A proof in the making: what has been gathered for a task, and the manifest that it becomes.

A draft is saved on every change and holds no bytes of files, only what names them. The manifest is
made from it once, when the proof is submitted or handed over.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from workmate_client.journal.authoring import Value
from workmate_client.service.device import ServiceError
from workmate_client.service.situation import Situation
from workmate_shared.tasks.manifest import (
    AnswerItem,
    ConsentItem,
    Manifest,
    ManifestItem,
    PhotoItem,
    SignatureItem,
)
from workmate_shared.tasks.policy import Signer
from workmate_shared.tasks.proof import Facts
from workmate_shared.tasks.values import Fix, ManifestPersonal, SitePosition

PROOF_FORM = "proof"
"""The name under which a task's proof in the making is kept."""


class DraftPhoto(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One photo of the proof: the file, its slot, and what its camera told."""

    slot: str
    hash: str
    size: int
    media_type: str
    captured_at: str | None = None
    fix: Fix | None = None


class DraftSignature(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name and the drawing of it, or a refusal to sign and its reason."""

    name: str | None = None
    refused: str | None = None
    hash: str | None = None
    size: int | None = None
    media_type: str | None = None
    signed_at: str


class DraftConsent(Struct, frozen=True):
    """Who agreed to which version of the text, and when."""

    name: str
    text_version: str
    agreed_at: str


class ProofDraft(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything gathered so far, and the version of the policy that it was begun under."""

    policy_version: str
    answers: dict[str, bool | str] = {}
    photos: tuple[DraftPhoto, ...] = ()
    signatures: dict[Signer, DraftSignature] = {}
    consent: DraftConsent | None = None
    notes: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been gathered."""
        gathered = (self.answers, self.photos, self.signatures, self.consent, self.notes)
        return not any(gathered)


class Gathered(Struct, frozen=True):
    """A draft as manifest items, with the values that belong to them."""

    items: tuple[ManifestItem, ...]
    personal: ManifestPersonal
    fixes: dict[str, Fix]


def read_draft(content: bytes | None, policy_version: str) -> ProofDraft:
    """Return a saved draft, or a new one. Raises ServiceError `draft_unreadable`."""
    if content is None:
        return ProofDraft(policy_version=policy_version)
    try:
        return msgspec.json.decode(content, type=ProofDraft)
    except msgspec.DecodeError as error:
        raise ServiceError("draft_unreadable", "the saved proof cannot be read") from error


def gather(draft: ProofDraft) -> Gathered:
    """Return the manifest items of a draft: answers first, each item under an id of its own."""
    taken = set(draft.answers)
    items: list[ManifestItem] = [AnswerItem(item_id=item_id) for item_id in draft.answers]
    names: dict[str, str] = {}
    fixes: dict[str, Fix] = {}
    notes = [draft.notes] if draft.notes else []
    for photo in draft.photos:
        item_id = _free_id(photo.slot, taken, start=1)
        items.append(_photo_item(item_id, photo))
        if photo.fix is not None:
            fixes[item_id] = photo.fix
    for signer, signature in draft.signatures.items():
        item_id = _free_id(f"sig-{signer}", taken)
        items.append(_signature_item(item_id, signer, signature))
        if signature.name:
            names[item_id] = signature.name
        if signature.refused:
            notes.append(f"{item_id}: {signature.refused}")
    if draft.consent is not None:
        item_id = _free_id("consent", taken)
        items.append(ConsentItem(item_id=item_id, text_version=draft.consent.text_version))
        names[item_id] = draft.consent.name
    personal = ManifestPersonal(answers=draft.answers, names=names, notes="\n".join(notes) or None)
    return Gathered(tuple(items), personal, fixes)


def _free_id(stem: str, taken: set[str], start: int = 0) -> str:
    candidates: Iterator[str] = (
        f"{stem}-{number}" if number else stem for number in range(start, len(taken) + start + 1)
    )
    item_id = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(item_id)
    return item_id


def _photo_item(item_id: str, photo: DraftPhoto) -> PhotoItem:
    return PhotoItem(
        item_id=item_id,
        slot=photo.slot,
        hash=photo.hash,
        size=photo.size,
        media_type=photo.media_type,
        captured_at=photo.captured_at,
    )


def _signature_item(item_id: str, signer: Signer, signature: DraftSignature) -> SignatureItem:
    return SignatureItem(
        item_id=item_id,
        signer=signer,
        refused=signature.refused is not None,
        hash=signature.hash,
        size=signature.size,
        media_type=signature.media_type,
        captured_at=signature.signed_at,
    )


def manifest_of(
    gathered: Gathered,
    found: Situation,
    *,
    manifest_id: str,
    capture_time: str,
    personal: str | None = None,
    position: str | None = None,
) -> Manifest:
    """Return the manifest of what was gathered, with the two commitments to its values."""
    task = found.task
    return Manifest(
        manifest_id=manifest_id,
        task_id=task.task_id,
        task_version=found.base_version,
        capture_time=capture_time,
        policy_version=task.policy_version,
        articles=task.pinned_articles,
        retention_class=task.proof_policy.retention.photo,
        items=gathered.items,
        personal=personal,
        position=position,
    )


def values_of(gathered: Gathered, found: Situation) -> tuple[Value | None, Value | None]:
    """Return the personal value and the fixes of a manifest, each None where there is nothing."""
    retention = found.task.proof_policy.retention
    personal = gathered.personal
    has_personal = personal != ManifestPersonal()
    return (
        Value(personal, retention.personal) if has_personal else None,
        Value(gathered.fixes, retention.position) if gathered.fixes else None,
    )


def facts_of(gathered: Gathered, found: Situation, now: str) -> Facts:
    """Return what the policy's findings are judged by on the device: files here count as held."""
    return Facts(
        personal=gathered.personal,
        fixes=gathered.fixes,
        blobs=None,
        site=site_of(found),
        policy_version=found.task.policy_version,
        submitted_at=now,
    )


def site_of(found: Situation) -> SitePosition | None:
    """Return where the job is, if that is known here."""
    position = found.task.position
    value = found.opened(position) if position else None
    try:
        return msgspec.convert(value, SitePosition) if value else None
    except msgspec.ValidationError:
        return None
