"""Test vectors for the signed and hashed formats, made from fixed seeds.

Run without arguments it prints every file; with `--write` it writes them beside itself. Each entry
of FILES makes one file; everything in a file is text, so that readers in any language can use it.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.json import decode as parse
from msgspec.json import encode as encode_in_order

from workmate_shared.kernel.command import Actor, Command, DeviceReading
from workmate_shared.kernel.hashing import blake3_hex, derive_uuid8, length_prefixed
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.commands import Arrive, SubmitProof
from workmate_shared.tasks.manifest import (
    AnswerItem,
    ArticleVersion,
    Manifest,
    PhotoItem,
    SignatureItem,
    content_hash,
    encode_manifest,
)
from workmate_shared.tasks.policy import NumberItem, PhotoSlot, ProofPolicy, policy_version
from workmate_shared.wire import batch, commitment, dsse, fingerprint, session, tree
from workmate_shared.wire.binary import to_base64
from workmate_shared.wire.codec import encode

HERE = Path(__file__).parent

SERVER_SEED = bytes(range(32))
DEVICE_SEED = bytes(range(32, 64))
SALT = bytes(range(64, 96))
FINGERPRINT_KEY = bytes(range(96, 128))

TENANT = "01930000-0000-7000-8000-000000000001"
LINEAGE = "01930000-0000-7000-8000-000000000002"
TASK = "01930000-0000-7000-8000-000000000003"
DEVICE = "01930000-0000-7000-8000-000000000004"
SERVER_TIME = "2026-03-01T09:00:00.000Z"

Vectors = list[dict[str, Any]]


def hashing() -> Vectors:
    """Length-prefixed parts and domain-tagged hashes."""
    cases: list[tuple[str, list[bytes]]] = [
        ("no parts", []),
        ("one empty part", [b""]),
        ("two parts", [b"ab", b"c"]),
        ("the same bytes cut elsewhere", [b"a", b"bc"]),
    ]
    return [
        {
            "name": name,
            "domain": "workmate.test.v1",
            "parts_hex": [part.hex() for part in parts],
            "length_prefixed_hex": length_prefixed(b"workmate.test.v1", *parts).hex(),
            "blake3_hex": blake3_hex("workmate.test.v1", *parts),
        }
        for name, parts in cases
    ]


def uuid8() -> Vectors:
    """Derived ids."""
    cases = [
        ("a creation key", [TENANT, "nyc311", "42254749"]),
        ("no parts", []),
        ("parts outside ASCII", ["Zürich", "現場"]),
        ("an empty part", ["", "a"]),
        ("the same text cut elsewhere", ["a", ""]),
    ]
    context = "workmate 2026 test vectors"
    return [
        {"name": name, "context": context, "parts": parts, "uuid": derive_uuid8(context, *parts)}
        for name, parts in cases
    ]


def key_id() -> Vectors:
    """Names of public keys."""
    return [
        {
            "name": name,
            "seed_hex": seed.hex(),
            "public_key_hex": dsse.public_key_of(seed).hex(),
            "key_id": dsse.key_id(dsse.public_key_of(seed)),
        }
        for name, seed in (("server", SERVER_SEED), ("device", DEVICE_SEED))
    ]


def pae() -> Vectors:
    """What is signed, and the envelope that holds it."""
    cases = [
        ("the protocol's own example", "http://example.com/HelloWorld", "hello world"),
        ("an empty payload", dsse.COMMAND_TYPE, ""),
        ("lengths count bytes", dsse.COMMAND_TYPE, '{"note":"Zähler geprüft ✓"}'),
    ]
    return [
        {
            "name": name,
            "payload_type": kind,
            "payload": payload,
            "pae_hex": dsse.pae(kind, payload.encode()).hex(),
            "seed_hex": DEVICE_SEED.hex(),
            "envelope": plain(dsse.sign(kind, payload.encode(), DEVICE_SEED)),
        }
        for name, kind, payload in cases
    ]


def commitments() -> Vectors:
    """Commitments to personal values, and what opens them."""
    cases: list[tuple[str, object]] = [
        ("an object", {"reason": "nearest with the skill"}),
        ("outside ASCII", {"client": "Frau Müller", "notes": 'Tür "B"\n✓'}),
        ("positions", {"after-1": {"lat_e7": 405863974, "lon_e7": -739325913, "accuracy_m": 8}}),
        ("null", None),
    ]
    vectors = []
    for name, value in cases:
        committed, disclosure = commitment.make_disclosure(value, SALT, "contract_7y")
        vectors.append(
            {
                "name": name,
                "salt_hex": SALT.hex(),
                "commitment": committed,
                "disclosure": plain(disclosure),
            }
        )
    return vectors


def trees() -> Vectors:
    """Trees of one to nine leaves, where leaf i is the text `leaf <i>`."""
    vectors = []
    for count in range(1, 10):
        leaves = [f"leaf {index}" for index in range(count)]
        hashes = [tree.leaf_hash(leaf.encode()) for leaf in leaves]
        vectors.append(
            {
                "name": f"{count} leaves",
                "leaves": leaves,
                "leaf_hashes": [value.hex() for value in hashes],
                "root": tree.tree_root(hashes).hex(),
                "paths": [[step.hex() for step in path] for path in tree.inclusion_paths(hashes)],
            }
        )
    return vectors


def sample_leaves() -> list[batch.Leaf]:
    """Three decisions: one committed with two events, one conflict, one without any effect."""

    def leaf(number: int, **fields: Any) -> batch.Leaf:
        given: dict[str, Any] = {
            "code": None,
            "details": {},
            "events": (),
            "evidence": (),
            "aggregate_id": TASK,
        } | fields
        command = f'{{"command":{number}}}'.encode()
        return batch.Leaf(
            tenant_id=TENANT,
            lineage=LINEAGE,
            principal_id="usr_8x92a",
            command_id=f"key-{number}",
            command_hash=batch.command_hash(command),
            fingerprint=fingerprint.signed_fingerprint(command),
            **given,
        )

    events = tuple(
        batch.LeafEvent(
            seq=seq,
            version=seq - 4,
            payload_hash=batch.payload_hash(f'{{"event":{seq}}}'.encode()),
        )
        for seq in (7, 8)
    )
    return [
        leaf(1, outcome="committed", events=events, evidence=("ab" * 32,)),
        leaf(
            2,
            outcome="conflict",
            code="version_conflict",
            details={"expected_version": 3, "changed_version": 4, "who": ["Müller", None, True]},
        ),
        leaf(3, outcome="unchanged"),
    ]


def leaves() -> Vectors:
    """Decisions as they are hashed."""
    return [
        {
            "name": leaf.outcome,
            "command": f'{{"command":{number}}}',
            "command_hash": leaf.command_hash,
            "fingerprint": leaf.fingerprint,
            "event_payloads": [f'{{"event":{event.seq}}}' for event in leaf.events],
            "leaf": batch.encode_leaf(leaf).decode(),
            "leaf_hash": tree.leaf_hash(batch.encode_leaf(leaf)).hex(),
        }
        for number, leaf in enumerate(sample_leaves(), start=1)
    ]


def headers() -> Vectors:
    """Signed headers, their hashes and the receipts under them."""
    encoded = [batch.encode_leaf(leaf) for leaf in sample_leaves()]
    cases: list[tuple[str, list[bytes], range, str | None, batch.Continuation | None]] = [
        ("with events", encoded, range(7, 9), "cd" * 32, None),
        ("without events", encoded[1:], range(9, 9), "cd" * 32, None),
        (
            "the first of a lineage that follows another",
            encoded,
            range(7, 9),
            "cd" * 32,
            batch.Continuation(lineage=DEVICE, batch=4, header_hash="cd" * 32),
        ),
        ("the first of all", encoded[2:], range(1, 1), None, None),
    ]
    vectors = []
    for name, members, seqs, previous, continues in cases:
        header, _, paths = batch.build_batch(
            members,
            tenant_id=TENANT,
            lineage=LINEAGE,
            batch=5 if previous else 1,
            previous=previous,
            seqs=seqs,
            server_time=SERVER_TIME,
            continues=continues,
        )
        payload = batch.encode_header(header)
        envelope = dsse.sign(dsse.BATCH_TYPE, payload, SERVER_SEED)
        vectors.append(
            {
                "name": name,
                "seed_hex": SERVER_SEED.hex(),
                "header": payload.decode(),
                "header_hash": batch.header_hash(payload),
                "envelope": plain(envelope),
                "receipts": plain(batch.make_receipts(members, paths, envelope)),
            }
        )
    return vectors


def fingerprints() -> Vectors:
    """Keyed fingerprints of requests."""
    cases: list[tuple[str, str, str | None, int | None, dict[str, Any]]] = [
        ("a creation", "create_task", None, 0, {"source": "nyc311", "external_id": "42254749"}),
        (
            "members in another order",
            "create_task",
            None,
            0,
            {"external_id": "42254749", "source": "nyc311"},
        ),
        ("with a time", "accept", TASK, 3, {"occurred_at": SERVER_TIME}),
        ("without a time", "accept", TASK, 3, {}),
        ("without a version", "observe", TASK, None, {"personal": {"note": "Tür klemmt"}}),
    ]
    return [
        {
            "name": name,
            "key_hex": FINGERPRINT_KEY.hex(),
            "command": command,
            "aggregate_id": aggregate_id,
            "expected_version": expected_version,
            "body": body,
            "fingerprint": fingerprint.request_fingerprint(
                FINGERPRINT_KEY, command, aggregate_id, expected_version, body
            ),
        }
        for name, command, aggregate_id, expected_version, body in cases
    ]


def sessions() -> Vectors:
    """Session challenges."""
    challenge = session.Challenge(
        purpose=session.PURPOSE,
        server_key_id=dsse.key_id(dsse.public_key_of(SERVER_SEED)),
        tenant_id=TENANT,
        device_id=DEVICE,
        nonce=to_base64(SALT),
    )
    return [
        {
            "name": "a device's challenge",
            "seed_hex": DEVICE_SEED.hex(),
            "challenge": session.encode_challenge(challenge).decode(),
            "envelope": plain(session.sign_challenge(challenge, DEVICE_SEED)),
        }
    ]


def sample_policy() -> ProofPolicy:
    """One checklist item, one photo, one signature."""
    return ProofPolicy(
        checklist=(
            NumberItem(item_id="volts", prompt="Spannung ⚡", unit="V", max="250", required=True),
        ),
        photos=(PhotoSlot(slot="after", prompt="Finished work", max=4),),
        signature=("worker",),
    )


def sample_manifest() -> tuple[Manifest, dict[str, commitment.Disclosure]]:
    """What was gathered for the sample policy, and what opens it."""
    answers = {"answers": {"volts": "231"}, "names": {"sig-worker": "Zoë"}}
    fixes = {"after-1": {"lat_e7": 405863974, "lon_e7": -739325913, "source": "exif"}}
    personal = commitment.make_disclosure(answers, SALT, "contract_7y")
    position = commitment.make_disclosure(fixes, SALT, "operational_90d")
    manifest = Manifest(
        manifest_id="01930000-0000-7000-8000-000000000005",
        task_id=TASK,
        task_version=5,
        capture_time="2026-03-01T09:50:00+01:00",
        policy_version=policy_version(sample_policy()),
        articles=(ArticleVersion("isolate", "v2.1.0"),),
        items=(
            PhotoItem(
                item_id="after-1",
                slot="after",
                hash="ab" * 32,
                size=161713,
                media_type="image/jpeg",
                captured_at="2026-03-01T09:45:00+01:00",
            ),
            AnswerItem(item_id="volts"),
            SignatureItem(
                item_id="sig-worker",
                signer="worker",
                hash="cd" * 32,
                size=2210,
                media_type="image/svg+xml",
            ),
        ),
        personal=personal[0],
        position=position[0],
    )
    return manifest, dict([personal, position])


def manifests() -> Vectors:
    """Evidence manifests, and the policies that they were made for."""
    manifest, disclosures = sample_manifest()
    bare = Manifest(
        manifest_id="m-2",
        task_id=TASK,
        task_version=0,
        capture_time=SERVER_TIME,
        policy_version=policy_version(ProofPolicy()),
    )
    cases: list[tuple[str, ProofPolicy, Manifest, dict[str, commitment.Disclosure]]] = [
        ("with a photo, an answer and a signature", sample_policy(), manifest, disclosures),
        ("of an empty policy", ProofPolicy(), bare, {}),
    ]
    return [
        {
            "name": name,
            "policy": encode(policy).decode(),
            "policy_hashed": sorted_json(policy).decode(),
            "policy_version": policy_version(policy),
            "manifest": encode_manifest(made).decode(),
            "manifest_base64": to_base64(encode_manifest(made)),
            "content_hash": content_hash(encode_manifest(made)),
            "disclosures": plain(given),
        }
        for name, policy, made, given in cases
    ]


def commands() -> Vectors:
    """Commands as a device signs them, with what travels beside them."""
    manifest, opens_manifest = sample_manifest()
    data = encode_manifest(manifest)
    fix = {"lat_e7": 405863974, "lon_e7": -739325913, "accuracy_m": 8, "source": "gps"}
    position, opens_position = commitment.make_disclosure(fix, SALT, "operational_90d")
    common: dict[str, Any] = {
        "schema_version": 1,
        "tenant_id": TENANT,
        "aggregate_id": TASK,
        "actor": Actor("usr_8x92a", Role.WORKER, DEVICE),
        "lineage": LINEAGE,
        "occurred_at": "2026-03-01T09:58:00+01:00",
        "expected_version": 4,
    }
    arrive = Arrive(
        command_id="01930000-0000-7000-8000-000000000006",
        device=DeviceReading(1, 81_000, "boot-1"),
        position=position,
        evidence=("ab" * 32,),
        **common,
    )
    submit = SubmitProof(
        command_id="01930000-0000-7000-8000-000000000007",
        after=arrive.command_id,
        device=DeviceReading(2, 95_500, "boot-1", SERVER_TIME),
        manifest=to_base64(data),
        content_hash=content_hash(data),
        **common,
    )
    cases: list[tuple[str, Command, dict[str, commitment.Disclosure]]] = [
        ("an arrival with a fix", arrive, {position: opens_position}),
        ("a proof that builds on the arrival", submit, opens_manifest),
    ]
    return [
        {
            "name": name,
            "seed_hex": DEVICE_SEED.hex(),
            "command": encode(command).decode(),
            "command_hash": batch.command_hash(encode(command)),
            "fingerprint": fingerprint.signed_fingerprint(encode(command)),
            "envelope": plain(dsse.sign(dsse.COMMAND_TYPE, encode(command), DEVICE_SEED)),
            "disclosures": plain(disclosures),
        }
        for name, command, disclosures in cases
    ]


FILES: dict[str, Callable[[], Vectors]] = {
    "hashing.json": hashing,
    "uuid8.json": uuid8,
    "key_id.json": key_id,
    "pae.json": pae,
    "commitment.json": commitments,
    "tree.json": trees,
    "leaf.json": leaves,
    "header.json": headers,
    "fingerprint.json": fingerprints,
    "session.json": sessions,
    "manifest.json": manifests,
    "command.json": commands,
}


def sorted_json(value: object) -> bytes:
    """Return a struct as JSON with the members of every object sorted."""
    return encode_in_order(value, order="sorted")


def plain(value: object) -> Any:
    """Return a struct as the JSON value that travels."""
    return parse(encode(value))


def render(make: Callable[[], Vectors]) -> bytes:
    """Return the bytes of one file."""
    content = {"about": (make.__doc__ or "").strip(), "vectors": make()}
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def main() -> None:
    """Print all files, or write them."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="write the files")
    write = arguments.parse_args().write
    for name, make in FILES.items():
        if write:
            (HERE / name).write_bytes(render(make))
        else:
            print(f"--- {name}\n{render(make).decode()}", end="")


if __name__ == "__main__":
    main()
