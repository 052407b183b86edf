"""The committed test vectors are what the code makes, and what the documented rules say.

The second half reads the files as a stranger would: with BLAKE3, Ed25519, base64 and nothing of ours.
"""

import base64
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from blake3 import blake3
from nacl.signing import VerifyKey

from vectors.generate import FILES, render
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.intake import check_message, decode_command

SIGNED = ("pae.json", "session.json", "header.json", "command.json")
FOLDER = Path(__file__).parents[2] / "vectors"


def read(name: str) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads((FOLDER / name).read_bytes())["vectors"]
    return vectors


def lp(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def tagged(tag: str, *parts: bytes) -> str:
    return blake3(lp(tag.encode(), *parts)).hexdigest()


def signed_bytes(envelope: dict[str, Any]) -> bytes:
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_vectors_holds_exactly_what_the_code_makes(name: str) -> None:
    assert (FOLDER / name).read_bytes() == render(FILES[name])


def test_no_file_of_vectors_is_without_its_maker() -> None:
    assert {path.name for path in FOLDER.glob("*.json")} == set(FILES)


def test_a_stranger_computes_the_same_hashes_and_ids() -> None:
    for vector in read("hashing.json"):
        parts = [bytes.fromhex(part) for part in vector["parts_hex"]]
        assert tagged(vector["domain"], *parts) == vector["blake3_hex"]
    for vector in read("uuid8.json"):
        material = lp(*[part.encode() for part in vector["parts"]])
        raw = bytearray(blake3(material, derive_key_context=vector["context"]).digest()[:16])
        raw[6], raw[8] = 0x80 | raw[6] & 0x0F, 0x80 | raw[8] & 0x3F
        assert str(UUID(bytes=bytes(raw))) == vector["uuid"]
    for vector in read("commitment.json"):
        salt = base64.b64decode(vector["disclosure"]["salt"])
        value = vector["disclosure"]["value"].encode()
        assert tagged("workmate.commitment.v1", salt, value) == vector["commitment"]
    for vector in read("fingerprint.json"):
        body = {name: value for name, value in vector["body"].items() if name != "occurred_at"}
        request = [vector["command"], vector["aggregate_id"], vector["expected_version"], body]
        text = json.dumps(request, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        laid_out = lp(b"workmate.fingerprint.request.v1", text.encode())
        key = bytes.fromhex(vector["key_hex"])
        assert blake3(laid_out, key=key).hexdigest() == vector["fingerprint"]


def test_a_stranger_verifies_every_signature() -> None:
    keys = {vector["seed_hex"]: vector for vector in read("key_id.json")}
    for vector in [v for name in SIGNED for v in read(name)]:
        key = keys[vector["seed_hex"]]
        public = bytes.fromhex(key["public_key_hex"])
        (signature,) = vector["envelope"]["signatures"]
        assert signature["keyid"] == key["key_id"] == tagged("workmate.key.v1", public)
        signed = signed_bytes(vector["envelope"])
        VerifyKey(public).verify(signed, base64.b64decode(signature["sig"]))


def test_a_stranger_follows_every_path_from_its_leaf_to_the_signed_root() -> None:
    for vector in read("header.json"):
        assert blake3(signed_bytes(vector["envelope"])).hexdigest() == vector["header_hash"]
        header = json.loads(base64.b64decode(vector["envelope"]["payload"]))
        for receipt in vector["receipts"]:
            found = blake3(b"\x00" + receipt["leaf"].encode()).digest()
            index, last = receipt["leaf_index"], header["leaf_count"] - 1
            path = [bytes.fromhex(step) for step in receipt["path"]]
            while last > 0:
                if index % 2:
                    found = blake3(b"\x01" + path.pop(0) + found).digest()
                elif index < last:
                    found = blake3(b"\x01" + found + path.pop(0)).digest()
                index, last = index // 2, last // 2
            assert (found.hex(), path) == (header["root"], [])


def test_a_stranger_finds_commands_and_events_in_their_leaf() -> None:
    for vector in read("leaf.json"):
        leaf, command = json.loads(vector["leaf"]), vector["command"].encode()
        assert leaf["command_hash"] == tagged("workmate.command.v1", command)
        assert leaf["fingerprint"] == tagged("workmate.fingerprint.signed.v1", command)
        assert [event["payload_hash"] for event in leaf["events"]] == [
            tagged("workmate.event.v1", payload.encode()) for payload in vector["event_payloads"]
        ]


def test_a_stranger_names_policies_and_manifests_by_their_bytes() -> None:
    for vector in read("manifest.json"):
        policy, hashed = json.loads(vector["policy"]), vector["policy_hashed"]
        text = json.dumps(policy, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert text == hashed
        assert tagged("workmate.policy.v1", hashed.encode()) == vector["policy_version"]
        manifest = base64.b64decode(vector["manifest_base64"])
        assert manifest == vector["manifest"].encode()
        assert tagged("workmate.manifest.v1", manifest) == vector["content_hash"]
        assert json.loads(manifest)["policy_version"] == vector["policy_version"]


def test_a_stranger_opens_what_commands_and_manifests_commit_to() -> None:
    for vector in read("manifest.json") + read("command.json"):
        message = json.loads(vector.get("command") or vector["manifest"])
        if "manifest" in message:
            message = json.loads(base64.b64decode(message["manifest"]))
        wanted = {message[name] for name in ("personal", "position") if name in message}
        assert set(vector["disclosures"]) == wanted
        for commitment, disclosure in vector["disclosures"].items():
            salt, value = base64.b64decode(disclosure["salt"]), disclosure["value"].encode()
            assert tagged("workmate.commitment.v1", salt, value) == commitment


def test_a_stranger_finds_the_signed_command_and_its_manifest() -> None:
    contents = {vector["content_hash"] for vector in read("manifest.json")}
    for vector in read("command.json"):
        command = vector["command"].encode()
        assert base64.b64decode(vector["envelope"]["payload"]) == command
        assert tagged("workmate.command.v1", command) == vector["command_hash"]
        assert tagged("workmate.fingerprint.signed.v1", command) == vector["fingerprint"]
        carried = json.loads(command).get("content_hash")
        assert carried is None or carried in contents


def test_the_commands_of_the_vectors_are_taken() -> None:
    for vector in read("command.json"):
        command = decode_command(vector["command"].encode())
        disclosures = msgspec.convert(vector["disclosures"], dict[str, Disclosure])
        assert check_message(command, disclosures, command.tenant_id).opened
