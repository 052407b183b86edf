"""Durable file operations on the machine's own file system.

Nothing is reported done before it is synced: contents, then names. New content is written beside
its place under a temporary name, synced, and moved there at once. Every step tells a hook before
and after, so that a test can end the process, or fail the disk, at each of them.
"""

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from workmate_client.journal.lock import FileLock
from workmate_client.ports import Clock, FileKind, FileState, StorageCode, StorageError
from workmate_client.system import SystemClock

if sys.platform != "win32":
    import fcntl

Hook = Callable[[str, Path], None]
"""Called with `<label>.<step>.before` or `….after` and the path; may raise OSError or not return.

Steps: `create`, `write` (once for each chunk), `fsync`, `rename`, `fsync_folder`, `truncate`,
`remove`, `make_folder`.
"""

TEMPORARY_SUFFIX = ".unfinished"
"""How the names of files end that are still being written, or never were finished."""

_BINARY = getattr(os, "O_BINARY", 0)
# Opening a pipe that was put in a file's place must not wait for somebody to write to it.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)

_CODES: dict[int, StorageCode] = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EROFS: "store_read_only",
    errno.EACCES: "store_denied",
    errno.EPERM: "store_denied",
    errno.ENOENT: "file_missing",
    errno.EEXIST: "file_exists",
}
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def no_hook(point: str, path: Path) -> None:
    """Do nothing, as the hook of every program that runs for real."""


@contextlib.contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        code = _CODES.get(error.errno or 0, "store_failed")
        raise StorageError(code, path, error.strerror or str(error)) from error


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _fsync(descriptor: int) -> None:
    if sys.platform == "darwin":
        # There fsync leaves the bytes in the drive's cache; file systems without the stronger
        # call refuse it.
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:
            os.fsync(descriptor)
    else:
        os.fsync(descriptor)


def _move_new(temporary: Path, path: Path) -> None:
    """Move to a name that must be free, with no moment in which two could both find it so."""
    if sys.platform == "win32":
        # There a rename takes nobody's place.
        temporary.rename(path)
    else:
        try:
            path.hardlink_to(temporary)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # Memory cards know no second names; there looking first is as good as it gets.
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            temporary.rename(path)
        else:
            temporary.unlink()


class PosixFiles:
    """The `Files` port on Linux, macOS and, with the limits of its file systems, Windows."""

    def __init__(self, hook: Hook = no_hook, clock: Clock | None = None) -> None:
        self._hook = hook
        self._clock = clock or SystemClock()

    @contextlib.contextmanager
    def _step(self, label: str, step: str, path: Path) -> Iterator[None]:
        self._hook(f"{label}.{step}.before", path)
        yield
        self._hook(f"{label}.{step}.after", path)

    def write_new(self, path: Path, chunks: Iterable[bytes], *, label: str) -> None:
        """Create a file at once, whole. Raises `file_exists` and leaves what is there."""
        self._place(path, chunks, label, _move_new)

    def replace(self, path: Path, chunks: Iterable[bytes], *, label: str) -> None:
        """Put a new file in the place of an old one, or of none, at once."""
        self._place(path, chunks, label, os.replace)

    def _place(
        self, path: Path, chunks: Iterable[bytes], label: str, move: Callable[[Path, Path], None]
    ) -> None:
        with _storage_errors(path), contextlib.ExitStack() as cleanup:
            with self._step(label, "create", path):
                descriptor, name = tempfile.mkstemp(
                    prefix=f"{path.name}.", suffix=TEMPORARY_SUFFIX, dir=path.parent
                )
            temporary = Path(name)
            cleanup.callback(temporary.unlink, missing_ok=True)
            with os.fdopen(descriptor, "wb", buffering=0):
                for chunk in chunks:
                    with self._step(label, "write", path):
                        _write_all(descriptor, chunk)
                with self._step(label, "fsync", path):
                    _fsync(descriptor)
            with self._step(label, "rename", path):
                move(temporary, path)
            self._sync_names(path.parent, label)

    def append(self, path: Path, data: bytes, *, label: str) -> None:
        """Add bytes at the end of a file, which is created if it is missing."""
        with _storage_errors(path):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _BINARY
            with self._step(label, "create", path):
                descriptor = os.open(path, flags, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0):
                # The name is synced before there is content: an empty file may have none yet.
                if os.fstat(descriptor).st_size == 0:
                    self._sync_names(path.parent, label)
                with self._step(label, "write", path):
                    _write_all(descriptor, data)
                with self._step(label, "fsync", path):
                    _fsync(descriptor)

    def truncate(self, path: Path, size_bytes: int, *, label: str) -> None:
        """Cut a file to its first `size_bytes`."""
        with _storage_errors(path), path.open("r+b", buffering=0) as file:
            with self._step(label, "truncate", path):
                file.truncate(size_bytes)
            with self._step(label, "fsync", path):
                _fsync(file.fileno())

    def remove(self, path: Path, *, label: str) -> None:
        """Remove a file; one that is missing is removed already."""
        with _storage_errors(path):
            with self._step(label, "remove", path):
                path.unlink(missing_ok=True)
            self._sync_names(path.parent, label)

    def make_folder(self, path: Path, *, label: str) -> None:
        """Make a folder that only its owner can enter, with its parents, unless it is there."""
        with _storage_errors(path):
            if not path.is_dir():
                self.make_folder(path.parent, label=label)
                with self._step(label, "make_folder", path):
                    path.mkdir(mode=0o700, exist_ok=True)
            # Also for a folder that is there: who made it may have died before this.
            self._sync_names(path.parent, label)

    def fsync_folder(self, path: Path, *, label: str) -> None:
        """Make the names in a folder durable."""
        with _storage_errors(path):
            self._sync_names(path, label)

    def _sync_names(self, folder: Path, label: str) -> None:
        with self._step(label, "fsync_folder", folder):
            # Windows opens no folders for syncing; NTFS journals its names by itself.
            if sys.platform != "win32":
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    _fsync(descriptor)
                finally:
                    os.close(descriptor)

    def read(self, path: Path) -> bytes:
        """Return a whole file."""
        with _storage_errors(path), self._opened(path) as file:
            return file.read()

    def read_range(self, path: Path, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`, fewer at the file's end."""
        with _storage_errors(path), self._opened(path) as file:
            file.seek(offset)
            return file.read(length)

    @staticmethod
    def _opened(path: Path) -> BinaryIO:
        return os.fdopen(os.open(path, os.O_RDONLY | _BINARY | _NO_WAIT), "rb")

    def state(self, path: Path) -> FileState | None:
        """Return what a path holds (links followed), or None."""
        with _storage_errors(path):
            try:
                found = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        kind: FileKind = "other"
        if stat.S_ISREG(found.st_mode):
            kind = "file"
        elif stat.S_ISDIR(found.st_mode):
            kind = "folder"
        return FileState(kind, found.st_size, found.st_mtime_ns, found.st_ino)

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; none of a folder that is missing."""
        with _storage_errors(folder):
            try:
                return sorted(entry.name for entry in folder.iterdir())
            except FileNotFoundError:
                return []

    def is_temporary(self, name: str) -> bool:
        """Tell whether a name is that of a file which was never finished."""
        return name.endswith(TEMPORARY_SUFFIX)

    def free_bytes(self, folder: Path) -> int:
        """Return the space that is left on the folder's disk, in bytes."""
        with _storage_errors(folder):
            return shutil.disk_usage(folder).free

    @contextlib.contextmanager
    def locked(self, path: Path, *, timeout_seconds: float) -> Iterator[None]:
        """Hold a lock between processes and threads. Raises `file_busy` when time is up."""
        lock = FileLock(path, self._clock)
        with _storage_errors(path):
            taken = lock.acquire(timeout_seconds)
        if not taken:
            raise StorageError("file_busy", path, f"held by another for {timeout_seconds:g} s")
        try:
            yield
        finally:
            lock.release()
