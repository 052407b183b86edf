"""How drafts lie in their table, within a transaction."""

from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from workmate_client.journal.rows import Draft
from workmate_client.journal.tables import DRAFT

DraftChange = Callable[[bytes | None], bytes]
"""Given a draft's content, or None where there is none, returns the new content."""


def change_draft(
    connection: sa.Connection, task_id: str, form: str, change: DraftChange, now: str
) -> Draft:
    """Change a draft, and return it as it will be saved."""
    chosen = is_draft(task_id, form)
    old = connection.execute(sa.select(DRAFT.c.content).where(chosen)).scalar()
    draft = Draft(task_id, form, change(old), now)
    delete_draft(connection, task_id, form)
    connection.execute(sa.insert(DRAFT).values(**msgspec.structs.asdict(draft)))
    return draft


def delete_draft(connection: sa.Connection, task_id: str, form: str) -> None:
    """Throw a draft away."""
    connection.execute(sa.delete(DRAFT).where(is_draft(task_id, form)))


def is_draft(task_id: str, form: str) -> sa.ColumnElement[bool]:
    """Return the condition that picks one draft."""
    return (DRAFT.c.task_id == task_id) & (DRAFT.c.form == form)
