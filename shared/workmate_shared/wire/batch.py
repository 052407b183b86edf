"""Batches of decisions and the receipts that prove them.

Each decision is a leaf, the leaves of one commit form a tree, and the server signs one header for
each tree, chained to the header before. A receipt is a leaf, its path and the signed header: enough
to prove the decision offline, with nothing but the server's public key. Leaf and header are kept as
the bytes that were hashed and signed; fields unknown to this version are ignored.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, cast

from blake3 import blake3
from msgspec import Meta, Struct

from workmate_shared.kernel.hashing import blake3_hex
from workmate_shared.kernel.ids import CommandId, HashHex, Identifier
from workmate_shared.kernel.instants import Instant
from workmate_shared.wire.binary import from_hex_digest
from workmate_shared.wire.codec import (
    MAX_INTEGER,
    MIN_INTEGER,
    MalformedError,
    decode,
    decode_part,
    encode,
)
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, SignatureError, open_envelope, pae
from workmate_shared.wire.tree import (
    TreeError,
    inclusion_paths,
    leaf_hash,
    root_from_path,
    tree_root,
)

MAX_HEADER_BYTES = 16 * 1024
MAX_LEAF_BYTES = 4 * 1024 * 1024

COMMAND_DOMAIN = "workmate.command.v1"
PAYLOAD_DOMAIN = "workmate.event.v1"

OutcomeName = Literal["committed", "unchanged", "conflict", "rejected"]
ReceiptCode = Literal["receipt_signature", "receipt_malformed", "receipt_path", "receipt_mismatch"]

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]


class ReceiptError(Exception):
    """A receipt, or events beside it, that proves nothing; `code` says why.

    `receipt_signature`: no trusted key signed the header. `receipt_malformed`: header, leaf or a
    hash is not in the form it must have. `receipt_path`: the leaf is not in the signed tree.
    `receipt_mismatch`: leaf, header and events contradict each other.
    """

    def __init__(self, code: ReceiptCode, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: ReceiptCode = code
        self.detail = detail


class LeafEvent(Struct, frozen=True):
    """One event of a decision: its place in the log, its aggregate's version, its payload's hash."""

    seq: Positive
    version: Positive
    payload_hash: HashHex


class Leaf(Struct, frozen=True, kw_only=True):
    """One decision: whose command it was, how it ended, and what it wrote.

    `command_hash` is the `command_hash` of the stored command bytes; `evidence` lists the hashes of
    the files that the command names; `details` are the public inputs of the rule named by `code`.
    """

    tenant_id: Identifier
    lineage: Identifier
    principal_id: Identifier
    command_id: CommandId
    command_hash: HashHex
    fingerprint: HashHex
    outcome: OutcomeName
    code: str | None
    details: dict[str, Any]
    aggregate_id: Identifier
    events: tuple[LeafEvent, ...]
    evidence: tuple[HashHex, ...]


class Continuation(Struct, frozen=True):
    """Where an older lineage was left: the last batch that was kept of it, and its header's hash."""

    lineage: Identifier
    batch: Positive
    header_hash: HashHex


class Header(Struct, frozen=True, kw_only=True):
    """What the server signs for a batch.

    `previous` is the hash of the tenant's header before, null if there was none. A batch without
    events has `first_seq` at the next free seq and `last_seq` one below. `continues` stands only in
    the first header of a lineage that follows another.
    """

    tenant_id: Identifier
    lineage: Identifier
    batch: Positive
    previous: HashHex | None
    first_seq: Positive
    last_seq: NotNegative
    leaf_count: Positive
    root: HashHex
    server_time: Instant
    continues: Continuation | None


class Receipt(Struct, frozen=True):
    """The proof of one decision: the exact JSON text of the leaf, its path and the signed header."""

    leaf: str
    path: tuple[str, ...]
    leaf_index: int
    header: Envelope


class VerifiedReceipt(Struct, frozen=True):
    """What a receipt said, after it was verified. Made by `verify_receipt` only."""

    leaf: Leaf
    header: Header
    header_hash: str


def payload_hash(payload: bytes) -> str:
    """Hash the exact bytes of an event's payload, as hex."""
    return blake3_hex(PAYLOAD_DOMAIN, payload)


def command_hash(command: bytes) -> str:
    """Hash the exact bytes of a command (the signed payload, not its envelope), as hex."""
    return blake3_hex(COMMAND_DOMAIN, command)


def header_hash(header: bytes) -> str:
    """Hash a header's exact bytes, as hex: BLAKE3 of the encoding that was signed."""
    return blake3(pae(BATCH_TYPE, header)).hexdigest()


def encode_leaf(leaf: Leaf) -> bytes:
    """Encode a leaf into the bytes to be hashed.

    Raises MalformedError if it could not be read back: no receipt may be signed that nobody accepts.
    """
    data = encode(leaf)
    if _is_plain(leaf.details):
        decode_part(data, Leaf, max_bytes=MAX_LEAF_BYTES)
    else:
        decode_leaf(data)
    return data


def _is_plain(details: Mapping[str, Any]) -> bool:
    """Whether details hold nothing that JSON parsers could read differently once it is encoded.

    What a leaf has besides is text; so are nearly all details, with small numbers and lists of text
    among them. The rest must be judged after it was encoded.
    """
    return all(type(name) is str and _is_plain_value(one) for name, one in details.items())


def _is_plain_value(value: object) -> bool:
    if type(value) is int:
        return MIN_INTEGER <= value <= MAX_INTEGER
    if type(value) in {list, tuple}:
        return all(type(one) is str for one in cast(Sequence[object], value))
    return value is None or type(value) in {str, bool}


def encode_header(header: Header) -> bytes:
    """Encode a header into the bytes to be signed. Raises MalformedError like `encode_leaf`."""
    data = encode(header)
    decode_header(data)
    return data


def decode_leaf(leaf: bytes) -> Leaf:
    """Decode a leaf. Raises MalformedError."""
    return decode(leaf, Leaf, max_bytes=MAX_LEAF_BYTES)


def decode_header(header: bytes) -> Header:
    """Decode a header whose signature has been verified. Raises MalformedError."""
    return decode(header, Header, max_bytes=MAX_HEADER_BYTES)


def build_batch(
    leaves: Sequence[bytes],
    *,
    tenant_id: str,
    lineage: str,
    batch: int,
    previous: str | None,
    seqs: range,
    server_time: str,
    continues: Continuation | None = None,
) -> tuple[Header, bytes, list[list[bytes]]]:
    """Build the tree over encoded leaves; return its header, its root and the path of each leaf.

    `seqs` are those of the batch's events; without events, the empty range at the next free seq.
    Raises TreeError if there are no leaves.
    """
    hashes = [leaf_hash(leaf) for leaf in leaves]
    root = tree_root(hashes)
    header = Header(
        tenant_id=tenant_id,
        lineage=lineage,
        batch=batch,
        previous=previous,
        first_seq=seqs.start,
        last_seq=seqs.stop - 1,
        leaf_count=len(leaves),
        root=root.hex(),
        server_time=server_time,
        continues=continues,
    )
    return header, root, inclusion_paths(hashes)


def make_receipts(
    leaves: Sequence[bytes], paths: Sequence[Sequence[bytes]], header: Envelope
) -> list[Receipt]:
    """Return the receipt of each leaf of a batch whose header has been signed."""
    return [
        Receipt(
            leaf=leaf.decode(),
            path=tuple(step.hex() for step in path),
            leaf_index=index,
            header=header,
        )
        for index, (leaf, path) in enumerate(zip(leaves, paths, strict=True))
    ]


def verify_receipt(receipt: Receipt, keys: Mapping[str, bytes]) -> VerifiedReceipt:
    """Prove a decision with the server keys that are trusted, by id.

    The signature is checked before the header is parsed, the path before the leaf is. Raises
    ReceiptError; whoever expects a certain command, tenant or lineage compares them afterwards.
    """
    try:
        signed = open_envelope(receipt.header, BATCH_TYPE, keys)
    except SignatureError as error:
        raise ReceiptError("receipt_signature", str(error)) from error
    try:
        header = decode_header(signed)
        path = [from_hex_digest(step) for step in receipt.path]
        leaf_bytes = receipt.leaf.encode()
        _check_path(leaf_bytes, receipt.leaf_index, path, header)
        leaf = decode_leaf(leaf_bytes)
    except (MalformedError, ValueError) as error:
        raise ReceiptError("receipt_malformed", str(error)) from error
    _check_agreement(leaf, header)
    return VerifiedReceipt(leaf=leaf, header=header, header_hash=header_hash(signed))


def check_events(verified: VerifiedReceipt, payloads: Sequence[bytes]) -> None:
    """Check that the payloads are those of the decision's events: all of them, in their order.

    Raises ReceiptError with `receipt_mismatch`.
    """
    if [payload_hash(payload) for payload in payloads] != [
        event.payload_hash for event in verified.leaf.events
    ]:
        raise ReceiptError("receipt_mismatch", "these are not the events of the decision")


def _check_path(leaf: bytes, index: int, path: Sequence[bytes], header: Header) -> None:
    try:
        root = root_from_path(leaf_hash(leaf), index, header.leaf_count, path)
    except TreeError as error:
        raise ReceiptError("receipt_path", str(error)) from error
    if root.hex() != header.root:
        raise ReceiptError("receipt_path", "the leaf is not in the signed tree")


def _check_agreement(leaf: Leaf, header: Header) -> None:
    if (leaf.tenant_id, leaf.lineage) != (header.tenant_id, header.lineage):
        raise ReceiptError("receipt_mismatch", "leaf and header differ in tenant or lineage")
    seqs = [event.seq for event in leaf.events]
    if any(not header.first_seq <= seq <= header.last_seq for seq in seqs):
        raise ReceiptError("receipt_mismatch", "an event lies outside the header's range")
    if any(later <= earlier for earlier, later in pairwise(seqs)):
        raise ReceiptError("receipt_mismatch", "events are not in the order of the log")
