"""The part of the journal that lists captured files, and how far each has gone.

The file is sealed and durable before its row is written; row and draft are one transaction, so that
a form never names a file that is not listed; both are in the unsent log before it is committed. A row is never removed: evidence stays.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from workmate_client.journal.draft_rows import DraftChange, change_draft
from workmate_client.journal.evidence_rows import insert_evidence, read_item
from workmate_client.journal.outcome_store import mark_verified
from workmate_client.journal.parts import JournalError, JournalPart
from workmate_client.journal.rows import EvidenceItem
from workmate_client.journal.tables import EVIDENCE_ITEM, NOTICE
from workmate_client.journal.unsent_records import (
    DraftRecord,
    EvidenceRecord,
    UnsentRecord,
    encode_record,
)


class EvidenceUnknownError(JournalError):
    """No such file is listed for the task."""

    code = "evidence_unknown"


class EvidenceStore(JournalPart):
    """Evidence rows."""

    def add_evidence(
        self,
        item: EvidenceItem,
        *,
        form: str | None = None,
        change: DraftChange | None = None,
    ) -> bool:
        """List a sealed file, and change the draft that names it in the same transaction.

        False if this file (task and hash) is listed already: then the row stays as it is. A row
        that a recovery had made for this sealed file gives way to it.
        """
        with self._database.write() as connection:
            added = insert_evidence(connection, item)
            copies: list[UnsentRecord] = [EvidenceRecord(item=item)] if added else []
            if form is not None and change is not None:
                draft = change_draft(connection, item.task_id, form, change, self._now())
                copies.append(DraftRecord(draft=draft))
            self._unsent.extend([encode_record(copy) for copy in copies])
            self._reach("evidence.written")
        self._reach("evidence.committed")
        return added

    def evidence(self, task_id: str | None = None) -> tuple[EvidenceItem, ...]:
        """Return the files of one task, or of all, in the order in which they were added."""
        chosen = sa.true() if task_id is None else EVIDENCE_ITEM.c.task_id == task_id
        return self._evidence(chosen)

    def evidence_item(self, task_id: str, content_hash: str) -> EvidenceItem | None:
        """Return one file of a task, or None."""
        found = self._evidence(_is_item(task_id, content_hash))
        return found[0] if found else None

    def evidence_by_hash(self, content_hash: str) -> tuple[EvidenceItem, ...]:
        """Return the rows of one file, whatever task it was captured for."""
        return self._evidence(EVIDENCE_ITEM.c.hash == content_hash)

    def _evidence(self, chosen: sa.ColumnElement[bool]) -> tuple[EvidenceItem, ...]:
        with self._database.read() as connection:
            statement = sa.select(EVIDENCE_ITEM).where(chosen)
            rows = connection.execute(statement.order_by(EVIDENCE_ITEM.c.added_order))
            return tuple(read_item(dict(row)) for row in rows.mappings())

    def mark_uploaded(
        self,
        task_id: str,
        content_hash: str,
        uploaded_bytes: int,
        *,
        upload_url: str | None = None,
        done: bool = False,
    ) -> None:
        """Note how many bytes the server has acknowledged under which address; `done` ends it.

        Attempts count from 0 again: there was progress. Raises EvidenceUnknownError.
        """
        values: dict[str, Any] = {
            "uploaded_bytes": uploaded_bytes,
            "upload_url": upload_url,
            "attempts": 0,
            "wait_code": None,
            "next_attempt_at": None,
            "upload_done_at": self._now() if done else None,
        }
        self._update_item(task_id, content_hash, values)

    def record_upload_wait(
        self,
        task_id: str,
        content_hash: str,
        code: str | None,
        *,
        next_attempt_at: str | None = None,
    ) -> EvidenceItem:
        """Note that a try did not succeed, why, and when to try next; counts an attempt.

        Returns the file as it is then. Raises EvidenceUnknownError.
        """
        values: dict[str, Any] = {
            "attempts": EVIDENCE_ITEM.c.attempts + 1,
            "wait_code": code,
            "next_attempt_at": next_attempt_at,
        }
        return self._update_item(task_id, content_hash, values)

    def mark_verified(self, task_id: str, hashes: Sequence[str]) -> None:
        """Note that a verified receipt of the server names these files as stored."""
        with self._database.write() as connection:
            mark_verified(connection, task_id, hashes, self._now())

    def quarantine(self, task_id: str, content_hash: str, reason: str) -> None:
        """Stop trying a file, for a reason; the others go on. Raises EvidenceUnknownError."""
        self._update_item(task_id, content_hash, {"quarantined": reason})

    def release_quarantine(self, task_id: str, content_hash: str) -> None:
        """Try a file again from the start. Raises EvidenceUnknownError."""
        fresh: dict[str, Any] = {"quarantined": None, "attempts": 0, "wait_code": None}
        self._update_item(task_id, content_hash, {**fresh, "next_attempt_at": None})

    def renew_evidence(self, content_hash: str, broken: Sequence[str], kept: str) -> None:
        """Let rows of a file whose sealed copies are broken name the whole one that is kept.

        All rows of the file that the server has not confirmed are tried again from the start.
        """
        is_file = EVIDENCE_ITEM.c.hash == content_hash
        is_open = is_file & EVIDENCE_ITEM.c.verified_at.is_(None)
        fresh: dict[str, Any] = {"quarantined": None, "attempts": 0, "wait_code": None}
        with self._database.write() as connection:
            lost = is_file & EVIDENCE_ITEM.c.sealed_name.in_(broken)
            connection.execute(sa.update(EVIDENCE_ITEM).where(lost).values(sealed_name=kept))
            # What was said of the broken copy is no longer so.
            told = sa.delete(NOTICE).where(NOTICE.c.detail.in_(broken))
            connection.execute(told)
            again = sa.update(EVIDENCE_ITEM).where(is_open)
            connection.execute(again.values(**fresh, next_attempt_at=None))
            rows = connection.execute(sa.select(EVIDENCE_ITEM).where(is_open)).mappings()
            items = [read_item(dict(row)) for row in rows]
            self._unsent.extend([encode_record(EvidenceRecord(item=item)) for item in items])

    def _update_item(self, task_id: str, content_hash: str, values: dict[str, Any]) -> EvidenceItem:
        chosen = _is_item(task_id, content_hash)
        with self._database.write() as connection:
            statement = sa.update(EVIDENCE_ITEM).where(chosen).values(**values)
            if connection.execute(statement).rowcount == 0:
                raise EvidenceUnknownError(f"{content_hash} is no file of task {task_id}")
            row = connection.execute(sa.select(EVIDENCE_ITEM).where(chosen)).mappings().one()
            return read_item(dict(row))


def _is_item(task_id: str, content_hash: str) -> sa.ColumnElement[bool]:
    return (EVIDENCE_ITEM.c.task_id == task_id) & (EVIDENCE_ITEM.c.hash == content_hash)
