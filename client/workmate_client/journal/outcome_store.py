"""The part of the journal that records how commands ended, and that counts where each one went."""

import contextlib
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from workmate_client.journal.log_match import trim_log
from workmate_client.journal.parts import CommandUnknownError, JournalPart
from workmate_client.journal.profile_rows import last_device_seq, read_lineage, read_profile
from workmate_client.journal.queue_rows import IS_PENDING, IS_REPLACED, select_commands
from workmate_client.journal.rows import Conservation, OutcomeStatus, RecordedOutcome
from workmate_client.journal.seq_ranges import numbers_in
from workmate_client.journal.tables import EVIDENCE_ITEM, QUEUED_COMMAND, RECORDED_OUTCOME
from workmate_client.ports import StorageError
from workmate_shared.tasks.events import EvidenceStored
from workmate_shared.wire.intake import decode_event
from workmate_shared.wire.messages import Outcome, WireEvent

_STORED = str(EvidenceStored.__struct_config__.tag)


class OutcomeStore(JournalPart):
    """Outcomes and conservation."""

    def record_outcome(self, command_id: str, outcome: Outcome) -> bool:
        """Record how a command ended; see `record_outcomes`."""
        if outcome.command_id != command_id:
            raise ValueError("the outcome is that of another command")
        return self.record_outcomes([outcome]) == 1

    def record_outcomes(self, outcomes: Sequence[Outcome]) -> int:
        """Record for the present lineage how commands ended, in one transaction.

        The caller has verified the receipts. Files that an `evidence.stored` among the events names
        are verified from here on. A command that has an outcome in this lineage keeps it. When
        everything is answered, the unsent log is emptied. Returns how many were new. Raises
        CommandUnknownError; ValueError for a `retry`, which is no outcome.
        """
        with self._database.locked():
            with self._database.write_locked() as connection:
                lineage = read_lineage(connection)
                new = sum(self._record(connection, lineage, outcome) for outcome in outcomes)
                self._reach("outcome.written")
            self._reach("outcome.committed")
            if new:
                # The outcome is recorded; a log that is too long is no reason to say otherwise.
                with contextlib.suppress(StorageError), self._database.read() as connection:
                    if not _any_pending(connection, lineage):
                        trim_log(connection, self._unsent)
            return new

    def _record(self, connection: sa.Connection, lineage: str, outcome: Outcome) -> bool:
        if outcome.status not in get_args(OutcomeStatus):
            raise ValueError(f"{outcome.status} is no outcome")
        chosen = QUEUED_COMMAND.c.command_id == outcome.command_id
        task_id = connection.execute(
            sa.select(QUEUED_COMMAND.c.aggregate_id).where(chosen)
        ).scalar()
        if task_id is None:
            raise CommandUnknownError(f"no command {outcome.command_id} was issued here")
        recorded = _recorded(outcome, lineage, self._now())
        values = {
            "command_id": outcome.command_id,
            "lineage": lineage,
            "status": outcome.status,
            "body": msgspec.json.encode(recorded).decode(),
        }
        statement = insert(RECORDED_OUTCOME).values(**values)
        statement = statement.on_conflict_do_nothing(index_elements=["command_id", "lineage"])
        if connection.execute(statement).rowcount == 0:
            return False
        settled = {"wait_code": None, "blocked_by": None, "next_attempt_at": None}
        connection.execute(sa.update(QUEUED_COMMAND).where(chosen).values(**settled))
        _mark_stored(connection, task_id, outcome.events, recorded.recorded_at)
        return True

    def conservation(self) -> Conservation:
        """Return where every command went, in the present lineage."""
        with self._database.read() as connection:
            lineage = read_lineage(connection)
            statement = (
                sa.select(RECORDED_OUTCOME.c.status, sa.func.count())
                .where(RECORDED_OUTCOME.c.lineage == lineage)
                .group_by(RECORDED_OUTCOME.c.status)
            )
            ended = {row[0]: row[1] for row in connection.execute(statement)}
            seqs = set(connection.execute(sa.select(QUEUED_COMMAND.c.device_seq)).scalars())
            replaced = select_commands(lineage).where(
                IS_REPLACED, RECORDED_OUTCOME.c.body.is_(None)
            )
            every = sa.select(QUEUED_COMMAND.c.command_id)
            names = replaced.with_only_columns(QUEUED_COMMAND.c.command_id)
            issued = _count(connection, every) - _count(connection, names)
            waiting = select_commands(lineage).where(IS_PENDING)
            pending = _count(connection, waiting.with_only_columns(QUEUED_COMMAND.c.command_id))
            last = max([last_device_seq(connection), *seqs])
            profile = read_profile(connection)
            here = seqs | numbers_in(profile.answered_before if profile else ())
        return Conservation(
            issued=issued,
            pending=pending,
            committed=ended.get("committed", 0),
            unchanged=ended.get("unchanged", 0),
            conflict=ended.get("conflict", 0),
            rejected=ended.get("rejected", 0),
            lost=tuple(seq for seq in range(1, last + 1) if seq not in here),
        )


def _any_pending(connection: sa.Connection, lineage: str) -> bool:
    waiting = select_commands(lineage).where(IS_PENDING)
    names = waiting.with_only_columns(QUEUED_COMMAND.c.command_id).limit(1)
    return connection.execute(names).first() is not None


def _count(connection: sa.Connection, statement: sa.Select[Any]) -> int:
    counted = sa.select(sa.func.count()).select_from(statement.order_by(None).subquery())
    return int(connection.execute(counted).scalar_one())


def _recorded(outcome: Outcome, lineage: str, now: str) -> RecordedOutcome:
    return RecordedOutcome(
        status=outcome.status,  # type: ignore[arg-type]
        code=outcome.code,
        details=outcome.details,
        version=outcome.version,
        events=outcome.events,
        receipt=outcome.receipt,
        current=outcome.current,
        events_since=outcome.events_since,
        replayed=outcome.replayed,
        lineage=lineage,
        recorded_at=now,
    )


def _mark_stored(
    connection: sa.Connection, task_id: str, events: Sequence[WireEvent], now: str
) -> None:
    """Mark the files that the server's receipt names: from now on each is verified."""
    for event in events:
        if event.type != _STORED:
            continue
        # An event of a later version says what it says to a later program, and holds up nothing.
        with contextlib.suppress(msgspec.ValidationError):
            stored = decode_event(event.type, event.payload.encode())
            if isinstance(stored, EvidenceStored):
                mark_verified(connection, task_id, stored.hashes, now)


def mark_verified(connection: sa.Connection, task_id: str, hashes: Sequence[str], now: str) -> None:
    """Note within a transaction that the server holds and verified files of a task."""
    chosen = (EVIDENCE_ITEM.c.task_id == task_id) & EVIDENCE_ITEM.c.hash.in_(hashes)
    values = {"verified_at": now, "wait_code": None, "next_attempt_at": None}
    connection.execute(sa.update(EVIDENCE_ITEM).where(chosen).values(**values))
