"""A database as the rest of the server sees it: transactions, and inserts that meet known rows.

Everything here blocks and is called in worker threads. What differs between database engines stands
in one module for each; statements are written once.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection

__all__ = [
    "Connection",
    "Database",
    "DatabaseAwayError",
    "DatabaseDamagedError",
    "DuplicateError",
    "Rows",
    "SchemaIncompleteError",
    "SchemaVersionError",
]

Rows = Sequence[dict[str, Any]]


class DatabaseAwayError(Exception):
    """The database did not answer; whether the last commit took effect is unknown."""


class DuplicateError(Exception):
    """A row met another with the same unique key; the transaction was rolled back."""


class DatabaseDamagedError(Exception):
    """The database file fails its own integrity check; nothing was changed."""


class SchemaVersionError(Exception):
    """The schema is newer than the code, or older and must be migrated first."""


class SchemaIncompleteError(SchemaVersionError):
    """The schema is of this code's version, and something in it was dropped or changed."""


class Database(Protocol):
    """One database engine. Raises DatabaseAwayError and DuplicateError from its transactions."""

    def write(self) -> AbstractContextManager[Connection]:
        """Open the one kind of transaction that changes anything; commits at the end of the block.

        An exception rolls back and leaves nothing.
        """
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """Open a short read-only transaction that sees one state of the database."""
        ...

    def insert_new(self, connection: Connection, table: Any, rows: Rows) -> None:
        """Insert rows, leaving those alone whose primary key is known."""
        ...

    def upsert(self, connection: Connection, table: Any, rows: Rows) -> None:
        """Insert rows, replacing those whose primary key is known."""
        ...

    def check(self) -> list[str]:
        """Return what the engine's own integrity check finds; empty when all is well."""
        ...

    def migrate(self) -> None:
        """Bring the schema to the newest revision and assert triggers and strictness."""
        ...

    def require_current_schema(self) -> None:
        """Raise SchemaVersionError unless the schema is the one of this code."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
