"""The file that a worker points at: what it is, whether it is finished, and its bytes, once.

The file belongs to the worker and may be written to at any moment. What is read must be one state
of it, so the state is looked at before, and again after the last byte.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from workmate_client.config import Settings
from workmate_client.errors import DeviceError
from workmate_client.ports import Clock, Files, FileState, StorageError

SourceCode = Literal[
    "source_missing",
    "source_not_a_file",
    "source_empty",
    "source_too_large",
    "source_unreadable",
    "source_changing",
    "source_changed",
]


class SourceError(DeviceError):
    """A file that cannot be taken as evidence; `code` says why, and the file is as it was.

    `source_changing`: somebody kept writing to it for as long as we waited. `source_changed`:
    somebody wrote to it while it was read. The others say what they mean.
    """

    def __init__(self, code: SourceCode, path: Path, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.code = code
        self.path = path


class SourceFile:
    """A file that stands still, and can be read once, piece by piece."""

    def __init__(self, files: Files, path: Path, clock: Clock, settings: Settings) -> None:
        """Wait until the file stands still. Raises SourceError."""
        self._files = files
        self._path = path
        self._clock = clock
        self._settings = settings
        self._state = self._settle()

    @property
    def size_bytes(self) -> int:
        """Size of the file, in bytes."""
        return self._state.size_bytes

    def pieces(self) -> Iterator[bytes]:
        """Read the file in pieces of the sealed size. Raises SourceError if it changes."""
        step = self._settings.sealed_piece_bytes
        for offset in range(0, self.size_bytes, step):
            wanted = min(step, self.size_bytes - offset)
            try:
                piece = self._files.read_range(self._path, offset, wanted)
            except StorageError as error:
                raise SourceError("source_unreadable", self._path, error.detail) from error
            if len(piece) != wanted:
                raise SourceError("source_changed", self._path, "was cut while it was read")
            if offset + wanted == self.size_bytes and self._look() != self._state:
                raise SourceError("source_changed", self._path, "was written to while it was read")
            yield piece

    def _settle(self) -> FileState:
        deadline = self._clock.monotonic() + self._settings.evidence_settle_timeout_seconds
        seen = self._look()
        while True:
            self._clock.sleep(self._settings.evidence_settle_seconds)
            again = self._look()
            if again == seen:
                break
            if self._clock.monotonic() >= deadline:
                raise SourceError("source_changing", self._path, "is still being written to")
            seen = again
        if seen.size_bytes == 0:
            raise SourceError("source_empty", self._path, "is empty")
        return seen

    def _look(self) -> FileState:
        try:
            state = self._files.state(self._path)
        except StorageError as error:
            raise SourceError("source_unreadable", self._path, error.detail) from error
        if state is None:
            raise SourceError("source_missing", self._path, "is not there")
        if state.kind != "file":
            raise SourceError("source_not_a_file", self._path, "is not a file")
        limit = self._settings.evidence_file_limit_bytes
        if state.size_bytes > limit:
            detail = f"has {state.size_bytes} bytes, {limit} are allowed"
            raise SourceError("source_too_large", self._path, detail)
        return state
