"""One encrypted SQLite file, shared by the threads and processes that work on it.

Every change is one `BEGIN IMMEDIATE` transaction under a lock beside the file, so that nobody writes
into a file that another process has just put aside; who finds another file in its place opens that
one.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlcipher3 import dbapi2

from workmate_client.journal.store_errors import (
    StoreDamagedError,
    StoreTooNewError,
    check_sqlite,
    translated,
)
from workmate_client.ports import Files, StorageError

SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside a database file."""

Synchronous = Literal["FULL", "NORMAL"]

OpenMode = Literal["rw", "rwc"]
"""Whether opening may make a file. Only `Database.build` does: one that is gone must not come back
empty."""


class Layout(Struct, frozen=True):
    """What a file of this kind holds: its tables, the schema's version, how commits are synced."""

    metadata: sa.MetaData
    version: int
    synchronous: Synchronous


def fill_nothing(connection: sa.Connection) -> None:
    """Leave a new file's tables empty."""


class Database:
    """The file at `path`, opened under a raw 32-byte key."""

    def __init__(
        self,
        path: Path,
        key: bytes,
        layout: Layout,
        files: Files,
        busy_timeout_seconds: float,
        mode: OpenMode = "rw",
    ) -> None:
        check_sqlite()
        self.path = path
        self._key = key
        self._layout = layout
        self._files = files
        self._timeout_seconds = busy_timeout_seconds
        self._opening = threading.Lock()
        self._inode: int | None = None
        self._mode = mode
        self._engine: sa.Engine | None = None
        self._frozen = False

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of everybody who changes the file or puts another in its place."""
        lock = self.path.with_name(f"{self.path.name}.lock")
        with self._files.locked(lock, timeout_seconds=self._timeout_seconds):
            yield

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Change something: committed as a whole at the end, rolled back if anything is raised.

        Not re-entrant. Raises StoreError and StorageError; then nothing has changed, unless the
        commit itself failed.
        """
        with self.locked(), self.write_locked() as connection:
            yield connection

    @contextlib.contextmanager
    def write_locked(self) -> Iterator[sa.Connection]:
        """The same for a caller who holds the lock already."""
        if self._frozen:
            raise StorageError("disk_full", self.path, "there was no room to open it for writing")
        with self.connected() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Read one state of the file, whatever is written meanwhile."""
        with self.connected() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    def build(self, fill: Callable[[sa.Connection], None] = fill_nothing) -> None:
        """Make a new file with what `fill` puts into it, and give it its name at once.

        The lock must be held, and nothing may be at `path`.
        """
        new = self.sibling(f"{self.path.name}.new", "rwc")
        new.drop()
        # What SQLite makes beside the file takes over its mode.
        new.path.touch(mode=0o600)
        with new.connected() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with new.write_locked() as connection:
            self._layout.metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA user_version={self._layout.version:d}")
            fill(connection)
        with new.connected() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        new.close()
        new.path.replace(self.path)
        self._files.fsync_folder(self.path.parent, label="database")

    def sibling(self, name: str, mode: OpenMode = "rw") -> "Database":
        """Return a file of the same kind and key under another name in the same folder."""
        path, timeout = self.path.with_name(name), self._timeout_seconds
        return Database(path, self._key, self._layout, self._files, timeout, mode)

    def check(self) -> None:
        """Raise StoreTooNewError, or StoreDamagedError unless every page is as it was written."""
        with self.connected() as connection:
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if version > self._layout.version:
                raise StoreTooNewError(
                    f"{self.path.name} has version {version}; "
                    f"this program knows up to {self._layout.version}"
                )
            if version < 1:
                raise StoreDamagedError(f"{self.path.name} is empty")
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
            if found != "ok":
                raise StoreDamagedError(f"{self.path.name}: {found.splitlines()[-1]}")

    def freeze(self) -> bool:
        """From now on only read the file as it is, which needs no room on the disk.

        False where that would miss what lies beside the file. Raises as `check` does.
        """
        beside = self._files.state(self.path.with_name(self.path.name + SIDE_FILES[0]))
        if not self.exists() or (beside is not None and beside.size_bytes > 0):
            return False
        self.close()
        self._frozen = True
        self.check()
        return True

    def exists(self) -> bool:
        """Whether there is a file with anything in it."""
        state = self._files.state(self.path)
        return state is not None and state.size_bytes > 0

    def put_aside(self, name: str) -> Path:
        """Give the file, and what lies beside it, another name. The lock must be held."""
        self.close()
        aside = self.path.with_name(name)
        with contextlib.suppress(FileNotFoundError):
            self.path.replace(aside)
        for suffix in SIDE_FILES:
            with contextlib.suppress(FileNotFoundError):
                self.path.with_name(self.path.name + suffix).replace(aside.with_name(name + suffix))
        self._files.fsync_folder(self.path.parent, label="database")
        return aside

    def drop(self) -> None:
        """Remove the file and what lies beside it. The lock must be held."""
        self.close()
        for suffix in ("", *SIDE_FILES):
            path = self.path.with_name(self.path.name + suffix)
            self._files.remove(path, label="database")

    def close(self) -> None:
        """Close every connection that is not in use."""
        with self._opening:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    @contextlib.contextmanager
    def connected(self) -> Iterator[sa.Connection]:
        """Use one connection outside of any transaction."""
        with self._reported(), self._current_engine().connect() as connection:
            yield connection

    def _current_engine(self) -> sa.Engine:
        state = self._files.state(self.path)
        inode = state.inode if state else None
        with self._opening:
            if self._engine is not None and self._inode not in (inode, None):
                self._engine.dispose()
                self._engine = None
            if self._engine is None:
                self._engine = self._make_engine()
            self._inode = inode
            return self._engine

    def _make_engine(self) -> sa.Engine:
        mode = "ro&immutable=1" if self._frozen else self._mode
        place, timeout = f"{self.path.as_uri()}?mode={mode}", self._timeout_seconds

        def connect() -> Any:
            return dbapi2.connect(
                place, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True
            )

        engine = sa.create_engine(
            "sqlite://", module=dbapi2, creator=connect, poolclass=sa.QueuePool
        )
        # Before the dialect's own listener, which must not be the first to touch the file.
        sa.event.listen(engine, "connect", self._prepare, insert=True)
        return engine

    def _prepare(self, connection: Any, entry: ConnectionPoolEntry) -> None:
        del entry
        connection.execute(f"PRAGMA key = \"x'{self._key.hex()}'\"")
        # SQLCipher writes what it finds to standard error, into the middle of the screen.
        connection.execute("PRAGMA cipher_log_level = NONE")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {self._layout.synchronous}")
        if sys.platform == "darwin":
            connection.execute("PRAGMA fullfsync = ON")

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, dbapi2.Error) as error:
            known = translated(error, self.path, self._files)
            if known is error:
                raise
            raise known from error
