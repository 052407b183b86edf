"""The limit of every server on this database: the driver alone, writing rows that are there already.

The same library, key, pragmas, tables, indexes and triggers as the server's, and one transaction a
batch; no command is read, decided, hashed or signed, and no statement is compiled by anybody.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import sqlcipher3.dbapi2 as driver
from msgspec import Struct

from benchmarks.recorded import Batch
from workmate_server.store.sqlite import CACHE_KIB, CHECKPOINT_PAGES
from workmate_server.store.tables import ServerTable

REPLACED = frozenset({"task_snapshot", "feed"})
"""Tables whose rows take the place of those that are there."""
KEPT = frozenset({"disclosure"})
"""Tables whose rows stay as they are when they come again."""


class Written(Struct, frozen=True):
    """What a replay took: seconds of each batch on the wall, and of the processor in all."""

    commands: int
    latencies: list[float]
    processor_seconds: float

    @property
    def per_second(self) -> float:
        """Commands written in a second."""
        return self.commands / sum(self.latencies)


class BareDatabase:
    """A copy of the office's database file, and one connection to it."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._connection: Any = driver.connect(str(path), isolation_level=None)
        for pragma in (
            f"key = \"x'{key.hex()}'\"",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            f"cache_size=-{CACHE_KIB}",
            f"wal_autocheckpoint={CHECKPOINT_PAGES}",
        ):
            self._connection.execute(f"PRAGMA {pragma}")

    def replay(self, batches: Sequence[Batch]) -> Written:
        """Write batches again, one transaction each; everything is laid out before the clock runs."""
        works = [_lay_out(batch) for batch in batches]
        latencies, used = [], process_time()
        for work in works:
            begun = perf_counter()
            work(self._connection)
            latencies.append(perf_counter() - begun)
        return Written(
            commands=sum(batch.commands for batch in batches),
            latencies=latencies,
            processor_seconds=process_time() - used,
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _lay_out(batch: Batch) -> Callable[[Any], None]:
    inserts = [
        (_statement(table, rows[0]), [tuple(row.values()) for row in rows])
        for table, rows in batch.rows.items()
        if rows
    ]
    tenant_id = batch.rows["commit_batch"][0]["tenant_id"]
    move = f"UPDATE tenant_head SET {', '.join(f'{name}=?' for name in batch.head)}"
    head = (*batch.head.values(), tenant_id)

    def write(connection: Any) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for statement, parameters in inserts:
            connection.executemany(statement, parameters)
        connection.execute(f"{move} WHERE tenant_id=?", head)
        connection.execute("COMMIT")

    return write


def _statement(table: str, row: dict[str, Any]) -> str:
    names, places = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
    statement = f"INSERT INTO {table} ({names}) VALUES ({places})"
    if table in KEPT:
        return f"{statement} ON CONFLICT DO NOTHING"
    if table in REPLACED:
        keys = [column.name for column in ServerTable.metadata.tables[table].primary_key]
        rest = ", ".join(f'"{name}"=excluded."{name}"' for name in row if name not in keys)
        return f"{statement} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {rest}"
    return statement
