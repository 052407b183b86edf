"""Evidence files, taken from where the worker has them and kept sealed under random names.

A file is read once: hashed, sealed, synced, and only then given its name; the original is never
touched. Memory holds one piece at a time. Reading returns the bytes that were sealed or raises;
what is wrong is named by file and piece. Names on disk say nothing about what the worker called a
file.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from blake3 import blake3
from msgspec import Struct

from workmate_client.config import Settings
from workmate_client.errors import DeviceError
from workmate_client.journal.pieces import (
    FILE_ID_BYTES,
    HEADER_BYTES,
    SALT_BYTES,
    FormatError,
    Header,
    PieceSealer,
    decode_header,
    encode_header,
)
from workmate_client.journal.source import SourceFile
from workmate_client.ports import Clock, Files, Random, StorageError

SUFFIX = ".sealed"
"""How the names of whole sealed files end on disk."""

SealedFileCode = Literal[
    "sealed_file_missing",
    "sealed_header_damaged",
    "sealed_length_wrong",
    "sealed_piece_damaged",
    "sealed_hash_wrong",
]

Progress = Callable[[int, int], None]
"""Called as `progress(bytes_done, bytes_total)`; what it raises interrupts the work cleanly."""


class SealedFileError(DeviceError):
    """A sealed file that is missing or not as it was written; `name` and `piece` say where."""

    def __init__(
        self, code: SealedFileCode, name: str, detail: str, piece: int | None = None
    ) -> None:
        where = name if piece is None else f"{name}, piece {piece}"
        super().__init__(f"{where}: {detail}")
        self.code = code
        self.name = name
        self.piece = piece


class SealedEvidence(Struct, frozen=True):
    """A file as it lies sealed: its random name, BLAKE3 hash (hex) and size of the content."""

    name: str
    hash: str
    size_bytes: int


class FolderInventory(Struct, frozen=True):
    """How the folder compares with a list of names: what is left over, unlisted, missing.

    `unfinished` are copies that never got their name; `unlisted` are whole files that no row names
    (`SealedFolder.verify_file` tells their hash and size); `missing` are listed and not there.
    """

    unfinished: tuple[str, ...]
    unlisted: tuple[str, ...]
    missing: tuple[str, ...]


def no_progress(bytes_done: int, bytes_total: int) -> None:
    """Show nothing."""


class SealedFolder:
    """The folder of sealed evidence files of one profile.

    Beside the errors that are named, every operation raises StorageError if the disk refuses.
    """

    def __init__(
        self,
        files: Files,
        folder: Path,
        evidence_key: bytes,
        *,
        clock: Clock,
        random: Random,
        settings: Settings,
    ) -> None:
        self._files = files
        self._folder = folder
        self._key = evidence_key
        self._clock = clock
        self._random = random
        self._settings = settings

    def import_file(self, source: Path, progress: Progress = no_progress) -> SealedEvidence:
        """Copy a file into the folder, sealed and durable, once nobody writes to it any more.

        Raises SourceError about the source, StorageError about the folder (`disk_full` names the
        bytes needed), and whatever `progress` raises; then nothing has been added.
        """
        opened = SourceFile(self._files, source, self._clock, self._settings)
        return self._add(opened.size_bytes, opened.pieces(), progress)

    def import_bytes(self, content: bytes) -> SealedEvidence:
        """Keep bytes that the program made itself, such as a signature, sealed and durable."""
        step = self._settings.sealed_piece_bytes
        pieces = (content[start : start + step] for start in range(0, max(1, len(content)), step))
        return self._add(len(content), pieces, no_progress)

    def verify_file(
        self, name: str, expected_hash: str | None = None, progress: Progress = no_progress
    ) -> SealedEvidence:
        """Read a whole file and return its hash and size.

        Raises SealedFileError, also (`sealed_hash_wrong`) if it is not the file expected.
        """
        hasher = blake3()
        done = 0
        header = self._header(name)
        for piece in self._pieces(name, header, 0):
            hasher.update(piece)
            done += len(piece)
            progress(done, header.total_bytes)
        found = hasher.hexdigest()
        if expected_hash is not None and found != expected_hash:
            raise SealedFileError("sealed_hash_wrong", name, f"holds {found}, not {expected_hash}")
        return SealedEvidence(name, found, header.total_bytes)

    def size(self, name: str) -> int:
        """Return the size of the content, in bytes. Raises SealedFileError."""
        return self._header(name).total_bytes

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Return `length` bytes of the content from `offset`, fewer at its end.

        Only the pieces that hold them are read. Raises SealedFileError, or ValueError for a
        negative offset or length.
        """
        if offset < 0 or length < 0:
            raise ValueError("offset and length cannot be negative")
        header = self._header(name)
        end = min(offset + length, header.total_bytes)
        if offset >= end:
            return b""
        first = offset // header.piece_bytes
        last = (end - 1) // header.piece_bytes
        content = b"".join(self._pieces(name, header, first, last + 1))
        start = offset - first * header.piece_bytes
        return content[start : start + end - offset]

    def open_chunks(self, name: str) -> Iterator[bytes]:
        """Return the content piece by piece. Raises SealedFileError, at the latest where it is."""
        return self._pieces(name, self._header(name), 0)

    def remove(self, name: str) -> None:
        """Remove a file for good; one that is missing is removed already."""
        self._files.remove(self._path(name), label="evidence_removal")

    def inventory(self, listed: Iterable[str]) -> FolderInventory:
        """Compare the folder with the names that ought to be there."""
        present = self._files.names(self._folder)
        whole = {name.removesuffix(SUFFIX) for name in present if name.endswith(SUFFIX)}
        wanted = set(listed)
        return FolderInventory(
            unfinished=tuple(filter(self._files.is_temporary, present)),
            unlisted=tuple(sorted(whole - wanted)),
            missing=tuple(sorted(wanted - whole)),
        )

    def remove_unfinished(self) -> tuple[str, ...]:
        """Remove copies that were begun so long ago that nobody is writing them; return them."""
        age_ns = self._settings.unfinished_age_seconds * 1e9
        now_ns = _nanoseconds(self._clock.now())
        removed = []
        for name in filter(self._files.is_temporary, self._files.names(self._folder)):
            state = self._files.state(self._folder / name)
            if state is not None and now_ns - state.modified_ns > age_ns:
                self._files.remove(self._folder / name, label="evidence_removal")
                removed.append(name)
        return tuple(removed)

    def _path(self, name: str) -> Path:
        if len(name) != 2 * FILE_ID_BYTES or not set(name) <= set("0123456789abcdef"):
            raise SealedFileError("sealed_file_missing", name, "not the name of a sealed file")
        return self._folder / f"{name}{SUFFIX}"

    def _add(self, size: int, pieces: Iterable[bytes], progress: Progress) -> SealedEvidence:
        header = Header(
            file_id=self._random.token_bytes(FILE_ID_BYTES),
            piece_bytes=self._settings.sealed_piece_bytes,
            total_bytes=size,
            salt=self._random.token_bytes(SALT_BYTES),
        )
        name = header.file_id.hex()
        path = self._path(name)
        self._files.make_folder(self._folder, label="evidence_folder")
        needed = header.sealed_bytes + self._settings.disk_reserve_bytes
        if self._files.free_bytes(self._folder) < needed:
            raise StorageError("disk_full", path, f"{needed} bytes must be free", needed)
        hasher = blake3()

        def sealed() -> Iterator[bytes]:
            sealer = PieceSealer(self._key, header)
            done = 0
            yield encode_header(header)
            for index, piece in enumerate(pieces):
                hasher.update(piece)
                yield sealer.seal(index, piece)
                done += len(piece)
                progress(done, size)

        self._files.write_new(path, sealed(), label="evidence")
        return SealedEvidence(name, hasher.hexdigest(), size)

    def _header(self, name: str) -> Header:
        path = self._path(name)
        state = self._files.state(path)
        if state is None or state.kind != "file":
            raise SealedFileError("sealed_file_missing", name, "is not there")
        try:
            raw = self._files.read_range(path, 0, HEADER_BYTES)
            header = decode_header(raw, self._settings.sealed_piece_limit_bytes)
        except FormatError as error:
            raise SealedFileError("sealed_header_damaged", name, str(error)) from error
        if header.file_id.hex() != name:
            detail = f"holds the file {header.file_id.hex()}"
            raise SealedFileError("sealed_header_damaged", name, detail)
        if state.size_bytes != header.sealed_bytes:
            detail = f"has {state.size_bytes} bytes instead of {header.sealed_bytes}"
            raise SealedFileError("sealed_length_wrong", name, detail)
        return header

    def _pieces(
        self, name: str, header: Header, first: int, end: int | None = None
    ) -> Iterator[bytes]:
        sealer = PieceSealer(self._key, header)
        path = self._path(name)
        for index in range(first, header.pieces if end is None else end):
            sealed = self._files.read_range(path, *header.place(index))
            try:
                yield sealer.open(index, sealed)
            except FormatError as error:
                raise SealedFileError("sealed_piece_damaged", name, str(error), index) from error


def _nanoseconds(moment: datetime) -> float:
    return moment.timestamp() * 1e9
