"""The format of the unsent log: sealed records that can be found again behind damaged bytes.

Layout of a record, integers big-endian: a marker, the length of the sealed body, the record's
index, a nonce, a check over these, then the body as XChaCha20-Poly1305 ciphertext with its tag, the
head authenticated with it. The marker tells where to go on reading; the check tells a record that
was cut off by a crash from one whose length was damaged.
"""

import struct
from typing import Literal

from blake3 import blake3
from msgspec import Struct

from workmate_client.journal.aead import NONCE_BYTES, TAG_BYTES, UnsealError, seal, unseal

MARKER = b"\xf5WMREC\r\n"
CHECK_BYTES = 8

_HEAD = struct.Struct(f">{len(MARKER)}sIQ{NONCE_BYTES}s")

RECORD_OVERHEAD_BYTES = _HEAD.size + CHECK_BYTES + TAG_BYTES
"""What a record takes beyond its content, in bytes."""

DamageKind = Literal["torn_tail", "unreadable", "repeated"]


class Damage(Struct, frozen=True):
    """A stretch of the log that gave no record: where it begins and how many bytes it has.

    `torn_tail`: an append that never finished, which nobody was told is saved. `unreadable`:
    something else; `index` is known if the head still said it. `repeated`: a copy of a record
    that was read already.
    """

    kind: DamageKind
    offset: int
    length: int
    index: int | None = None


class Record(Struct, frozen=True):
    """One record as it was appended: its index, from 0, and its content."""

    index: int
    content: bytes


class Scan(Struct, frozen=True):
    """What a log holds: the readable records by index, and everything else by place."""

    records: tuple[Record, ...]
    damage: tuple[Damage, ...]

    @property
    def next_index(self) -> int:
        """The index of the record to append next."""
        return max((record.index + 1 for record in self.records), default=0)

    @property
    def torn_tail(self) -> Damage | None:
        """The append that never finished, if there is one."""
        last = self.damage[-1] if self.damage else None
        return last if last and last.kind == "torn_tail" else None

    @property
    def lost_indexes(self) -> tuple[int, ...]:
        """The indexes below the next one of which no record was read."""
        seen = {record.index for record in self.records}
        return tuple(index for index in range(self.next_index) if index not in seen)


class _Head(Struct, frozen=True):
    raw: bytes
    body_bytes: int
    index: int
    nonce: bytes


def seal_record(key: bytes, index: int, nonce: bytes, content: bytes) -> bytes:
    """Return a record's bytes; the nonce is fresh and random, 24 bytes."""
    head = _HEAD.pack(MARKER, len(content) + TAG_BYTES, index, nonce)
    return head + _check(head) + seal(key, nonce, content, head)


def scan_log(key: bytes, data: bytes, content_limit_bytes: int) -> Scan:
    """Read a log as far as it can be read; never raises, whatever the bytes are."""
    records: list[Record] = []
    damage: list[Damage] = []
    seen: dict[int, bytes] = {}
    offset = 0
    while offset < len(data):
        head = _head_at(data, offset, content_limit_bytes)
        record = head and _open(key, head, data, offset)
        if head and record:
            end = offset + _HEAD.size + CHECK_BYTES + head.body_bytes
            if seen.get(record.index) == record.content:
                damage.append(Damage("repeated", offset, end - offset, record.index))
            else:
                records.append(record)
                seen[record.index] = record.content
        else:
            end = _next_head(data, offset + 1, content_limit_bytes)
            torn = end == len(data) and _is_torn(data, offset, head)
            kind: DamageKind = "torn_tail" if torn else "unreadable"
            damage.append(Damage(kind, offset, end - offset, head.index if head else None))
        offset = end
    records.sort(key=lambda record: record.index)
    return Scan(tuple(records), tuple(damage))


def _check(head: bytes) -> bytes:
    return blake3(head).digest(CHECK_BYTES)


def _head_at(data: bytes, offset: int, content_limit_bytes: int) -> _Head | None:
    raw = data[offset : offset + _HEAD.size]
    check = data[offset + _HEAD.size : offset + _HEAD.size + CHECK_BYTES]
    if len(check) < CHECK_BYTES or check != _check(raw):
        return None
    marker, body_bytes, index, nonce = _HEAD.unpack(raw)
    if marker != MARKER or not TAG_BYTES <= body_bytes <= content_limit_bytes + TAG_BYTES:
        return None
    return _Head(raw, body_bytes, index, nonce)


def _next_head(data: bytes, start: int, content_limit_bytes: int) -> int:
    """Return where the next whole head lies, or the end of the data."""
    found = data.find(MARKER, start)
    while found >= 0 and _head_at(data, found, content_limit_bytes) is None:
        found = data.find(MARKER, found + 1)
    return found if found >= 0 else len(data)


def _open(key: bytes, head: _Head, data: bytes, offset: int) -> Record | None:
    start = offset + _HEAD.size + CHECK_BYTES
    body = data[start : start + head.body_bytes]
    try:
        return Record(head.index, unseal(key, head.nonce, body, head.raw))
    except UnsealError:
        return None


def _is_torn(data: bytes, offset: int, head: _Head | None) -> bool:
    """Tell whether the log's last bytes are the beginning of an append and nothing else."""
    rest = data[offset:]
    if head is not None:
        return len(rest) < _HEAD.size + CHECK_BYTES + head.body_bytes
    begins_well = MARKER.startswith(rest[: len(MARKER)]) and len(rest) < _HEAD.size + CHECK_BYTES
    # After a power cut a file can have its new length and not yet its new bytes.
    return begins_well or not any(rest)
