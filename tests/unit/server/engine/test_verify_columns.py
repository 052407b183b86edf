"""Not one byte of the log can be changed without `verify` naming the row and the column."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.eventful import prepare
from support.log import Log
from support.tampering import ROW_KEYS, opened_copy, place_of, places
from workmate_server.store.tables import ServerTable

COLUMNS = [
    (table, column.name) for table in ROW_KEYS for column in ServerTable.metadata.tables[table].c
]
PLACED_BY = {
    "audit_event": {"tenant_id", "seq"},
    "command_log": {"tenant_id", "batch", "leaf_index"},
    "commit_batch": {"tenant_id", "batch"},
}
"""Columns without which a row is not where it was; it is missed there, by its old name."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    prepared = tmp_path_factory.mktemp("prepared")
    asyncio.run(prepare(prepared))
    with opened_copy(prepared, tmp_path_factory.mktemp("copy")) as copy:
        yield copy
        assert copy.verify().clean


@contextmanager
def _with(log: Log, table: str, column: str, row: dict[str, Any], value: Any) -> Iterator[None]:
    """Put a value into a column of a row, and what was there back afterwards."""
    kind = ServerTable.metadata.tables[table].c[column].type.python_type
    _set(log, table, column, row["rowid"], value, kind)
    try:
        yield
    finally:
        _set(log, table, column, row["rowid"], row[column], kind)


def _set(log: Log, table: str, column: str, rowid: int, value: Any, kind: type) -> None:
    # Text is handed over as bytes, so that it need not be UTF-8.
    text = isinstance(value, bytes) and kind is str and value != b"\x00"
    new = "CAST(:value AS TEXT)" if text else ":value"
    changed = log.tamper(
        f"UPDATE {table} SET {column} = {new} WHERE rowid = :rowid", value=value, rowid=rowid
    )
    assert changed == 1


def _rows(log: Log, table: str) -> list[dict[str, Any]]:
    with log.database.read() as connection:
        found = connection.exec_driver_sql(f"SELECT rowid, * FROM {table} ORDER BY rowid")
        return [dict(row._mapping) for row in found]


def _changed(value: Any, at: float) -> Any:
    """Return a value with one byte changed, at the beginning (0), the middle or the end (1)."""
    if isinstance(value, int):
        return -value - 1 if at == 0 else value + (1000 if at == 1 else 2**40)
    data = bytearray(value.encode() if isinstance(value, str) else value)
    data[round(at * (len(data) - 1))] ^= 1
    return bytes(data)


def _names(found: list[str], table: str, column: str, row: dict[str, Any]) -> bool:
    place = place_of(table, row)
    if column in PLACED_BY[table]:
        return any(name == place or name.startswith(f"{place} ") for name in found)
    if column == "leaf":
        # Where the tree has several leaves, the batch is as near as hashes can tell.
        batch = f"command_log batch {row['batch']}"
        return any(name == batch or name.startswith(place) for name in found)
    return f"{place} {column}" in found


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_changed_byte_is_named_with_its_row_and_column(log: Log, table: str, column: str) -> None:
    rows = _rows(log, table)
    filled = [row for row in rows if row[column] not in (None, b"", "")]
    for row, at in ((filled[0], 0.0), (filled[len(filled) // 2], 0.5), (filled[-1], 1.0)):
        with _with(log, table, column, row, _changed(row[column], at)):
            assert _names(places(log), table, column, row), (row["rowid"], at)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table, column)
        for table, column in COLUMNS
        if ServerTable.metadata.tables[table].c[column].nullable
    ],
)
def test_what_was_emptied_or_filled_is_named(log: Log, table: str, column: str) -> None:
    kind = ServerTable.metadata.tables[table].c[column].type.python_type
    rows = _rows(log, table)
    filled = next(row for row in rows if row[column] is not None)
    empty = next(row for row in rows if row[column] is None)
    for row, value in ((filled, None), (empty, 7 if kind is int else b"7")):
        with _with(log, table, column, row, value):
            assert _names(places(log), table, column, row)


def _spoil(log: Log, table: str, columns: list[str], value: Any) -> None:
    """Put a value into each column, in a row of its own, and demand that each is named."""
    rows = _rows(log, table)[4::3]
    with ExitStack() as restoring:
        for column, row in zip(columns, rows, strict=False):
            restoring.enter_context(_with(log, table, column, row, value))
        found = places(log)
        for column, row in zip(columns, rows, strict=False):
            assert _names(found, table, column, row), (column, value)


@pytest.mark.parametrize("table", ROW_KEYS)
def test_text_that_is_no_utf8_is_named_and_stops_nothing(log: Log, table: str) -> None:
    columns = ServerTable.metadata.tables[table].c
    _spoil(log, table, [c.name for c in columns if c.type.python_type is str], b"a\xffb")


@pytest.mark.parametrize("table", ROW_KEYS)
def test_a_table_robbed_of_its_rules_may_hold_anything_and_is_still_walked(
    tmp_path: Path, log: Log, table: str
) -> None:
    log.database.checkpoint()
    with opened_copy(log.folder, tmp_path) as loose:
        with loose.database.write() as connection:
            connection.exec_driver_sql("PRAGMA writable_schema=ON")
            connection.exec_driver_sql(
                "UPDATE sqlite_master SET sql = replace(replace(sql, ' NOT NULL', ''), 'STRICT', '')"
                f" WHERE type = 'table' AND name = '{table}'"
            )
            connection.exec_driver_sql("PRAGMA writable_schema=RESET")
        columns = [c.name for c in ServerTable.metadata.tables[table].c if not c.nullable]
        for value in (None, b"\x00", 2.5):
            _spoil(loose, table, columns, value)
        assert loose.verify().clean
