"""The tables of `journal.db`.

Every column has an explicit type, as STRICT tables need; instants are RFC 3339 text, structured
values JSON text, flags integers. What a command says of itself lies beside its signed bytes only to
be found by.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from workmate_client.journal.database import Layout

SCHEMA_VERSION = 1


_STRICT = {"sqlite_strict": True}


_OWN: dict[str, Any] = {"registry": registry()}


class _Base(SQLModel, **_OWN):
    """The journal's own registry of tables."""

    __table_args__: Any = _STRICT


def _text(**options: object) -> sa.Column[str]:
    return sa.Column(sa.Text, **{"nullable": False, **options})  # type: ignore[arg-type]


def _maybe_text() -> sa.Column[str]:
    return sa.Column(sa.Text, nullable=True)


def _integer(**options: object) -> sa.Column[int]:
    return sa.Column(sa.Integer, **{"nullable": False, **options})  # type: ignore[arg-type]


def _bytes() -> sa.Column[bytes]:
    return sa.Column(sa.LargeBinary, nullable=False)


class ProfileRow(_Base, table=True):
    """The one profile: a `Profile` as JSON, and the highest `device_seq` given out."""

    __tablename__ = "profile"
    __table_args__ = (sa.CheckConstraint("id = 1"), _STRICT)

    id: int = Field(sa_column=_integer(primary_key=True, autoincrement=False))
    body: str = Field(sa_column=_maybe_text())
    last_device_seq: int = Field(sa_column=_integer())


class QueuedCommandRow(_Base, table=True):
    """One signed command, and why it waits or was set aside."""

    __tablename__ = "queued_command"

    command_id: str = Field(sa_column=_text(primary_key=True))
    local_order: int = Field(sa_column=_integer(unique=True))
    device_seq: int = Field(sa_column=_integer(index=True))
    aggregate_kind: str = Field(sa_column=_text())
    aggregate_id: str = Field(sa_column=_text(index=True))
    name: str = Field(sa_column=_text())
    lineage: str = Field(sa_column=_text())
    after: str = Field(sa_column=_maybe_text())
    expected_version: int = Field(sa_column=_integer(nullable=True))
    occurred_at: str = Field(sa_column=_text())
    supersedes: str = Field(sa_column=sa.Column(sa.Text, nullable=True, index=True))
    payload: bytes = Field(sa_column=_bytes())
    key_id: str = Field(sa_column=_text())
    signature: bytes = Field(sa_column=_bytes())
    disclosures: str = Field(sa_column=_text())
    issued_at: str = Field(sa_column=_text())
    attempts: int = Field(sa_column=_integer())
    wait_code: str = Field(sa_column=_maybe_text())
    blocked_by: str = Field(sa_column=_maybe_text())
    next_attempt_at: str = Field(sa_column=_maybe_text())
    set_aside_at: str = Field(sa_column=_maybe_text())
    set_aside_reason: str = Field(sa_column=_maybe_text())


class OutcomeRow(_Base, table=True):
    """How a command ended in one lineage: a `RecordedOutcome` as JSON. Never changed."""

    __tablename__ = "recorded_outcome"

    command_id: str = Field(
        sa_column=sa.Column(sa.Text, sa.ForeignKey("queued_command.command_id"), primary_key=True)
    )
    lineage: str = Field(sa_column=_text(primary_key=True))
    status: str = Field(sa_column=_text())
    body: str = Field(sa_column=_text())


class EvidenceRow(_Base, table=True):
    """One captured file of one task; an empty `task_id` where it is not known any more."""

    __tablename__ = "evidence_item"

    task_id: str = Field(sa_column=_text(primary_key=True))
    hash: str = Field(sa_column=_text(primary_key=True))
    added_order: int = Field(sa_column=_integer(unique=True))
    sealed_name: str = Field(sa_column=_text(index=True))
    size_bytes: int = Field(sa_column=_integer())
    kind: str = Field(sa_column=_text())
    media_type: str = Field(sa_column=_text())
    file_name: str = Field(sa_column=_maybe_text())
    slot: str = Field(sa_column=_maybe_text())
    captured_at: str = Field(sa_column=_maybe_text())
    captured_from: str = Field(sa_column=_maybe_text())
    fix: str = Field(sa_column=_maybe_text())
    remarks: str = Field(sa_column=_text())
    added_at: str = Field(sa_column=_text())
    upload_url: str = Field(sa_column=_maybe_text())
    uploaded_bytes: int = Field(sa_column=_integer())
    upload_done_at: str = Field(sa_column=_maybe_text())
    verified_at: str = Field(sa_column=_maybe_text())
    attempts: int = Field(sa_column=_integer())
    wait_code: str = Field(sa_column=_maybe_text())
    next_attempt_at: str = Field(sa_column=_maybe_text())
    quarantined: str = Field(sa_column=_maybe_text())


class DraftRow(_Base, table=True):
    """A half-filled form of one task."""

    __tablename__ = "draft"

    task_id: str = Field(sa_column=_text(primary_key=True))
    form: str = Field(sa_column=_text(primary_key=True))
    content: bytes = Field(sa_column=_bytes())
    saved_at: str = Field(sa_column=_text())


class NoticeRow(_Base, table=True):
    """Something that the worker has to be told, until it is dismissed."""

    __tablename__ = "notice"

    notice_id: int = Field(sa_column=_integer(primary_key=True))
    at: str = Field(sa_column=_text())
    code: str = Field(sa_column=_text())
    detail: str = Field(sa_column=_text())


def _table(name: str) -> sa.Table:
    return _Base.metadata.tables[name]


PROFILE = _table("profile")
QUEUED_COMMAND = _table("queued_command")
RECORDED_OUTCOME = _table("recorded_outcome")
EVIDENCE_ITEM = _table("evidence_item")
DRAFT = _table("draft")
NOTICE = _table("notice")

JOURNAL_LAYOUT = Layout(_Base.metadata, SCHEMA_VERSION, "FULL")
"""The journal's tables, in the order in which rows may be inserted."""
