"""The part of the journal that issues commands and keeps what became of them.

A command is saved as a whole or not at all: numbered, signed, in the database and in the unsent log
before anybody is told. It is pending until one of the four outcomes is recorded for it; nothing that
was recorded in a lineage is ever written over.
"""

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from workmate_client.journal.draft_rows import delete_draft
from workmate_client.journal.log_match import drop_from_log
from workmate_client.journal.parts import CommandUnknownError, JournalError, JournalPart
from workmate_client.journal.profile_rows import last_device_seq, read_lineage, set_device_seq
from workmate_client.journal.queue_rows import (
    IS_PENDING,
    as_issued,
    insert_command,
    read_command,
    select_commands,
)
from workmate_client.journal.rows import QueuedCommand, SignedParts
from workmate_client.journal.store_errors import StoreError
from workmate_client.journal.tables import QUEUED_COMMAND
from workmate_client.journal.unsent_records import ActRecord, CommandRecord, encode_record
from workmate_client.ports import StorageError
from workmate_shared.wire.intake import decode_command

BuildOne = Callable[[int], SignedParts]
"""Given the next `device_seq`, returns one signed command; what it raises saves nothing."""

BuildMany = Callable[[int], Sequence[SignedParts]]
"""Given the first free `device_seq`, returns commands numbered from there."""


class IssueUncertainError(JournalError):
    """The disk failed in the very moment of saving: the act may be saved or not."""

    code = "issue_uncertain"


class NotLostError(JournalError):
    """Only a conflict or a rejection can be set aside."""

    code = "not_lost"


_HIGHEST_ORDER = sa.select(sa.func.max(QUEUED_COMMAND.c.local_order))


class QueueStore(JournalPart):
    """Commands: issuing, reading, waiting, setting aside."""

    def issue(self, build: BuildOne, *, finishes: tuple[str, str] | None = None) -> QueuedCommand:
        """Number, sign and save one command; see `issue_all`."""
        return self.issue_all(lambda seq: (build(seq),), finishes=finishes)[0]

    def issue_all(
        self, build: BuildMany, *, finishes: tuple[str, str] | None = None
    ) -> tuple[QueuedCommand, ...]:
        """Number, sign and save commands as one act: durable, all of them, when this returns.

        `build` runs alone among everybody who writes here, and may read the journal. The draft
        named by `finishes` (task, form) ends with the act. Raises what `build` raises, StoreError or
        StorageError, after which nothing was saved; IssueUncertainError if even that is not known.
        """
        with self._database.locked():
            saved: ActRecord | None = None
            try:
                with self._database.write_locked() as connection:
                    commands = _number(connection, build, self._now())
                    for command in commands:
                        insert_command(connection, command)
                        set_device_seq(connection, command.device_seq)
                    if finishes is not None:
                        delete_draft(connection, *finishes)
                    act = ActRecord(commands=commands, finishes=finishes)
                    self._reach("issue.written")
                    self._unsent.append(encode_record(act))
                    saved = act
                    self._reach("issue.appended")
            except (StoreError, StorageError):
                if saved is not None:
                    self._take_back(saved)
                raise
            self._reach("issue.committed")
            return tuple(as_issued(record) for record in act.commands)

    def _take_back(self, act: ActRecord) -> None:
        """A commit failed: what was not saved must not turn up later out of the log."""
        try:
            if self._select(QUEUED_COMMAND.c.command_id.in_(_names(act))):
                raise IssueUncertainError("the disk failed while the act was being saved")
            drop_from_log(self._unsent, encode_record(act))
        except (StoreError, StorageError) as error:
            raise IssueUncertainError("the disk failed while the act was being saved") from error

    def pending(self) -> tuple[QueuedCommand, ...]:
        """Return the commands without an outcome in the present lineage, in local order."""
        return self._select(IS_PENDING)

    def commands(self, aggregate_id: str | None = None) -> tuple[QueuedCommand, ...]:
        """Return all commands, or those on one aggregate, in local order."""
        if aggregate_id is None:
            return self._select(sa.true())
        return self._select(QUEUED_COMMAND.c.aggregate_id == aggregate_id)

    def command(self, command_id: str) -> QueuedCommand | None:
        """Return one command, or None."""
        found = self._select(QUEUED_COMMAND.c.command_id == command_id)
        return found[0] if found else None

    def _select(self, condition: sa.ColumnElement[bool]) -> tuple[QueuedCommand, ...]:
        with self._database.read() as connection:
            statement = select_commands(read_lineage(connection)).where(condition)
            rows = connection.execute(statement).mappings()
            return tuple(read_command(row) for row in rows)

    def record_wait(
        self,
        command_id: str,
        code: str | None,
        *,
        blocked_by: str | None = None,
        next_attempt_at: str | None = None,
    ) -> None:
        """Note that a try ended without an outcome, and why; None waits for nothing in particular.

        `next_attempt_at` is an instant of this clock. Raises CommandUnknownError.
        """
        values: dict[str, Any] = {
            "attempts": QUEUED_COMMAND.c.attempts + 1,
            "wait_code": code,
            "blocked_by": blocked_by,
            "next_attempt_at": next_attempt_at,
        }
        self._update(command_id, values)

    def set_aside(self, command_id: str, reason: str) -> QueuedCommand:
        """Mark a conflict or rejection as dealt with, for a reason; nothing else changes.

        Raises CommandUnknownError, or NotLostError for a command that ended in another way.
        """
        command = self._known(command_id)
        if command.status not in ("conflict", "rejected"):
            raise NotLostError(f"{command_id} is {command.status}")
        return self._update(command_id, {"set_aside_at": self._now(), "set_aside_reason": reason})

    def bring_back(self, command_id: str) -> QueuedCommand:
        """Take the mark of `set_aside` away. Raises CommandUnknownError."""
        return self._update(command_id, {"set_aside_at": None, "set_aside_reason": None})

    def _update(self, command_id: str, values: dict[str, Any]) -> QueuedCommand:
        chosen = QUEUED_COMMAND.c.command_id == command_id
        with self._database.write() as connection:
            connection.execute(sa.update(QUEUED_COMMAND).where(chosen).values(**values))
        return self._known(command_id)

    def _known(self, command_id: str) -> QueuedCommand:
        command = self.command(command_id)
        if command is None:
            raise CommandUnknownError(f"no command {command_id} was issued here")
        return command


def _names(act: ActRecord) -> list[str]:
    return [command.command_id for command in act.commands]


def _number(connection: sa.Connection, build: BuildMany, now: str) -> tuple[CommandRecord, ...]:
    first = last_device_seq(connection) + 1
    top = connection.execute(_HIGHEST_ORDER).scalar()
    records = []
    for index, parts in enumerate(build(first)):
        command = decode_command(parts.payload)
        if command.device is None or command.device.device_seq != first + index:
            raise ValueError("the command does not carry the number that it was given")
        record = CommandRecord(
            command_id=command.command_id,
            local_order=(top or 0) + 1 + index,
            device_seq=first + index,
            issued_at=now,
            parts=parts,
        )
        records.append(record)
    return tuple(records)
