"""What the command line says of an error that an operator can do something about."""

from workmate_server.bootstrap import StartError
from workmate_server.config import ConfigError
from workmate_server.engine.histories import UnreadableEventError
from workmate_server.engine.tenants import LogKeyNotTakenError
from workmate_server.identity.keyfolder import KeyFolderError
from workmate_server.imports.mapping import MappingError
from workmate_server.imports.over_http import ServerUrlError
from workmate_server.imports.reading import FileError
from workmate_server.ports import BlobStoreUnavailableError
from workmate_server.store.database import (
    DatabaseAwayError,
    DatabaseDamagedError,
    SchemaVersionError,
)

_CODED = (StartError, ConfigError, KeyFolderError, FileError)
_NAMED: dict[type[Exception], str] = {
    MappingError: "mapping_invalid",
    ServerUrlError: "server_url_invalid",
    SchemaVersionError: "schema_version",
    DatabaseDamagedError: "database_unreadable",
    DatabaseAwayError: "database_away",
    UnreadableEventError: "log_unreadable",
    LogKeyNotTakenError: "init_failed",
    BlobStoreUnavailableError: "blobs_unavailable",
    OSError: "file_unusable",
}
_ADVICE = {
    "log_unreadable": "nothing was changed; run verify",
    "database_unreadable": "the keys are not those of this database, or the file is damaged",
}

EXPECTED: tuple[type[Exception], ...] = (*_CODED, *_NAMED)
"""Errors that are told in one line; any other is a fault of the program."""


def describe(error: Exception) -> tuple[str, str]:
    """Return code and sentence of an expected error."""
    if isinstance(error, _CODED):
        return error.code, error.detail
    code = next(code for kind, code in _NAMED.items() if isinstance(error, kind))
    advice = _ADVICE.get(code)
    return code, f"{error}; {advice}" if advice else str(error)
