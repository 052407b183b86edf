"""The part of the journal that keeps half-filled forms: saved on every change, whole or not at all."""

from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from workmate_client.journal.parts import JournalPart
from workmate_client.journal.rows import Draft
from workmate_client.journal.tables import DRAFT

DraftChange = Callable[[bytes | None], bytes]
"""Given a draft's content, or None where there is none, returns the new content."""


class DraftStore(JournalPart):
    """Drafts, by task and form."""

    def edit_draft(self, task_id: str, form: str, change: DraftChange) -> Draft:
        """Change a draft, alone among everybody who writes here, and return it as saved.

        What `change` raises changes nothing.
        """
        with self._database.write() as connection:
            draft = change_draft(connection, task_id, form, change, self._now())
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
            connection.execute(sa.delete(DRAFT).where(is_draft(task_id, form)))


def change_draft(
    connection: sa.Connection, task_id: str, form: str, change: DraftChange, now: str
) -> Draft:
    """Change a draft within a transaction, and return it as it will be saved."""
    chosen = is_draft(task_id, form)
    old = connection.execute(sa.select(DRAFT.c.content).where(chosen)).scalar()
    draft = Draft(task_id, form, change(old), now)
    connection.execute(sa.delete(DRAFT).where(chosen))
    connection.execute(sa.insert(DRAFT).values(**msgspec.structs.asdict(draft)))
    return draft


def is_draft(task_id: str, form: str) -> sa.ColumnElement[bool]:
    """Return the condition that picks one draft."""
    return (DRAFT.c.task_id == task_id) & (DRAFT.c.form == form)
