"""Copies of a log, changed behind the engine's back."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from support.log import Log
from workmate_server.config import Settings
from workmate_server.engine.blocking import WorkerThreads
from workmate_server.engine.commit import Commit, Signer
from workmate_server.engine.engine import Engine
from workmate_server.engine.model import Submission
from workmate_server.engine.workspace import Workspace
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.store.sqlite import SqliteDatabase
from workmate_server.store.tables import ServerTable
from workmate_server.telemetry.system import NoHooks, SystemClock
from workmate_shared.kernel.command import Event
from workmate_shared.kernel.decision import Committed, Decision
from workmate_shared.kernel.instants import format_instant
from workmate_shared.wire.registry import kind_of_command

ROW_KEYS = {
    "audit_event": "audit_event seq {seq}",
    "command_log": "command_log batch {batch} leaf {leaf_index}",
    "commit_batch": "commit_batch {batch}",
}
"""How `verify` names a row of the log."""


@contextmanager
def opened_copy(prepared: Path, folder: Path) -> Iterator[Log]:
    """Copy a prepared log to a new folder and open it; nothing is committed to it."""
    shutil.copytree(prepared, folder, dirs_exist_ok=True)
    keys = KeyFolder.open(folder / "keys")
    database = SqliteDatabase(folder / "office.db", keys.database_key)
    clock, threads = SystemClock(), WorkerThreads(1)
    log = Log(folder, database, keys, Engine(database, keys, Settings(), clock, NoHooks(), threads))
    (head,) = log.rows("tenant_head")
    log.tenant_id, log.lineage = head["tenant_id"], head["lineage"]
    try:
        yield log
    finally:
        threads.close()
        database.close()


Tables = dict[str, list[dict[str, Any]]]


def read_tables(log: Log) -> Tables:
    """Return every row of every table, with its rowid."""
    with log.database.read() as connection:
        found = {}
        for name in ServerTable.metadata.tables:
            rows = connection.exec_driver_sql(f"SELECT rowid, * FROM {name} ORDER BY rowid")
            found[name] = [dict(row._mapping) for row in rows]
        return found


def put_back(log: Log, tables: Tables) -> None:
    """Make every table what it was."""
    for name, rows in tables.items():
        log.tamper(f"DELETE FROM {name}")
        if rows:
            columns = ", ".join(rows[0])
            values = ", ".join(f":{column}" for column in rows[0])
            with log.database.write() as connection:
                connection.execute(text(f"INSERT INTO {name} ({columns}) VALUES ({values})"), rows)


def copy_row(log: Log, table: str, rowid: int, **changes: Any) -> None:
    """Insert a copy of a row with some columns changed."""
    columns = [column.name for column in ServerTable.metadata.tables[table].c]
    chosen = ", ".join(f":{name}" if name in changes else name for name in columns)
    log.tamper(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table} "
        "WHERE rowid = :rowid",
        rowid=rowid,
        **changes,
    )


Decide = Callable[[tuple[Event, ...]], Decision]


def forge(log: Log, submission: Submission, decide: Decide = Committed) -> int:
    """Commit a command without any check, signed with the log's own key; return its first seq.

    `decide` turns the events that the command would have into what is committed.
    """
    command = submission.message.command
    now = format_instant(SystemClock().now())
    key = log.keys.log_key
    signer = Signer(key.key_id, key.seed, key.public_key)
    with log.database.write() as connection:
        workspace = Workspace(connection, log.tenant_id, log.lineage, now, [submission])
        state = workspace.state(command)
        lifecycle = kind_of_command(command.name).lifecycle
        events = lifecycle.make_events(state, command, workspace.context(submission))
        commit = Commit(log.database, connection, signer, log.tenant_id, now)
        commit._workspace = workspace
        commit._drafts.append(commit._draft(submission, state, decide(events)))
        commit._append()
    return (commit.newest_seq or 0) + 1 - len(commit._drafts[0].events)


def place_of(table: str, row: Mapping[str, Any]) -> str:
    """Return how `verify` names a row of the log."""
    return ROW_KEYS[table].format(**row)


def places(log: Log) -> list[str]:
    """Return the places that `verify` names."""
    return [finding.place for finding in log.verify().findings]
