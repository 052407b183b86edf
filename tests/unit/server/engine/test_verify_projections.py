"""`verify` names every row that is not what the log projects to, and every value out of place."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event

from support import commands as build
from support.eventful import Story, prepare, task_of
from support.log import Log
from support.tampering import (
    Tables,
    copy_row,
    opened_copy,
    places,
    put_back,
    read_tables,
)
from workmate_server.engine.rebuild import rebuild
from workmate_server.store.tables import PROJECTIONS, ServerTable

KEYS = {
    "task_snapshot": "{task_id}",
    "principal": "{principal_id}",
    "credential": "{credential_id}",
    "evidence_manifest": "{task_id} {manifest_id}",
    "feed": "{audience} {kind} {object_id}",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Log, Tables]]:
    prepared = tmp_path_factory.mktemp("prepared")
    asyncio.run(prepare(prepared))
    with opened_copy(prepared, tmp_path_factory.mktemp("copy")) as copy:
        yield copy, read_tables(copy)


@pytest.fixture
def tables(whole: tuple[Log, Tables]) -> Tables:
    return whole[1]


@pytest.fixture
def log(whole: tuple[Log, Tables]) -> Iterator[Log]:
    copy, before = whole
    yield copy
    put_back(copy, before)


def _place(table: str, row: dict[str, Any]) -> str:
    return f"{table} {KEYS[table].format(**row)}"


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table, column.name)
        for table in PROJECTIONS
        for column in ServerTable.metadata.tables[table].c
        if not column.primary_key
    ],
)
def test_each_column_of_a_projection_is_compared(
    log: Log, tables: Tables, table: str, column: str
) -> None:
    row = tables[table][-1]
    kind = ServerTable.metadata.tables[table].c[column].type.python_type
    values: dict[type, Any] = {int: -5, bytes: b"x", str: "other"}
    log.tamper(
        f"UPDATE {table} SET {column} = :value WHERE rowid = :rowid",
        value=values[kind],
        rowid=row["rowid"],
    )
    # A row under another owner is missed at the one it had.
    owner = (table, column) == ("credential", "principal_id")
    assert (_place(table, row) if owner else f"{_place(table, row)} {column}") in places(log)


@pytest.mark.parametrize("table", PROJECTIONS)
def test_a_projection_row_that_is_gone_is_missed(log: Log, tables: Tables, table: str) -> None:
    row = tables[table][1]
    log.tamper(f"DELETE FROM {table} WHERE rowid = :rowid", rowid=row["rowid"])
    (found,) = log.verify().findings
    assert (found.place, found.fault) == (_place(table, row), "missing")


@pytest.mark.parametrize("table", PROJECTIONS)
def test_a_projection_row_to_which_nothing_projects_is_named(
    log: Log, tables: Tables, table: str
) -> None:
    rowid = tables[table][1]["rowid"]
    changes = {
        "task_snapshot": {"task_id": "new", "external_id": "new"},
        "principal": {"principal_id": "new"},
        "credential": {"credential_id": "new"},
        "evidence_manifest": {"manifest_id": "new", "content_hash": "new"},
        "feed": {"audience": "worker:usr_new"},
    }
    copy_row(log, table, rowid, **changes[table])
    (found,) = log.verify().findings
    assert found.fault == "inserted"
    assert "new" in found.place


@pytest.mark.parametrize("table", [*PROJECTIONS, "disclosure"])
def test_rows_of_a_tenant_that_is_not_there_are_named(log: Log, tables: Tables, table: str) -> None:
    copy_row(log, table, tables[table][0]["rowid"], tenant_id="new")
    (found,) = log.verify().findings
    assert (found.place, found.fault) == (table, "inserted")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("value", '{"client":"Herr Maier"}'),
        ("value", ""),
        ("salt", "AAAA"),
        ("salt", "no base64"),
        ("commitment", "0a" * 32),
    ],
)
def test_a_value_that_does_not_open_its_commitment_is_named_and_shown_to_nobody(
    log: Log, column: str, value: str
) -> None:
    (commitment, _) = build.disclose(build.PERSONAL["create_task"])
    log.tamper(
        f"UPDATE disclosure SET {column} = :value WHERE commitment = :commitment",
        value=value,
        commitment=commitment,
    )
    named = value if column == "commitment" else commitment
    found = [(f.place, f.fault) for f in log.verify().findings]
    assert (f"disclosure {named}", "changed") in found
    rebuild(log.database)
    assert {row["site_text"] for row in log.rows("task_snapshot")} <= {None, "depot 8"}


def test_a_value_without_its_purge_is_missed(log: Log) -> None:
    (commitment, _) = build.disclose(build.PERSONAL["reject_proof"])
    log.tamper("DELETE FROM disclosure WHERE commitment = :name", name=commitment)
    (found,) = log.verify().findings
    assert (found.place, found.fault) == (f"disclosure {commitment}", "missing")


def test_a_value_that_no_event_refers_to_is_named(log: Log) -> None:
    commitment, given = build.disclose({"client": "Frau Maier"}, salt=9)
    log.tamper(
        "INSERT INTO disclosure VALUES (:tenant, :name, :salt, 'x', :value, :task, NULL)",
        tenant=log.tenant_id,
        name=commitment,
        salt=given.salt,
        value=given.value,
        task=task_of(log, "assigned"),
    )
    (found,) = log.verify().findings
    assert (found.place, found.fault) == (f"disclosure {commitment} aggregate_id", "inserted")


def test_a_value_under_another_aggregate_is_named(log: Log) -> None:
    (commitment, _) = build.disclose(build.PERSONAL["create_principal"])
    log.tamper(
        "UPDATE disclosure SET aggregate_id = :task WHERE commitment = :name",
        task=task_of(log, "assigned"),
        name=commitment,
    )
    assert f"disclosure {commitment} aggregate_id" in places(log)


def _statements(log: Log, act: Any) -> int:
    counted: list[str] = []

    def count(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        counted.append(statement)

    engines = (log.database._reader, log.database._writer)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", count)
    try:
        act()
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", count)
    return len(counted)


async def _grow(log: Log, tasks: int) -> None:
    await log.engine.start()
    for number in range(tasks):
        await Story(log, f"more-{number}").reach("accepted")
    await log.engine.stop()


def test_a_longer_log_takes_no_more_statements(
    log: Log, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def measure(one: Log) -> tuple[int, int]:
        return _statements(one, one.verify), _statements(one, lambda: rebuild(one.database))

    before = measure(log)
    log.database.checkpoint()
    with opened_copy(log.folder, tmp_path_factory.mktemp("long")) as longer:
        asyncio.run(_grow(longer, 30))
        assert measure(longer) == before
        assert longer.verify().clean
