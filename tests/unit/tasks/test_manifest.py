"""A manifest is one byte string, known by its hash, that lists everything once."""

from typing import Any

import msgspec
import pytest

from support.commands import DRAWING, PHOTO, TASK, make_manifest, make_photo, make_signature
from workmate_shared.kernel.hashing import blake3_hex
from workmate_shared.tasks.manifest import AnswerItem, Manifest, content_hash, encode_manifest

BARE: dict[str, Any] = {
    "manifest_id": "m-1",
    "task_id": TASK,
    "task_version": 5,
    "capture_time": "2026-03-01T09:50:00+01:00",
    "policy_version": "0a" * 32,
}


def read(manifest: dict[str, Any]) -> Manifest:
    return msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest)


def test_a_manifest_comes_back_from_its_bytes() -> None:
    manifest = make_manifest()
    assert msgspec.json.decode(encode_manifest(manifest), type=Manifest) == manifest


def test_the_content_hash_is_over_the_tag_and_the_exact_bytes() -> None:
    data = encode_manifest(make_manifest())
    assert content_hash(data) == blake3_hex("workmate.manifest.v1", data)
    assert content_hash(data + b" ") != content_hash(data)


def test_the_files_of_a_manifest_are_named_once_and_in_order() -> None:
    items = (
        make_signature("s1"),
        make_photo("p1"),
        AnswerItem(item_id="a1"),
        make_photo("p2"),
        make_signature("s2", refused=True, hash=None, size=None, media_type=None),
    )
    assert make_manifest(items=items).hashes() == (DRAWING, PHOTO)


def test_a_manifest_without_personal_values_commits_to_none() -> None:
    assert read(BARE).commitments() == ()
    assert len(make_manifest().commitments()) == 2


PHOTO_ITEM = {
    "kind": "photo",
    "item_id": "p1",
    "slot": "after",
    "hash": PHOTO,
    "size": 1,
    "media_type": "image/jpeg",
}
SIGNATURE = {"kind": "signature", "item_id": "s1", "signer": "worker"}


@pytest.mark.parametrize(
    "change",
    [
        {"items": [PHOTO_ITEM, PHOTO_ITEM]},
        {"items": [PHOTO_ITEM | {"hash": PHOTO.upper()}]},
        {"items": [PHOTO_ITEM | {"size": -1}]},
        {"items": [PHOTO_ITEM | {"size": 2**53}]},
        {"items": [PHOTO_ITEM | {"media_type": "image/jpeg\n"}]},
        {"items": [PHOTO_ITEM | {"media_type": "Image/JPEG; a=b"}]},
        {"items": [PHOTO_ITEM | {"captured_at": "2026-02-30T00:00:00Z"}]},
        {"items": [PHOTO_ITEM | {"answer": "secret"}]},
        {"items": [SIGNATURE]},
        {"items": [SIGNATURE | {"hash": DRAWING}]},
        {"items": [SIGNATURE | {"refused": True, "hash": DRAWING}]},
        {"items": [SIGNATURE | {"refused": True, "size": 0}]},
        {"items": [SIGNATURE | {"signer": "neighbour"}]},
        {"items": [{"kind": "answer", "item_id": "a1", "value": True}]},
        {"articles": [{"article_id": "a", "version": "2.1.0"}]},
        {"capture_time": "2026-03-01T09:50:00"},
        {"capture_time": "2026-02-30T09:50:00Z"},
        {"task_version": -1},
        {"policy_version": "v1"},
        {"retention_class": "for ever"},
        {"personal": "not a hash"},
        {"note": "free text"},
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(BARE | change)


def test_a_refusal_to_sign_has_no_file() -> None:
    manifest = read(BARE | {"items": [SIGNATURE | {"refused": True}]})
    assert manifest.hashes() == ()
