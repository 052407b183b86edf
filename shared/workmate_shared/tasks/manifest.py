"""The evidence manifest: one byte string that lists everything gathered for one proof.

It is made once, where the evidence was captured, and survives every redo unchanged. Answers and
names lie under its one personal commitment, fixes under its one position commitment.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from workmate_shared.kernel.hashing import blake3_hex
from workmate_shared.kernel.ids import Commitment, HashHex, Identifier
from workmate_shared.kernel.instants import Instant, check_instant
from workmate_shared.tasks.policy import RetentionClass, ShortText, Signer

MANIFEST_DOMAIN = "workmate.manifest.v1"
MANIFEST_ITEMS_MAX = 2000
MediaType = Annotated[str, Meta(pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+$(?!\n)", max_length=127)]
FileSize = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class ArticleVersion(Struct, frozen=True, forbid_unknown_fields=True):
    """One article in one version, e.g. `v2.1.0`."""

    article_id: Identifier
    version: Annotated[str, Meta(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+$(?!\n)", max_length=40)]


class _Item(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    item_id: Identifier


class PhotoItem(_Item, frozen=True, tag="photo", kw_only=True):
    """One photo: BLAKE3 and size in bytes of the original file, unchanged since capture."""

    slot: Identifier
    hash: HashHex
    size: FileSize
    media_type: MediaType
    captured_at: Instant | None = None

    def __post_init__(self) -> None:
        """Refuse an instant that no calendar has."""
        check_instant(self.captured_at)


class AnswerItem(_Item, frozen=True, tag="answer", kw_only=True):
    """A checklist item that was answered; the answer is a personal value."""


class SignatureItem(_Item, frozen=True, tag="signature", kw_only=True):
    """A signature as a drawing, or the recorded refusal to sign."""

    signer: Signer
    refused: bool = False
    hash: HashHex | None = None
    size: FileSize | None = None
    media_type: MediaType | None = None
    captured_at: Instant | None = None

    def __post_init__(self) -> None:
        """Refuse a signature without a file, and a refusal with one."""
        check_instant(self.captured_at)
        held = (self.hash is not None, self.size is not None, self.media_type is not None)
        if any(held) if self.refused else not all(held):
            raise ValueError("a signature has a file, a refusal to sign has none")


class ConsentItem(_Item, frozen=True, tag="consent", kw_only=True):
    """The version of the consent text that was agreed to, by the name in the personal value."""

    text_version: Identifier


ManifestItem = PhotoItem | AnswerItem | SignatureItem | ConsentItem


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was gathered for `task_id` by a device that held `task_version` of it."""

    manifest_id: Identifier
    task_id: Identifier
    task_version: Annotated[int, Meta(ge=0)]
    capture_time: Instant
    policy_version: HashHex
    articles: Annotated[tuple[ArticleVersion, ...], Meta(max_length=100)] = ()
    retention_class: RetentionClass = "contract_7y"
    items: Annotated[tuple[ManifestItem, ...], Meta(max_length=MANIFEST_ITEMS_MAX)] = ()
    personal: Commitment | None = None
    position: Commitment | None = None

    def __post_init__(self) -> None:
        """Refuse two items under one id."""
        check_instant(self.capture_time)
        names = [item.item_id for item in self.items]
        if len(names) != len(set(names)):
            raise ValueError("two items under one item_id")

    def commitments(self) -> tuple[str, ...]:
        """Return the commitments whose disclosures travel with the manifest."""
        return tuple(c for c in (self.personal, self.position) if c is not None)

    def hashes(self) -> tuple[str, ...]:
        """Return the hashes of all files named, each once, in order."""
        named = [
            item.hash
            for item in self.items
            if isinstance(item, PhotoItem | SignatureItem) and item.hash is not None
        ]
        return tuple(dict.fromkeys(named))


def content_hash(manifest: bytes) -> str:
    """Return the hex BLAKE3 of the manifest domain tag and the manifest's bytes."""
    return blake3_hex(MANIFEST_DOMAIN, manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of a new manifest; they are kept and never made again."""
    return msgspec.json.encode(manifest)


ManifestStatus = Literal["handed_over", "submitted", "approved", "rejected", "dismissed"]

__all__ = [
    "AnswerItem",
    "ArticleVersion",
    "ConsentItem",
    "Manifest",
    "ManifestItem",
    "ManifestStatus",
    "PhotoItem",
    "ShortText",
    "SignatureItem",
    "content_hash",
    "encode_manifest",
]
