"""What a receipt proves of an event: that our server's log holds it, unchanged, in its place.

Log keys are pinned and devices wiped on such a proof only. What cannot be proven or read is as if it
had not been said.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from workmate_shared.kernel.command import Event
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import LogKey
from workmate_shared.principals.events import CredentialAdded
from workmate_shared.wire.batch import (
    LeafEvent,
    Receipt,
    ReceiptError,
    payload_hash,
    verify_receipt,
)
from workmate_shared.wire.dsse import Envelope, key_id
from workmate_shared.wire.intake import decode_event
from workmate_shared.wire.messages import KeyNotice, WireEvent


class Pinned(Struct, frozen=True, kw_only=True):
    """What the device believes already: whose it is, the log keys by id, and the log as it knows it.

    `past_lineages` are those that the server has left. An answer of one of them is stale, once the
    newest header proves the present one: a server that is shown it begins a lineage of its own.
    """

    tenant_id: str
    principal_id: str
    device_id: str
    lineage: str
    keys: Mapping[str, bytes]
    newest_header: Envelope | None = None
    past_lineages: frozenset[str] = frozenset()


def learn_keys(notices: Iterable[KeyNotice], pinned: Pinned) -> dict[str, bytes]:
    """Return the pinned keys and those that the notices add, each proven by a key known before it.

    A key counts if the log's own principal added it, in a batch that a key known already signed.
    """
    keys = dict(pinned.keys)
    for notice in notices:
        event = prove_event(notice.receipt, notice.event, pinned.tenant_id, keys)
        if (
            isinstance(event, CredentialAdded)
            and event.actor.role is Role.SYSTEM
            and isinstance(event.credential, LogKey)
        ):
            key = bytes.fromhex(event.credential.public_key)
            if key_id(key) == event.credential.credential_id:
                keys[event.credential.credential_id] = key
    return keys


def are_events_of(shown: Sequence[WireEvent], decided: Sequence[LeafEvent]) -> bool:
    """Whether all events shown are the decision's, in order; some may be withheld from this actor."""
    rest = iter(decided)
    return all(
        any(_is_event(event, candidate) for candidate in rest)
        and event.type == _type_of(event.payload)
        for event in shown
    )


def _is_event(event: WireEvent, leaf: LeafEvent) -> bool:
    found = (event.seq, event.aggregate_version, payload_hash(event.payload.encode()))
    return found == (leaf.seq, leaf.version, leaf.payload_hash)


class _Peek(Struct, frozen=True):
    type: str


def _type_of(payload: str) -> str | None:
    try:
        return msgspec.json.decode(payload, type=_Peek).type
    except msgspec.DecodeError:
        return None


def prove_event(
    receipt: Receipt, event: WireEvent, tenant_id: str, keys: Mapping[str, bytes]
) -> Event | None:
    """Return the event if the receipt proves that a decision of this tenant wrote it, else None."""
    try:
        leaf = verify_receipt(receipt, keys).leaf
    except ReceiptError:
        return None
    proven = leaf.tenant_id == tenant_id and leaf.outcome == "committed"
    if not (proven and are_events_of((event,), leaf.events)):
        return None
    try:
        return decode_event(event.type, event.payload.encode())
    except (KeyError, msgspec.DecodeError):
        return None
