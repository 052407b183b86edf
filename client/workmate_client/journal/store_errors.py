"""How a database can fail, in the device's own errors: what SQLite reports is turned into them here."""

from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlcipher3 import dbapi2

from workmate_client.errors import DeviceError
from workmate_client.ports import Files, StorageError

SQLITE_VERSION_MIN = (3, 51, 3)
"""Older ones can corrupt a database when its write-ahead log is reset."""

ROOM_BYTES = 256 * 1024
"""With less free space than this an input or output error means that the disk is full."""

_BUSY = {dbapi2.SQLITE_BUSY, dbapi2.SQLITE_LOCKED}
_DAMAGED = {dbapi2.SQLITE_CORRUPT, dbapi2.SQLITE_NOTADB}


class StoreError(DeviceError):
    """A database that cannot be used now; each kind has a code of its own."""


class StoreBusyError(StoreError):
    """Another process wrote for longer than we wait; nothing was changed."""

    code = "store_busy"


class StoreDamagedError(StoreError):
    """The file is not a whole database under this key."""

    code = "store_damaged"


class StoreTooNewError(StoreError):
    """The file was written by a newer version of the program; it is left as it is."""

    code = "store_too_new"


class SqliteTooOldError(StoreError):
    """The program was installed with an SQLite that can lose data."""

    code = "sqlite_too_old"


def check_sqlite(version: tuple[int, ...] = dbapi2.sqlite_version_info) -> None:
    """Raise SqliteTooOldError for a version below `SQLITE_VERSION_MIN`."""
    if version < SQLITE_VERSION_MIN:
        found, wanted = (".".join(map(str, v)) for v in (version, SQLITE_VERSION_MIN))
        raise SqliteTooOldError(f"SQLite {found} is installed; {wanted} or newer is needed")


def translated(error: Exception, path: Path, files: Files) -> Exception:
    """Return what SQLite reported as an error of the device; a fault of the program as it is."""
    cause: Any = error.orig if isinstance(error, DBAPIError) else error
    primary = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    text = f"{path.name}: {cause}"
    if primary in _BUSY:
        return StoreBusyError(text)
    if primary in _DAMAGED:
        return StoreDamagedError(text)
    if primary == dbapi2.SQLITE_FULL:
        return StorageError("disk_full", path, str(cause))
    if primary == dbapi2.SQLITE_READONLY:
        return StorageError("store_read_only", path, str(cause))
    if primary == dbapi2.SQLITE_CANTOPEN:
        missing = files.state(path) is None
        return StorageError("file_missing" if missing else "store_denied", path, str(cause))
    if primary == dbapi2.SQLITE_IOERR and _is_full(path, files):
        # What SQLite keeps beside the file could not grow.
        return StorageError("disk_full", path, str(cause))
    if primary == dbapi2.SQLITE_IOERR:
        return StorageError("store_failed", path, str(cause))
    # Anything else is a fault of the program, not of the machine.
    return error


def _is_full(path: Path, files: Files) -> bool:
    try:
        return files.free_bytes(path.parent) < ROOM_BYTES
    except StorageError:
        return False
