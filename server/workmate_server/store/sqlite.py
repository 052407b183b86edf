"""The embedded database: SQLite with encryption at rest, one writer, readers beside it.

A commit that was acknowledged survives power loss (WAL, `synchronous=FULL`). Every write begins with
our own `BEGIN IMMEDIATE`; readers are `query_only` and short. The library is always the one of the
`sqlcipher3` wheel, because the system's has a corruption bug in WAL mode (fixed in 3.51.3).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlcipher3.dbapi2 as driver
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import QueuePool

from workmate_server.store.compiled import write_rows
from workmate_server.store.database import (
    DatabaseAwayError,
    DatabaseDamagedError,
    DuplicateError,
    Rows,
)
from workmate_server.store.migrations import migrate, require_current_schema

OLDEST_SQLITE = (3, 51, 3)
BUSY_TIMEOUT_SECONDS = 30.0
CACHE_KIB = 65_536
CHECKPOINT_PAGES = 8_000
"""The WAL is written back when it holds so many pages; a page that changed often goes back once."""
READERS = 8


class SqliteDatabase:
    """The database in one file, encrypted under a key of 32 random bytes.

    Raises DatabaseAwayError when it is opened with a library that is too old.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        if driver.sqlite_version_info < OLDEST_SQLITE:
            raise DatabaseAwayError(f"SQLite {driver.sqlite_version} is too old")
        self.path = path
        self._key = key
        self._one_writer = threading.Lock()
        self._writer = self._engine(query_only=False, size=1)
        self._reader = self._engine(query_only=True, size=READERS)

    def _engine(self, *, query_only: bool, size: int) -> Engine:
        def connect() -> Any:
            connection = driver.connect(
                str(self.path),
                timeout=BUSY_TIMEOUT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            # The key comes before every other statement, as raw bytes: nothing is derived from it.
            connection.execute(f"PRAGMA key = \"x'{self._key.hex()}'\"")
            connection.text_factory = _read_text
            for pragma in (
                # A damaged page is told by an error; the library would fill the console besides.
                "cipher_log_level=NONE",
                "journal_mode=WAL",
                "synchronous=FULL",
                "foreign_keys=ON",
                f"cache_size=-{CACHE_KIB}",
                f"query_only={int(query_only)}",
                f"wal_autocheckpoint={0 if query_only else CHECKPOINT_PAGES}",
            ):
                connection.execute(f"PRAGMA {pragma}")
            return connection

        return create_engine(
            "sqlite://",
            module=driver,
            creator=connect,
            poolclass=QueuePool,
            pool_size=size,
            max_overflow=0,
            # The connection that was read through last still has in memory what it has read.
            pool_use_lifo=True,
            isolation_level="AUTOCOMMIT",
        )

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a write transaction; see `Database.write`."""
        with self._one_writer, _translated(), self._writer.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a read transaction; see `Database.read`."""
        with _translated(), self._reader.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                _roll_back(connection)

    def insert_new(self, connection: Connection, table: Any, rows: Rows) -> None:
        """Insert rows whose primary key is new; see `Database.insert_new`."""
        write_rows(connection, _insert_new(table), rows)

    def upsert(self, connection: Connection, table: Any, rows: Rows) -> None:
        """Insert or replace rows by primary key; see `Database.upsert`."""
        if rows:
            write_rows(connection, _upsert(table, tuple(rows[0])), rows)

    def check(self) -> list[str]:
        """Return what SQLite's and the cipher's integrity checks find."""
        found: list[str] = []
        try:
            with self._reader.connect() as connection:
                for pragma in ("cipher_integrity_check", "integrity_check"):
                    rows = connection.exec_driver_sql(f"PRAGMA {pragma}").scalars().all()
                    found += [str(row) for row in rows if row != "ok"]
        except DBAPIError as error:
            found.append(str(error.orig))
        return found

    def migrate(self) -> None:
        """Bring the schema to the newest revision; see `Database.migrate`."""
        with self.write() as connection:
            migrate(connection)

    def require_current_schema(self) -> None:
        """Raise SchemaVersionError unless the schema is that of this code."""
        with self.read() as connection:
            require_current_schema(connection)

    def checkpoint(self) -> None:
        """Write the WAL back into the file; only the writer ever does."""
        with self._one_writer, self._writer.connect() as connection:
            connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    def close(self) -> None:
        """Close every connection."""
        self._reader.dispose()
        self._writer.dispose()


@cache
def _insert_new(table: Any) -> Any:
    return insert(table).on_conflict_do_nothing()


@cache
def _upsert(table: Any, names: tuple[str, ...]) -> Any:
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    rest = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=rest)


def _read_text(stored: bytes) -> str:
    """Return stored text; bytes that are no UTF-8 come out as surrogates, and cost no query."""
    return stored.decode(errors="surrogateescape")


def _roll_back(connection: Connection) -> None:
    if not connection.closed and connection.connection.in_transaction:
        connection.exec_driver_sql("ROLLBACK")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise DuplicateError(str(error.orig)) from error
    except DBAPIError as error:
        detail = str(error.orig)
        if "malformed" in detail or "not a database" in detail:
            raise DatabaseDamagedError(detail) from error
        raise DatabaseAwayError(detail) from error
