"""Sealed files and evidence rows, brought to agree.

A process that died between sealing a file and listing it leaves a file that no row names: it is
listed again, and what can still be known of it is read from the proofs that name it.
"""

import sqlalchemy as sa

from workmate_client.journal.evidence_rows import insert_evidence
from workmate_client.journal.media import HEAD_BYTES, media_type
from workmate_client.journal.profile_rows import insert_notice
from workmate_client.journal.rows import EvidenceItem
from workmate_client.journal.sealed import SealedFileError, SealedFolder
from workmate_client.journal.tables import EVIDENCE_ITEM, QUEUED_COMMAND
from workmate_shared.tasks.manifest import PhotoItem, SignatureItem
from workmate_shared.tasks.task import decode_manifest
from workmate_shared.wire.intake import decode_command

Named = dict[str, list[tuple[str, PhotoItem | SignatureItem]]]
"""For each hash the task and the manifest item that name it."""


def list_found(connection: sa.Connection, sealed: SealedFolder, now: str) -> None:
    """List the whole files that no row names; one that cannot be read is told and stays."""
    listed = connection.execute(sa.select(EVIDENCE_ITEM.c.sealed_name)).scalars()
    unlisted = sealed.inventory(listed).unlisted
    named = _named_in_manifests(connection) if unlisted else {}
    for name in unlisted:
        try:
            found = sealed.verify_file(name)
            kind = media_type(sealed.read_range(name, 0, HEAD_BYTES))
        except SealedFileError as error:
            insert_notice(connection, now, "evidence_damaged", error.detail)
            continue
        blank = EvidenceItem(
            task_id="",
            hash=found.hash,
            size_bytes=found.size_bytes,
            sealed_name=name,
            kind="found",
            media_type=kind,
            added_at=now,
        )
        items = [_described(blank, *place) for place in named.get(found.hash, [])] or [blank]
        added = [item for item in items if insert_evidence(connection, item)]
        if added:
            insert_notice(connection, now, "evidence_found", found.hash)


def mark_missing(connection: sa.Connection, sealed: SealedFolder, now: str) -> None:
    """Set aside the rows whose file is gone before the server had it, and tell."""
    listed = connection.execute(sa.select(EVIDENCE_ITEM.c.sealed_name)).scalars()
    missing = sealed.inventory(listed).missing
    open_rows = EVIDENCE_ITEM.c.verified_at.is_(None) & EVIDENCE_ITEM.c.quarantined.is_(None)
    for name in missing:
        is_row = EVIDENCE_ITEM.c.sealed_name == name
        connection.execute(sa.delete(EVIDENCE_ITEM).where(is_row & (EVIDENCE_ITEM.c.task_id == "")))
        values = {"quarantined": "sealed_file_missing"}
        statement = sa.update(EVIDENCE_ITEM).where(is_row & open_rows).values(**values)
        if connection.execute(statement).rowcount:
            insert_notice(connection, now, "evidence_missing", name)


def _named_in_manifests(connection: sa.Connection) -> Named:
    named: Named = {}
    carries = QUEUED_COMMAND.c.name.in_(("submit_proof", "hand_over"))
    for payload in connection.execute(sa.select(QUEUED_COMMAND.c.payload).where(carries)).scalars():
        command = decode_command(payload)
        text = getattr(command, "manifest", None)
        for item in decode_manifest(text).items if text else ():
            if isinstance(item, PhotoItem | SignatureItem) and item.hash is not None:
                named.setdefault(item.hash, []).append((command.aggregate_id, item))
    return named


def _described(blank: EvidenceItem, task_id: str, item: PhotoItem | SignatureItem) -> EvidenceItem:
    """Return the row of a file as the manifest tells it."""
    is_photo = isinstance(item, PhotoItem)
    return EvidenceItem(
        task_id=task_id,
        hash=blank.hash,
        size_bytes=blank.size_bytes,
        sealed_name=blank.sealed_name,
        kind="photo" if is_photo else "signature",
        media_type=item.media_type or blank.media_type,
        slot=item.slot if isinstance(item, PhotoItem) else item.signer,
        captured_at=item.captured_at,
        captured_from="manifest",
        added_at=blank.added_at,
    )
