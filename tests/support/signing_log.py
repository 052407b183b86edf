"""A log in memory that decides commands and signs batches as a server does, with nothing behind it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from workmate_shared.kernel.command import Actor, Command
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import LogKey
from workmate_shared.principals.events import CredentialAdded, CredentialRevoked
from workmate_shared.tasks.commands import StoreEvidence
from workmate_shared.tasks.events import EvidenceStored
from workmate_shared.wire.batch import (
    Leaf,
    LeafEvent,
    Receipt,
    build_batch,
    command_hash,
    encode_header,
    encode_leaf,
    header_hash,
    make_receipts,
    payload_hash,
)
from workmate_shared.wire.codec import encode
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, key_id, keys_by_id, public_key_of, sign
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import decode_command
from workmate_shared.wire.messages import KeyNotice, Outcome, WireEvent

NOW = "2026-03-01T09:00:00.000Z"
SEED = bytes(range(32))
OTHER_SEED = bytes(range(1, 33))


def event_of(command: Command, version: int, type_name: str | None = None) -> bytes:
    """Return the payload of the event that a command causes; a real one for `store_evidence`."""
    fields: dict[str, Any] = {
        "schema_version": 1,
        "event_id": f"event-of-{command.command_id}"[:128],
        "tenant_id": command.tenant_id,
        "aggregate_id": command.aggregate_id,
        "aggregate_version": version,
        "actor": command.actor,
        "command_id": command.command_id,
        "occurred_at": command.occurred_at,
        "recorded_at": NOW,
    }
    if isinstance(command, StoreEvidence):
        return encode(EvidenceStored(hashes=command.hashes, **fields))
    return encode({"type": type_name or f"task.{command.name}", **fields})


class SigningLog:
    """Numbers, chains and signs; every call of `decide` is one batch."""

    def __init__(self, tenant_id: str, lineage: str = "l1", seed: bytes = SEED) -> None:
        self.tenant_id = tenant_id
        self.lineage = lineage
        self.seed = seed
        self.batch = 0
        self.next_seq = 1
        self.previous: str | None = None
        self.versions: dict[str, int] = {}

    @property
    def keys(self) -> dict[str, bytes]:
        """The public key that signs now, by its id."""
        return keys_by_id([public_key_of(self.seed)])

    def decide(
        self,
        payload: bytes,
        status: str = "committed",
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        events: Sequence[bytes] | None = None,
    ) -> Outcome:
        """Return the outcome of a signed command, with its receipt."""
        command = decode_command(payload)
        version = self.versions.get(command.aggregate_id, 0)
        if events is None:
            events = [event_of(command, version + 1)] if status == "committed" else []
        version = self.versions[command.aggregate_id] = version + len(events)
        shown = self._number(events, version - len(events))
        leaf = Leaf(
            tenant_id=self.tenant_id,
            lineage=self.lineage,
            principal_id=command.actor.id,
            command_id=command.command_id,
            command_hash=command_hash(payload),
            fingerprint=signed_fingerprint(payload),
            outcome=status,  # type: ignore[arg-type]
            code=code,
            details=dict(details or {}),
            aggregate_id=command.aggregate_id,
            events=_leaf_events(shown),
            evidence=(),
        )
        return Outcome(
            command_id=command.command_id,
            status=status,  # type: ignore[arg-type]
            code=code,
            details=dict(details or {}),
            version=version,
            events=shown,
            receipt=self.commit(leaf),
        )

    def commit(self, leaf: Leaf, **changes: Any) -> Receipt:
        """Sign a batch of three decisions and return the receipt of the one in the middle.

        `changes` alter the header before it is signed.
        """
        data = encode_leaf(leaf)
        filler = [encode_leaf(msgspec.structs.replace(leaf, events=(), command_id=c)) for c in "xy"]
        seqs = [event.seq for event in leaf.events]
        first = seqs[0] if seqs else self.next_seq
        self.batch += 1
        header, _, paths = build_batch(
            [filler[0], data, filler[1]],
            tenant_id=self.tenant_id,
            lineage=self.lineage,
            batch=self.batch,
            previous=self.previous,
            seqs=range(first, first + len(seqs)),
            server_time=NOW,
        )
        signed = encode_header(msgspec.structs.replace(header, **changes))
        self.previous = header_hash(signed)
        envelope = sign(BATCH_TYPE, signed, self.seed)
        return make_receipts([filler[0], data, filler[1]], paths, envelope)[1]

    def add_key(self, seed: bytes, role: Role = Role.SYSTEM) -> KeyNotice:
        """Announce a log key in a batch that the present one signs; `seed` signs from then on."""
        public = public_key_of(seed)
        key = LogKey(credential_id=key_id(public), public_key=public.hex())
        event = CredentialAdded(credential=key, **self._stamp("system", "add-key", role))
        notice = self._tell(encode(event), "credential.added", "system", "add-key")
        self.seed = seed
        return notice

    def revoke(self, principal_id: str, device_id: str, *, wipe: bool) -> KeyNotice:
        """Revoke a device."""
        fields = self._stamp(principal_id, "revoke", Role.ADMIN)
        event = CredentialRevoked(credential_id=device_id, wipe=wipe, **fields)
        return self._tell(encode(event), "credential.revoked", principal_id, "revoke")

    def _tell(self, payload: bytes, type_name: str, aggregate: str, command_id: str) -> KeyNotice:
        shown = self._number([payload], 0)
        leaf = Leaf(
            tenant_id=self.tenant_id,
            lineage=self.lineage,
            principal_id="system",
            command_id=command_id,
            command_hash="ab" * 32,
            fingerprint="cd" * 32,
            outcome="committed",
            code=None,
            details={},
            aggregate_id=aggregate,
            events=_leaf_events(shown),
            evidence=(),
        )
        assert shown[0].type == type_name
        return KeyNotice(shown[0], self.commit(leaf))

    def _stamp(self, aggregate: str, command_id: str, role: Role) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "event_id": f"event-{command_id}",
            "tenant_id": self.tenant_id,
            "aggregate_id": aggregate,
            "aggregate_version": 1,
            "actor": Actor("somebody", role),
            "command_id": command_id,
            "occurred_at": NOW,
            "recorded_at": NOW,
        }

    def _number(self, payloads: Sequence[bytes], version: int) -> tuple[WireEvent, ...]:
        shown = []
        for offset, payload in enumerate(payloads):
            name = msgspec.json.decode(payload)["type"]
            shown.append(
                WireEvent(self.next_seq + offset, version + 1 + offset, name, payload.decode())
            )
        self.next_seq += len(payloads)
        return tuple(shown)


def _leaf_events(shown: Sequence[WireEvent]) -> tuple[LeafEvent, ...]:
    return tuple(
        LeafEvent(event.seq, event.aggregate_version, payload_hash(event.payload.encode()))
        for event in shown
    )


def retold(receipt: Receipt, header: Envelope) -> Receipt:
    """Return a receipt with another header."""
    return msgspec.structs.replace(receipt, header=header)
