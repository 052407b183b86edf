"""What stands in the unsent log: pending commands, and the profile that they belong to.

Beside them stand a second copy of every draft and of every evidence row; the last record of each
counts. With these and the sealed evidence folder alone a lost journal is rebuilt, and the numbers of
`device_seq` go on where they stood. Commands that were one act are one record: all of them or none.
"""

import msgspec
from msgspec import Struct

from workmate_client.journal.rows import Draft, EvidenceItem, Profile, SignedParts


class CommandRecord(Struct, frozen=True, kw_only=True):
    """One issued command, as it goes to the server, and its place in the queue."""

    command_id: str
    local_order: int
    device_seq: int
    issued_at: str
    parts: SignedParts


class ActRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="act"):
    """The commands of one act, and the draft (task, form) that ended with it."""

    commands: tuple[CommandRecord, ...]
    finishes: tuple[str, str] | None = None


class StateRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="state"):
    """Whose queue it is, and the highest `device_seq` given out; the last such record counts.

    `answered` are the numbers, as ranges with both ends, whose commands had been answered by then.
    """

    profile: Profile | None
    last_device_seq: int
    answered: tuple[tuple[int, int], ...] = ()


class DraftRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="draft"):
    """A draft as it was saved; `ended` if it was thrown away."""

    draft: Draft
    ended: bool = False


class EvidenceRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="evidence"):
    """The row of a captured file as it was listed."""

    item: EvidenceItem


UnsentRecord = ActRecord | StateRecord | DraftRecord | EvidenceRecord

_DECODER = msgspec.json.Decoder(UnsentRecord)


def encode_record(record: UnsentRecord) -> bytes:
    """Return the bytes of a record."""
    return msgspec.json.encode(record)


def decode_record(data: bytes) -> UnsentRecord | None:
    """Return the record in its bytes, or None for one of a kind that a newer program wrote."""
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError:
        return None
