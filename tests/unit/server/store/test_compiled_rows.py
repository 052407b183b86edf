"""Rows that go to the driver as they are land in the columns that they name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from workmate_server.store.compiled import write_rows
from workmate_server.store.database import DuplicateError
from workmate_server.store.sqlite import SqliteDatabase
from workmate_server.store.tables import CredentialUse, TenantHead, table_of

HEADS = table_of(TenantHead)
USES = table_of(CredentialUse)
ADD_HEADS = insert(HEADS)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(tmp_path / "office.db", bytes(32))
    opened.migrate()
    yield opened
    opened.close()


def head(tenant_id: str, **fields: Any) -> dict[str, Any]:
    given = {"name": "Stadtwerke", "lineage": "l1", "seq": 0, "batch": 0, "header_hash": None}
    return {"tenant_id": tenant_id, **given, **fields}


def rows_of(database: SqliteDatabase, table: Any) -> list[dict[str, Any]]:
    with database.read() as connection:
        return [dict(row._mapping) for row in connection.execute(select(table))]


def test_values_land_by_their_names_in_whatever_order_these_come(database: SqliteDatabase) -> None:
    first, second = head("a", seq=1), head("b", seq=2, header_hash="ff")
    with database.write() as connection:
        write_rows(connection, ADD_HEADS, [first, dict(reversed(second.items()))])
        write_rows(connection, ADD_HEADS, [dict(reversed(head("c", seq=3).items()))])
    assert rows_of(database, HEADS) == [first, second, head("c", seq=3)]


def test_no_rows_are_nothing_to_do(database: SqliteDatabase) -> None:
    with database.write() as connection:
        write_rows(connection, ADD_HEADS, [])
    assert rows_of(database, HEADS) == []


def test_a_row_that_is_there_is_a_duplicate_and_nothing_of_its_batch_stays(
    database: SqliteDatabase,
) -> None:
    with database.write() as connection:
        write_rows(connection, ADD_HEADS, [head("a")])
    with pytest.raises(DuplicateError), database.write() as connection:
        write_rows(connection, ADD_HEADS, [head("b"), head("a")])
    assert rows_of(database, HEADS) == [head("a")]


def test_a_row_replaces_only_the_columns_that_it_names(database: SqliteDatabase) -> None:
    whole = {"tenant_id": "a", "credential_id": "d1", "last_used_at": "1", "report": "{}"}
    used = {"tenant_id": "a", "credential_id": "d1", "last_used_at": "2"}
    for row in (whole, used, {**used, "credential_id": "d2"}):
        with database.write() as connection:
            database.upsert(connection, USES, [row])
    assert rows_of(database, USES) == [
        {**whole, "last_used_at": "2"},
        {**used, "credential_id": "d2", "report": None},
    ]
