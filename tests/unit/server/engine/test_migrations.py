"""The schema is what the models say, guarded as it must be, and changed whole or not at all."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect

from workmate_server.store import migrations
from workmate_server.store.database import (
    DatabaseAwayError,
    DuplicateError,
    SchemaIncompleteError,
    SchemaVersionError,
)
from workmate_server.store.sqlite import SqliteDatabase
from workmate_server.store.tables import LOG_TABLES, ServerTable

KEY = bytes(range(32))
FAILING = '''"""A revision that fails after it has begun."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table("half_done", sa.Column("name", sa.Text(), primary_key=True), sqlite_strict=True)
    op.drop_index("feed_order", "feed")
    op.execute("UPDATE tenant_head SET name = 'changed'")
    {fault}
'''


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "office.db", KEY)
    yield database
    database.close()


@pytest.fixture
def migrated(database: SqliteDatabase) -> SqliteDatabase:
    database.migrate()
    with database.write() as connection:
        connection.exec_driver_sql("INSERT INTO tenant_head VALUES ('t', 'Town', 'l', 0, 0, NULL)")
    return database


def _execute(database: SqliteDatabase, statement: str) -> None:
    with database.write() as connection:
        connection.exec_driver_sql(statement)


def _schema(database: SqliteDatabase) -> list[tuple[str, str]]:
    with database.read() as connection:
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master ORDER BY name")
        return [(row.name, row.sql) for row in rows]


def test_the_revisions_make_what_the_models_say(migrated: SqliteDatabase) -> None:
    with migrated.read() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, ServerTable.metadata) == []
        inspector = inspect(connection)
        for name, table in ServerTable.metadata.tables.items():
            keys = inspector.get_pk_constraint(name)["constrained_columns"]
            assert keys == [column.name for column in table.primary_key]
            columns = {column["name"]: column for column in inspector.get_columns(name)}
            for column in table.c:
                assert columns[column.name]["nullable"] is column.nullable
                assert str(columns[column.name]["type"]) == column.type.compile(
                    dialect=connection.dialect
                )


def test_migrating_again_changes_nothing(migrated: SqliteDatabase) -> None:
    before = _schema(migrated)
    migrated.migrate()
    assert _schema(migrated) == before
    migrated.require_current_schema()


@pytest.mark.parametrize("table", LOG_TABLES)
def test_the_log_cannot_be_changed_through_the_schema(migrated: SqliteDatabase, table: str) -> None:
    columns = ServerTable.metadata.tables[table].c
    values = {int: "1", bytes: "x'00'", str: "'x'"}
    row = ", ".join(values[column.type.python_type] for column in columns)
    _execute(migrated, f"INSERT INTO {table} VALUES ({row})")
    for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET tenant_id = 'y'"):
        with pytest.raises(DuplicateError, match=f"{table} only grows"):
            _execute(migrated, statement)


def test_a_value_of_another_type_is_refused(migrated: SqliteDatabase) -> None:
    with pytest.raises((DuplicateError, DatabaseAwayError), match="cannot store TEXT"):
        _execute(migrated, "INSERT INTO tenant_head VALUES ('u', 'Town', 'l', 'many', 0, NULL)")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DROP TRIGGER audit_event_delete", "triggers are missing: audit_event_delete"),
        ("DROP INDEX feed_order", "indexes are missing: feed_order"),
        ("DROP TABLE feed", "tables are missing: feed"),
    ],
)
def test_a_schema_without_its_guards_is_refused_at_the_start_and_a_migration_puts_them_back(
    migrated: SqliteDatabase, statement: str, sentence: str
) -> None:
    _execute(migrated, statement)
    with pytest.raises(SchemaIncompleteError, match=sentence):
        migrated.require_current_schema()
    migrated.migrate()
    migrated.require_current_schema()


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DROP TABLE nonce", "tables are missing: nonce"),
        ("CREATE TABLE more (name TEXT)", "tables are not strict: more"),
    ],
)
def test_what_cannot_be_made_again_is_refused_also_by_a_migration(
    migrated: SqliteDatabase, statement: str, sentence: str
) -> None:
    _execute(migrated, statement)
    with pytest.raises(SchemaVersionError, match=sentence):
        migrated.require_current_schema()
    with pytest.raises(SchemaVersionError, match=sentence):
        migrated.migrate()


def test_a_schema_from_the_future_is_refused_and_left_as_it_is(migrated: SqliteDatabase) -> None:
    _execute(migrated, "UPDATE alembic_version SET version_num = '9999'")
    before = _schema(migrated)
    sentence = "schema 9999 is newer than this program; update it"
    with pytest.raises(SchemaVersionError, match=sentence):
        migrated.require_current_schema()
    with pytest.raises(SchemaVersionError, match=sentence):
        migrated.migrate()
    assert _schema(migrated) == before


def test_a_schema_that_was_never_made_is_refused_with_what_to_run(
    database: SqliteDatabase,
) -> None:
    with pytest.raises(SchemaVersionError, match="run: workmate-server migrate"):
        database.require_current_schema()


@pytest.mark.parametrize(
    "fault",
    [
        'raise RuntimeError("planted")',
        'op.execute("no such statement")',
        'op.execute("INSERT INTO tenant_head SELECT * FROM tenant_head")',
        'op.execute("CREATE TABLE more (name TEXT)")',
    ],
)
def test_a_migration_that_fails_leaves_the_old_schema_and_its_rows_in_use(
    migrated: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    before = _schema(migrated)
    folder = tmp_path / "migrations"
    shutil.copytree(migrations._FOLDER, folder)
    (folder / "versions" / "r0002_failing.py").write_text(FAILING.replace("{fault}", fault))
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "_FOLDER", folder)
        with pytest.raises(SchemaVersionError, match="run: workmate-server migrate"):
            migrated.require_current_schema()
        with pytest.raises((RuntimeError, DuplicateError, DatabaseAwayError, SchemaVersionError)):
            migrated.migrate()
    assert _schema(migrated) == before
    migrated.require_current_schema()
    with migrated.read() as connection:
        assert connection.exec_driver_sql("SELECT name FROM tenant_head").scalar() == "Town"
