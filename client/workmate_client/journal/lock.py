"""Locks between processes, by the operating system, and the one of who talks to the server.

The system releases a lock when its holder ends, however it ends, so that no lock can be stale. Lock
files are never removed: another process may be waiting on the very file. What they contain is for
display only.
"""

import contextlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from workmate_client.errors import DeviceError
from workmate_client.ports import Clock

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

POLL_SECONDS = 0.01
"""How often a waiting process tries again, in seconds."""

RECORD_LIMIT_BYTES = 1024
"""The most that is read of what a holder wrote about itself."""

# Windows locks ranges, and keeps others from reading them: this one lies behind any content.
_WINDOWS_OFFSET = 1 << 30


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _WINDOWS_OFFSET, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


class FileLock:
    """An exclusive lock on a file, between processes and between threads; not re-entrant."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._descriptor: int | None = None

    def acquire(self, timeout_seconds: float) -> bool:
        """Take the lock, waiting at most `timeout_seconds`; False if another holds it until then.

        Raises OSError if the lock file cannot be opened.
        """
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._path, flags, 0o600)
        deadline = self._clock.monotonic() + timeout_seconds
        taken = False
        try:
            taken = _try_lock(descriptor)
            while not taken and self._clock.monotonic() < deadline:
                self._clock.sleep(POLL_SECONDS)
                taken = _try_lock(descriptor)
        finally:
            if not taken:
                os.close(descriptor)
        if taken:
            self._descriptor = descriptor
        return taken

    def write(self, content: bytes) -> None:
        """Replace what the lock file says, for display. Raises ValueError unless it is held."""
        if self._descriptor is None:
            raise ValueError("the lock is not held")
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, content)

    def release(self) -> None:
        """Give the lock back; does nothing if it is not held."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            # Closing the only descriptor of an open file gives up its lock on every platform.
            os.close(descriptor)


class LockHolder(msgspec.Struct, frozen=True):
    """Who holds a lock: process id, the machine's boot it runs in, and since when (RFC 3339)."""

    pid: int
    boot_id: str
    since: str


class LockState(msgspec.Struct, frozen=True):
    """Whether a lock is held now, and by whom as far as its note can be read."""

    held: bool
    holder: LockHolder | None


class LockedError(DeviceError):
    """Another process holds the profile's lock: `profile_busy`, with its process id if known."""

    code = "profile_busy"

    def __init__(self, path: Path, holder: LockHolder | None) -> None:
        self.path = path
        self.holder = holder
        self.pid = holder.pid if holder else None
        who = f"process {self.pid}" if holder else "another process"
        super().__init__(f"{path} is held by {who}")


class ProfileLock:
    """The lock that one process at a time holds, with a note about the holder.

    Usable as a context manager, again and again; entering raises LockedError while another process
    (or another ProfileLock of this one) holds it.
    """

    def __init__(self, path: Path, clock: Clock, timeout_seconds: float = 0.0) -> None:
        self._path = path
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._lock = FileLock(path, clock)

    def acquire(self) -> None:
        """Take the lock and note who holds it. Raises LockedError, or OSError without a folder."""
        if not self._lock.acquire(self._timeout_seconds):
            raise LockedError(self._path, self._noted())
        holder = LockHolder(os.getpid(), self._clock.boot_id(), self._clock.now().isoformat())
        # The note is a courtesy: a disk too full to write it must not keep work from being sent.
        with contextlib.suppress(OSError):
            self._lock.write(msgspec.json.encode(holder))

    def release(self) -> None:
        """Give the lock back; does nothing if it is not held."""
        self._lock.release()

    def state(self) -> LockState:
        """Tell whether the lock is held now, not keeping it. Raises OSError without a folder."""
        probe = FileLock(self._path, self._clock)
        if probe.acquire(0.0):
            probe.release()
            return LockState(held=False, holder=None)
        return LockState(held=True, holder=self._noted())

    def _noted(self) -> LockHolder | None:
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(RECORD_LIMIT_BYTES), type=LockHolder)
        except (OSError, msgspec.DecodeError):
            return None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
