"""The replica: what the server said, and how far it was heard.

Rows and cursor change in one transaction, and a page that does not join what is held changes
nothing. After a void cursor everything is pulled anew; the old rows stay readable until the last
page, and what was not in it goes then. A damaged or outdated file is dropped; the queue lies
elsewhere and is never touched.
"""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.sqlite import insert

from workmate_client.config import ProfilePaths, Settings
from workmate_client.errors import DeviceError
from workmate_client.journal.database import Database
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.store_errors import StoreDamagedError
from workmate_client.ports import Files, StorageError
from workmate_client.replica.tables import CURSOR, REPLICA_LAYOUT, TASK
from workmate_shared.tasks.task import Task
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.messages import Change, Pull


class PageDoesNotJoinError(DeviceError):
    """A page that does not begin where the last one ended; nothing was stored."""

    code = "page_does_not_join"


class ReplicaTask(Struct, frozen=True, kw_only=True):
    """One task as the server showed it last; `removed` says why it left the worker's sight.

    The values of a task that is gone are dropped with it; its public state stays as it was.
    """

    task: Task
    seq: int
    disclosures: dict[str, Disclosure] = {}
    removed: str | None = None


class Replica:
    """`replica.db` of one profile. Methods block, and may be called from any thread or process."""

    def __init__(
        self, database: Database, dropped: str | None = None, *, begun: bool = False
    ) -> None:
        self._database = database
        self.dropped = dropped
        """Why the file was dropped when it was opened, if it was."""
        self.begun = begun
        """Whether there was no file when it was opened."""

    @classmethod
    def open(
        cls, paths: ProfilePaths, keys: ProfileKeys, *, files: Files, settings: Settings
    ) -> Self:
        """Open the replica of a profile, or begin it; a damaged file is dropped.

        Raises StoreError (`store_too_new`, `store_busy`, `sqlite_too_old`) and StorageError.
        """
        files.make_folder(paths.folder, label="profile")
        timeout = settings.database_busy_timeout_seconds
        database = Database(paths.replica, keys.replica_key, REPLICA_LAYOUT, files, timeout)
        dropped = None
        with database.locked():
            existed = database.exists()
            try:
                if existed:
                    database.check()
            except StoreDamagedError as error:
                dropped = error.detail
            except StorageError as error:
                if error.code != "disk_full" or not database.freeze():
                    raise
            if dropped or not existed:
                database.drop()
                database.build(_begin)
        return cls(database, dropped, begun=not existed)

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self._database.close()

    def cursor(self) -> str | None:
        """Return up to where the server was heard, or None: then everything is still to be pulled."""
        with self._database.read() as connection:
            cursor: str | None = connection.execute(sa.select(CURSOR.c.cursor)).scalar_one()
            return cursor

    def is_complete(self) -> bool:
        """Whether a pull from the start has ever reached its end."""
        with self._database.read() as connection:
            return bool(connection.execute(sa.select(CURSOR.c.complete)).scalar_one())

    def start_snapshot(self) -> None:
        """Forget a void cursor, and pull everything anew; rows stay until the last page is there."""
        with self._database.write() as connection:
            values = {"cursor": None, "snapshot": CURSOR.c.snapshot + 1}
            connection.execute(sa.update(CURSOR).values(**values))

    def apply_page(self, pull: Pull) -> int:
        """Store the changes of a page, and its cursor. Returns how many changes it had.

        Raises PageDoesNotJoinError unless the page begins where the last one ended.
        """
        with self._database.write() as connection:
            held = connection.execute(sa.select(CURSOR)).mappings().one()
            if pull.since != held["cursor"] or pull.cursor is None:
                raise PageDoesNotJoinError(
                    f"held {held['cursor']}, the page begins at {pull.since}"
                )
            for change in pull.changes:
                _apply(connection, change, held["snapshot"])
            complete = held["complete"]
            if not pull.more:
                old = TASK.c.snapshot < held["snapshot"]
                connection.execute(sa.delete(TASK).where(old))
                complete = 1
            connection.execute(sa.update(CURSOR).values(cursor=pull.cursor, complete=complete))
        return len(pull.changes)

    def task(self, task_id: str) -> ReplicaTask | None:
        """Return one task, or None if the server never showed it."""
        with self._database.read() as connection:
            statement = sa.select(TASK).where(TASK.c.task_id == task_id)
            row = connection.execute(statement).mappings().first()
            return _read(row) if row else None

    def tasks(self) -> tuple[ReplicaTask, ...]:
        """Return every task, also those that left the worker's sight, by id."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(TASK).order_by(TASK.c.task_id)).mappings()
            return tuple(_read(row) for row in rows)


def _begin(connection: sa.Connection) -> None:
    connection.execute(sa.insert(CURSOR).values(id=1, cursor=None, snapshot=1, complete=0))


def _apply(connection: sa.Connection, change: Change, snapshot: int) -> None:
    chosen = TASK.c.task_id == change.id
    values: dict[str, Any] = {"seq": change.seq, "snapshot": snapshot}
    if change.task is None:
        gone = {"removed": change.removed or "", "disclosures": "{}"}
        connection.execute(sa.update(TASK).where(chosen).values(**values, **gone))
        return
    values |= {
        "body": msgspec.json.encode(change.task).decode(),
        "disclosures": msgspec.json.encode(change.disclosures).decode(),
        "removed": None,
    }
    statement = insert(TASK).values(task_id=change.id, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["task_id"], set_=values))


def _read(row: Mapping[Any, Any]) -> ReplicaTask:
    return ReplicaTask(
        task=msgspec.json.decode(row["body"], type=Task),
        seq=row["seq"],
        disclosures=msgspec.json.decode(row["disclosures"], type=dict[str, Disclosure]),
        removed=row["removed"],
    )
