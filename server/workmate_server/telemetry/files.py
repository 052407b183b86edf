"""Files that survive a power cut, and names that are safe as paths.

A file is written beside its place, synced, renamed, and its folder synced: it has its old content
or its new content, whole. A name taken from outside is checked before it becomes part of a path.
POSIX only: elsewhere a folder cannot be synced, and modes do not keep others out.
"""

import os
import re
import tempfile
from pathlib import Path

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}")


def checked_name(name: str) -> str:
    """Return an id unchanged if it can be one part of a path; raise ValueError if not.

    No separator, no leading dot, nothing outside ASCII: what passes names one entry of one folder.
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"not an id: {name[:140]!r}")
    return name


def sync_folder(folder: Path) -> None:
    """Make the names in a folder (created, renamed, removed) survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and those missing above it, for this user only, durably.

    The name of one that exists is synced all the same: whoever made it may not be that far yet.
    """
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
    sync_folder(folder.parent)


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file for this user only, durably; what was there is replaced at once."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file durably. One that is not there changes nothing."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)
