"""The part of the journal that keeps half-filled forms: saved on every change, whole or not at all.

Each is in the unsent log as well before anybody is told that it is saved.
"""

import sqlalchemy as sa

from workmate_client.journal.draft_rows import DraftChange, change_draft, delete_draft, is_draft
from workmate_client.journal.parts import JournalPart
from workmate_client.journal.rows import Draft
from workmate_client.journal.tables import DRAFT
from workmate_client.journal.unsent_records import DraftRecord, encode_record


class DraftStore(JournalPart):
    """Drafts, by task and form."""

    def edit_draft(self, task_id: str, form: str, change: DraftChange) -> Draft:
        """Change a draft, alone among everybody who writes here, and return it as saved.

        What `change` raises changes nothing.
        """
        with self._database.write() as connection:
            draft = change_draft(connection, task_id, form, change, self._now())
            self._unsent.append(encode_record(DraftRecord(draft=draft)))
            self._reach("draft.written")
        self._reach("draft.committed")
        return draft

    def save_draft(self, task_id: str, form: str, content: bytes) -> Draft:
        """Save a draft whatever was there before."""
        return self.edit_draft(task_id, form, lambda _: content)

    def draft(self, task_id: str, form: str) -> Draft | None:
        """Return a draft as it was last saved, or None."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(DRAFT).where(is_draft(task_id, form))).first()
            return Draft(*row) if row else None

    def drafts(self) -> tuple[Draft, ...]:
        """Return all drafts, by task and form."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(DRAFT).order_by(DRAFT.c.task_id, DRAFT.c.form))
            return tuple(Draft(*row) for row in rows)

    def delete_draft(self, task_id: str, form: str) -> None:
        """Throw a draft away."""
        with self._database.write() as connection:
            delete_draft(connection, task_id, form)
            gone = Draft(task_id, form, b"", self._now())
            self._unsent.append(encode_record(DraftRecord(draft=gone, ended=True)))
