"""The second copies in the unsent log: drafts and evidence rows, taken from it and kept in it.

The last record of each counts, and an act that finished a draft ends it. A copy is dropped with the
draft, or once the server has confirmed the file.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import asdict

from workmate_client.journal.draft_rows import delete_draft
from workmate_client.journal.evidence_rows import insert_evidence, read_item
from workmate_client.journal.rows import Draft, EvidenceItem
from workmate_client.journal.tables import DRAFT, EVIDENCE_ITEM
from workmate_client.journal.unsent_records import (
    ActRecord,
    DraftRecord,
    EvidenceRecord,
    UnsentRecord,
    encode_record,
)

Place = tuple[str, str]
"""Task and form of a draft, or task and hash of a file."""


class Copies(Struct, frozen=True):
    """The copies that count: drafts, each None where it has ended, and files."""

    drafts: dict[Place, Draft | None]
    files: dict[Place, EvidenceItem]


def copies_in(records: Sequence[UnsentRecord]) -> Copies:
    """Return the last copy of each draft and file in a log."""
    drafts: dict[Place, Draft | None] = {}
    files: dict[Place, EvidenceItem] = {}
    for record in records:
        if isinstance(record, DraftRecord):
            place = (record.draft.task_id, record.draft.form)
            drafts[place] = None if record.ended else record.draft
        elif isinstance(record, EvidenceRecord):
            files[record.item.task_id, record.item.hash] = record.item
        elif isinstance(record, ActRecord) and record.finishes is not None:
            drafts[record.finishes] = None
    return Copies(drafts, files)


def take_copies(connection: sa.Connection, records: Sequence[UnsentRecord]) -> None:
    """Put the copies into a journal that was rebuilt; what the log says is newer."""
    copies = copies_in(records)
    for place, draft in copies.drafts.items():
        delete_draft(connection, *place)
        if draft is not None:
            connection.execute(sa.insert(DRAFT).values(**asdict(draft)))
    for item in copies.files.values():
        if not insert_evidence(connection, item):
            row = (EVIDENCE_ITEM.c.task_id == item.task_id) & (EVIDENCE_ITEM.c.hash == item.hash)
            values = {"sealed_name": item.sealed_name}
            connection.execute(sa.update(EVIDENCE_ITEM).where(row).values(**values))


def held_copies(connection: sa.Connection) -> tuple[UnsentRecord, ...]:
    """Return the records that a log has to hold for the drafts and files of a journal."""
    drafts = connection.execute(sa.select(DRAFT).order_by(DRAFT.c.task_id, DRAFT.c.form))
    is_open = EVIDENCE_ITEM.c.verified_at.is_(None) & (EVIDENCE_ITEM.c.kind != "found")
    chosen = sa.select(EVIDENCE_ITEM).where(is_open).order_by(EVIDENCE_ITEM.c.added_order)
    files = [read_item(dict(row)) for row in connection.execute(chosen).mappings()]
    return (
        *(DraftRecord(draft=Draft(*row)) for row in drafts),
        *(EvidenceRecord(item=item) for item in files),
    )


def missing_copies(
    connection: sa.Connection, records: Sequence[UnsentRecord]
) -> list[UnsentRecord]:
    """Return the records that a log lacks."""
    copies = copies_in(records)
    return [record for record in held_copies(connection) if not _is_known(record, copies)]


def _is_known(record: UnsentRecord, copies: Copies) -> bool:
    if isinstance(record, DraftRecord):
        return copies.drafts.get((record.draft.task_id, record.draft.form)) == record.draft
    if isinstance(record, EvidenceRecord):
        known = copies.files.get((record.item.task_id, record.item.hash))
        return known is not None and known.sealed_name == record.item.sealed_name
    return True


def outdated(connection: sa.Connection, records: Sequence[UnsentRecord]) -> frozenset[bytes]:
    """Return the bytes of the copies in a log that count no more."""
    copies = copies_in(records)
    held = held_copies(connection)
    drafts = {(r.draft.task_id, r.draft.form) for r in held if isinstance(r, DraftRecord)}
    files = {(r.item.task_id, r.item.hash) for r in held if isinstance(r, EvidenceRecord)}
    dropped: set[bytes] = set()
    for record in records:
        if isinstance(record, DraftRecord):
            place = (record.draft.task_id, record.draft.form)
            if place not in drafts or copies.drafts[place] != record.draft:
                dropped.add(encode_record(record))
        elif isinstance(record, EvidenceRecord):
            place = (record.item.task_id, record.item.hash)
            if place not in files or copies.files[place] != record.item:
                dropped.add(encode_record(record))
    return frozenset(dropped)
