"""`migrate`: bring the schema to the one of this program."""

from msgspec import Struct

from workmate_server.bootstrap import open_parts
from workmate_server.commands.result import Result
from workmate_server.config import Locations
from workmate_server.store.database import SchemaVersionError


class Migrated(Struct, frozen=True):
    """Whether anything had to be done."""

    changed: bool


def migrate(locations: Locations) -> Result:
    """Migrate in one transaction: a failure leaves the schema as it was.

    Raises SchemaVersionError for a schema from a newer program; StartError, KeyFolderError or
    ConfigError.
    """
    with open_parts(locations) as parts:
        try:
            parts.database.require_current_schema()
        except SchemaVersionError:
            parts.database.migrate()
            parts.database.require_current_schema()
            return Result(value=Migrated(True), lines=("The schema is now that of this program.",))
    return Result(value=Migrated(False), lines=("The schema is that of this program already.",))
