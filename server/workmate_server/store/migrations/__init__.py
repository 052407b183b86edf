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

from workmate_server.store.database import SchemaVersionError
from workmate_server.store.tables import LOG_TABLES, ServerTable

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

    Raises SchemaVersionError for a schema from a newer version, or when a trigger or table that
    must be there is missing afterwards.
    """
    _refuse_newer(_scripts(), _revision(connection))
    command.upgrade(_config(connection), "head")
    assert_schema(connection)


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
    """Raise SchemaVersionError unless every table and every guard of the log is there."""
    inspector = inspect(connection)
    missing = set(ServerTable.metadata.tables) - set(inspector.get_table_names())
    if missing:
        raise SchemaVersionError(f"tables are missing: {', '.join(sorted(missing))}")
    indexes = inspector.get_multi_indexes()
    there = {index["name"] for found in indexes.values() for index in found}
    named = {
        index.name for table in ServerTable.metadata.tables.values() for index in table.indexes
    }
    if named - there:
        raise SchemaVersionError(f"indexes are missing: {', '.join(sorted(named - there))}")
    if connection.dialect.name != "sqlite":
        return
    rows = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    present = set(rows.scalars())
    wanted = {f"{table}_{act}" for table in LOG_TABLES for act in ("update", "delete")}
    if wanted - present:
        raise SchemaVersionError(f"triggers are missing: {', '.join(sorted(wanted - present))}")
    loose = connection.exec_driver_sql(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict"
    )
    allowed = {"alembic_version", "sqlite_schema"}
    bad = set(loose.scalars()) - allowed
    if bad:
        raise SchemaVersionError(f"tables are not strict: {', '.join(sorted(bad))}")
