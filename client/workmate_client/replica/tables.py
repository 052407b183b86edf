"""The tables of `replica.db`. Every column has an explicit type, as STRICT tables need."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from workmate_client.journal.database import Layout

SCHEMA_VERSION = 1

_STRICT = {"sqlite_strict": True}


_OWN: dict[str, Any] = {"registry": registry()}


class _Base(SQLModel, **_OWN):
    """The replica's own registry of tables."""

    __table_args__: Any = _STRICT


class TaskRow(_Base, table=True):
    """One task as the server showed it last: the kernel's state and the disclosures, as JSON.

    `removed` says why it left the worker's sight; `snapshot` is the number of the pull from the
    start in which it was seen last.
    """

    __tablename__ = "task"

    task_id: str = Field(sa_column=sa.Column(sa.Text, primary_key=True))
    seq: int = Field(sa_column=sa.Column(sa.Integer, nullable=False))
    body: str = Field(sa_column=sa.Column(sa.Text, nullable=False))
    disclosures: str = Field(sa_column=sa.Column(sa.Text, nullable=False))
    removed: str = Field(sa_column=sa.Column(sa.Text, nullable=True))
    snapshot: int = Field(sa_column=sa.Column(sa.Integer, nullable=False))


class CursorRow(_Base, table=True):
    """How far the server was heard; `complete` once a pull from the start has reached its end."""

    __tablename__ = "cursor"
    __table_args__ = (sa.CheckConstraint("id = 1"), _STRICT)

    id: int = Field(sa_column=sa.Column(sa.Integer, primary_key=True, autoincrement=False))
    cursor: str = Field(sa_column=sa.Column(sa.Text, nullable=True))
    snapshot: int = Field(sa_column=sa.Column(sa.Integer, nullable=False))
    complete: int = Field(sa_column=sa.Column(sa.Integer, nullable=False))


TASK = _Base.metadata.tables["task"]
CURSOR = _Base.metadata.tables["cursor"]

REPLICA_LAYOUT = Layout(_Base.metadata, SCHEMA_VERSION, "NORMAL")
"""The replica's tables; what a power cut takes from them is pulled again."""
