"""The schema's history: revisions applied by Alembic in one transaction, and what must hold after.

The revisions run inside the caller's transaction, so that a failed one leaves the old schema usable.
Triggers, indexes and strictness are asserted after every migration, and when a server starts.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from workmate_server.store.database import SchemaIncompleteError, SchemaVersionError
from workmate_server.store.tables import LOG_TABLES, PROJECTIONS, ServerTable

_FOLDER = Path(__file__).parent


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.attributes["connection"] = connection
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def migrate(connection: Connection) -> None:
    """Bring the schema to the newest revision inside the transaction of `connection`.

    Triggers, indexes and projection tables that somebody dropped are made again; `rebuild` fills
    the latter. Raises SchemaVersionError for a schema from a newer version, or when a trigger or table that
    must be there is missing afterwards.
    """
    _refuse_newer(_scripts(), _revision(connection))
    command.upgrade(_config(connection), "head")
    _put_back(connection)
    assert_schema(connection)


def _put_back(connection: Connection) -> None:
    """Make again what somebody dropped and what can be made again: guards, indexes, projections."""
    tables = ServerTable.metadata.tables
    ServerTable.metadata.create_all(connection, [tables[name] for name in PROJECTIONS])
    for table in tables.values():
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    if connection.dialect.name != "sqlite":
        return
    for name in LOG_TABLES:
        for act in ("update", "delete"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER IF NOT EXISTS {name}_{act} BEFORE {act.upper()} ON {name} "
                f"BEGIN SELECT RAISE(ABORT, '{name} only grows'); END"
            )


def require_current_schema(connection: Connection) -> None:
    """Raise SchemaVersionError, saying what to run, unless the schema is that of this code."""
    scripts = _scripts()
    revision, head = _revision(connection), scripts.get_current_head()
    if revision == head:
        assert_schema(connection)
        return
    _refuse_newer(scripts, revision)
    raise SchemaVersionError("the schema is older than this program; run: workmate-server migrate")


def _refuse_newer(scripts: ScriptDirectory, revision: str | None) -> None:
    known = {script.revision for script in scripts.walk_revisions()}
    if revision is not None and revision not in known:
        raise SchemaVersionError(f"schema {revision} is newer than this program; update it")


def assert_schema(connection: Connection) -> None:
    """Raise SchemaVersionError unless every table, index and guard of the log is there."""
    inspector = inspect(connection)
    tables = ServerTable.metadata.tables
    _refuse_missing("tables", set(tables) - set(inspector.get_table_names()))
    indexes = {str(index.name) for table in tables.values() for index in table.indexes}
    if connection.dialect.name != "sqlite":
        found = inspector.get_multi_indexes().values()
        _refuse_missing("indexes", indexes - {index["name"] for part in found for index in part})
        return
    rows = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE sql IS NOT NULL")
    present = set(rows.scalars())
    _refuse_missing("indexes", indexes - present)
    triggers = {f"{table}_{act}" for table in LOG_TABLES for act in ("update", "delete")}
    _refuse_missing("triggers", triggers - present)
    loose = connection.exec_driver_sql(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict"
    )
    bad = set(loose.scalars()) - {"alembic_version", "sqlite_schema"}
    if bad:
        raise SchemaIncompleteError(f"tables are not strict: {', '.join(sorted(bad))}")


def _refuse_missing(kind: str, names: set[str]) -> None:
    if names:
        raise SchemaIncompleteError(f"{kind} are missing: {', '.join(sorted(names))}")
