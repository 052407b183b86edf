"""What the device asks of the machine: time, randomness, durable files.

Only what has two real implementations is a port: the machine itself, and the simulation, which owns
time and loses the bytes that were never synced. An operation of `Files` that changes something is
durable when it returns; after a crash in the middle of one, the old state or the new one is there,
whole (an append may leave a part of its bytes at the end).
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from workmate_client.errors import DeviceError

FileKind = Literal["file", "folder", "other"]

StorageCode = Literal[
    "disk_full",
    "store_read_only",
    "store_denied",
    "file_missing",
    "file_exists",
    "file_busy",
    "store_failed",
]


class StorageError(DeviceError):
    """A file operation that did not happen, or may not be durable; `code` says why.

    `disk_full`, `store_read_only`, `store_denied` (permissions), `file_missing`, `file_exists`,
    `file_busy` (another process held its lock for too long), `store_failed` (anything else that
    the operating system reports). `bytes_needed` is known for a full disk that was foreseen.
    """

    def __init__(
        self, code: StorageCode, path: Path, detail: str, bytes_needed: int | None = None
    ) -> None:
        super().__init__(f"{path}: {detail}")
        self.code = code
        self.path = path
        self.bytes_needed = bytes_needed


class FileState(Struct, frozen=True):
    """What a path holds: kind, size in bytes, time of the last change in nanoseconds, and inode.

    Two equal states of a file mean that nothing wrote to it in between, as far as the file system
    can tell.
    """

    kind: FileKind
    size_bytes: int
    modified_ns: int
    inode: int


class Clock(Protocol):
    """Time, as the device sees it. The wall clock may be wrong; the monotonic one only advances."""

    def now(self) -> datetime:
        """Return the wall clock's time, with the offset of the worker's zone."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment of this boot; comparable only under one `boot_id`."""
        ...

    def boot_id(self) -> str:
        """Return an id of the machine's present boot."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block the calling thread; never called on an event loop."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        ...


class Random(Protocol):
    """Unpredictable bytes, and the ids that are made from them."""

    def token_bytes(self, size: int) -> bytes:
        """Return `size` bytes fit for keys and nonces."""
        ...

    def uuid7(self) -> str:
        """Return a fresh UUIDv7 (RFC 9562) in lower-case text form."""
        ...


class Files(Protocol):
    """Durable file operations. `label` names the caller's purpose where a crash is rehearsed.

    All raise StorageError. Iterators of chunks are drawn while the file is being written; what they
    raise ends the operation, changes nothing and is passed on; an OSError is taken for the disk's.
    """

    def write_new(self, path: Path, chunks: Iterable[bytes], *, label: str) -> None:
        """Create a file at once, whole. Raises `file_exists` and leaves what is there."""
        ...

    def replace(self, path: Path, chunks: Iterable[bytes], *, label: str) -> None:
        """Put a new file in the place of an old one, or of none, at once."""
        ...

    def append(self, path: Path, data: bytes, *, label: str) -> None:
        """Add bytes at the end of a file, which is created if it is missing."""
        ...

    def truncate(self, path: Path, size_bytes: int, *, label: str) -> None:
        """Cut a file to its first `size_bytes`."""
        ...

    def remove(self, path: Path, *, label: str) -> None:
        """Remove a file; one that is missing is removed already."""
        ...

    def make_folder(self, path: Path, *, label: str) -> None:
        """Make a folder that only its owner can enter, with its parents, unless it is there."""
        ...

    def fsync_folder(self, path: Path, *, label: str) -> None:
        """Make the names in a folder durable."""
        ...

    def read(self, path: Path) -> bytes:
        """Return a whole file."""
        ...

    def read_range(self, path: Path, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`, fewer at the file's end."""
        ...

    def state(self, path: Path) -> FileState | None:
        """Return what a path holds (links followed), or None."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; none of a folder that is missing."""
        ...

    def is_temporary(self, name: str) -> bool:
        """Tell whether a name is that of a file which `write_new` or `replace` did not finish."""
        ...

    def free_bytes(self, folder: Path) -> int:
        """Return the space that is left on the folder's disk, in bytes."""
        ...

    def locked(self, path: Path, *, timeout_seconds: float) -> AbstractContextManager[None]:
        """Hold a lock between processes and threads. Raises `file_busy` when time is up."""
        ...
