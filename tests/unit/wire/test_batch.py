"""Receipts prove one decision each, offline, and nothing that was changed verifies."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.wire.batch import (
    Continuation,
    Header,
    Leaf,
    LeafEvent,
    Receipt,
    ReceiptError,
    build_batch,
    check_events,
    command_hash,
    decode_header,
    decode_leaf,
    encode_header,
    encode_leaf,
    header_hash,
    make_receipts,
    payload_hash,
    verify_receipt,
)
from workmate_shared.wire.codec import MalformedError, decode, encode
from workmate_shared.wire.dsse import (
    BATCH_TYPE,
    COMMAND_TYPE,
    keys_by_id,
    pae,
    public_key_of,
    sign,
)
from workmate_shared.wire.tree import TreeError

SEED = bytes(range(32))
KEYS = keys_by_id([public_key_of(SEED)])
PAYLOADS = [b'{"event":1}', b'{"event":2}']


def make_leaf(number: int = 0, **fields: Any) -> Leaf:
    given: dict[str, Any] = {
        "tenant_id": "t1",
        "lineage": "l1",
        "principal_id": "usr_1",
        "command_id": f"key-{number}",
        "command_hash": command_hash(b"%d" % number),
        "fingerprint": "ab" * 32,
        "outcome": "committed",
        "code": None,
        "details": {"note": "Tür"},
        "aggregate_id": "task-1",
        "events": (),
        "evidence": ("cd" * 32,),
    }
    return Leaf(**(given | fields))


def events(*seqs: int) -> tuple[LeafEvent, ...]:
    return tuple(
        LeafEvent(seq=seq, version=index, payload_hash=payload_hash(payload))
        for index, (seq, payload) in enumerate(zip(seqs, PAYLOADS, strict=False), start=1)
    )


def receipts(
    leaves: list[bytes], seqs: range = range(1, 100), **changes: Any
) -> tuple[Header, list[Receipt]]:
    """Build, sign and issue one batch; `changes` alter the header before it is signed."""
    header, _, paths = build_batch(
        leaves,
        tenant_id="t1",
        lineage="l1",
        batch=4,
        previous="ef" * 32,
        seqs=seqs,
        server_time="2026-03-01T09:00:00.000Z",
    )
    header = msgspec.structs.replace(header, **changes)
    return header, make_receipts(leaves, paths, sign(BATCH_TYPE, encode(header), SEED))


def one_receipt(leaf: Leaf | bytes | None = None, **changes: Any) -> Receipt:
    """Return the middle receipt of a batch of three."""
    middle = leaf if isinstance(leaf, bytes) else encode(leaf or make_leaf())
    return receipts([encode(make_leaf(1)), middle, encode(make_leaf(2))], **changes)[1][1]


def refused(receipt: Receipt) -> str:
    with pytest.raises(ReceiptError) as caught:
        verify_receipt(receipt, KEYS)
    return caught.value.code


@pytest.mark.parametrize("count", range(1, 41))
def test_every_decision_of_a_batch_verifies_by_its_receipt(count: int) -> None:
    leaves = [encode_leaf(make_leaf(number)) for number in range(count)]
    header, issued = receipts(leaves)
    for number, receipt in enumerate(issued):
        verified = verify_receipt(receipt, KEYS)
        assert verified.leaf == make_leaf(number)
        assert verified.header == header
        assert verified.header_hash == header_hash(encode_header(header))


@given(st.data(), st.integers(1, 40))
def test_no_receipt_verifies_after_any_bit_of_it_was_flipped(
    data: st.DataObject, count: int
) -> None:
    _, issued = receipts([encode_leaf(make_leaf(number)) for number in range(count)])
    sent = bytearray(encode(data.draw(st.sampled_from(issued))))
    bit = data.draw(st.integers(0, len(sent) * 8 - 1))
    sent[bit // 8] ^= 1 << bit % 8
    with pytest.raises((MalformedError, ReceiptError)):
        verify_receipt(decode(bytes(sent), Receipt, max_bytes=100_000), KEYS)


def test_a_receipt_survives_its_way_over_the_wire_byte_for_byte() -> None:
    sent = encode(one_receipt())
    received = decode(sent, Receipt, max_bytes=100_000)
    assert encode(received) == sent
    assert verify_receipt(received, KEYS).leaf == make_leaf()


def test_a_leaf_keeps_its_bytes_even_where_another_spelling_means_the_same() -> None:
    spaced = encode(make_leaf()).replace(b",", b" ,")
    receipt = one_receipt(spaced)
    assert receipt.leaf.encode() == spaced
    assert verify_receipt(receipt, KEYS).leaf == make_leaf()
    tidied = msgspec.structs.replace(receipt, leaf=encode(make_leaf()).decode())
    assert refused(tidied) == "receipt_path"


def test_fields_of_a_later_version_are_ignored_in_leaf_and_header() -> None:
    leaf = encode(make_leaf())[:-1] + b',"later":1}'
    assert decode_leaf(leaf) == make_leaf()
    header, _ = receipts([leaf])
    assert decode_header(encode(header)[:-1] + b',"later":{}}') == header


def test_a_header_signed_by_an_unknown_key_is_refused() -> None:
    with pytest.raises(ReceiptError) as caught:
        verify_receipt(one_receipt(), keys_by_id([public_key_of(SEED[::-1])]))
    assert caught.value.code == "receipt_signature"


def test_a_header_signed_as_something_else_is_refused() -> None:
    header, (receipt,) = receipts([encode(make_leaf())])
    envelope = sign(COMMAND_TYPE, encode(header), SEED)
    assert refused(msgspec.structs.replace(receipt, header=envelope)) == "receipt_signature"


def test_the_signature_is_checked_before_anything_is_parsed() -> None:
    unsigned = sign(BATCH_TYPE, b"no JSON at all", SEED[::-1])
    receipt = msgspec.structs.replace(one_receipt(), header=unsigned, leaf="neither")
    assert refused(receipt) == "receipt_signature"


@pytest.mark.parametrize("index", [-1, 0, 2, 3, 2**62])
def test_a_leaf_at_another_index_is_refused(index: int) -> None:
    assert refused(msgspec.structs.replace(one_receipt(), leaf_index=index)) == "receipt_path"


def test_a_path_of_another_length_is_refused() -> None:
    receipt = one_receipt()
    for path in (receipt.path[:-1], (*receipt.path, "ab" * 32), ()):
        assert refused(msgspec.structs.replace(receipt, path=path)) == "receipt_path"


@pytest.mark.parametrize("leaf_count", [1, 5, 2**50])
def test_a_signed_leaf_count_that_fits_no_path_is_refused(leaf_count: int) -> None:
    assert refused(one_receipt(leaf_count=leaf_count)) == "receipt_path"


def test_hashes_in_upper_case_are_refused() -> None:
    receipt = one_receipt()
    path = tuple(step.upper() for step in receipt.path)
    assert refused(msgspec.structs.replace(receipt, path=path)) == "receipt_malformed"


@pytest.mark.parametrize("leaf", [b"[]", b"{}", b'{"a":1,"a":2}', b"\xef\xbb\xbf{}"])
def test_a_signed_leaf_that_is_no_leaf_is_refused(leaf: bytes) -> None:
    assert refused(one_receipt(leaf)) == "receipt_malformed"


def test_leaf_text_that_is_no_utf_8_is_refused() -> None:
    assert refused(msgspec.structs.replace(one_receipt(), leaf="\ud800")) == "receipt_malformed"


@pytest.mark.parametrize("changes", [{"batch": 0}, {"root": "AB" * 32}, {"server_time": "today"}])
def test_a_signed_header_that_is_no_header_is_refused(changes: dict[str, Any]) -> None:
    assert refused(one_receipt(**changes)) == "receipt_malformed"


@pytest.mark.parametrize("field", ["tenant_id", "lineage"])
def test_a_leaf_of_another_tenant_or_lineage_than_its_header_is_refused(field: str) -> None:
    changes: dict[str, Any] = {field: "other"}
    assert refused(one_receipt(make_leaf(**changes))) == "receipt_mismatch"
    assert refused(one_receipt(**changes)) == "receipt_mismatch"


@pytest.mark.parametrize("seqs", [(6,), (9,), (7, 9), (8, 7), (7, 7)])
def test_events_outside_the_headers_range_or_out_of_order_are_refused(
    seqs: tuple[int, ...],
) -> None:
    receipt = one_receipt(make_leaf(events=events(*seqs)), seqs=range(7, 9))
    assert refused(receipt) == "receipt_mismatch"


def test_a_batch_without_events_has_an_empty_range_at_the_next_seq() -> None:
    header, _ = receipts([encode(make_leaf())], seqs=range(7, 7))
    assert (header.first_seq, header.last_seq) == (7, 6)
    assert refused(one_receipt(make_leaf(events=events(7)), seqs=range(7, 7))) == "receipt_mismatch"


def test_the_events_beside_a_receipt_are_exactly_those_that_the_leaf_names() -> None:
    verified = verify_receipt(one_receipt(make_leaf(events=events(7, 8))), KEYS)
    check_events(verified, PAYLOADS)
    for other in ([], PAYLOADS[:1], PAYLOADS[::-1], [*PAYLOADS, b"{}"], [PAYLOADS[0], b"{}"]):
        with pytest.raises(ReceiptError) as caught:
            check_events(verified, other)
        assert caught.value.code == "receipt_mismatch"


def test_a_batch_has_at_least_one_decision() -> None:
    with pytest.raises(TreeError):
        receipts([])


@pytest.mark.parametrize(
    "fields", [{"details": {"share": 0.5}}, {"aggregate_id": ""}, {"fingerprint": "AB" * 32}]
)
def test_no_leaf_is_encoded_that_nobody_could_read_back(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        encode_leaf(make_leaf(**fields))


def test_no_header_is_encoded_that_nobody_could_read_back() -> None:
    header, _ = receipts([encode(make_leaf())])
    with pytest.raises(MalformedError):
        encode_header(msgspec.structs.replace(header, previous="none"))


def test_the_first_header_of_a_lineage_can_name_the_one_it_continues() -> None:
    continues = Continuation(lineage="l0", batch=3, header_hash="ef" * 32)
    header, (receipt,) = receipts([encode(make_leaf())], continues=continues)
    assert verify_receipt(receipt, KEYS).header.continues == continues
    assert decode_header(encode_header(header)) == header


def test_headers_events_and_commands_are_hashed_each_in_their_own_way() -> None:
    data = b'{"a":1}'
    assert len({header_hash(data), payload_hash(data), command_hash(data)}) == 3
    assert header_hash(data) != header_hash(pae(BATCH_TYPE, data))
