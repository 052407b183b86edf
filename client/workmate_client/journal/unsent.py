"""The unsent log: every pending command once more, outside the database, for the day that breaks.

A record is on disk when `append` returns. Whatever happens to the file, every record whose bytes
are whole is read back, and what is not is reported with its place. Two processes may write at once.
"""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from workmate_client.config import Settings
from workmate_client.errors import DeviceError
from workmate_client.journal.aead import NONCE_BYTES
from workmate_client.journal.records import Damage, Scan, scan_log, seal_record
from workmate_client.ports import Files, FileState, Random, StorageError


class RecordTooLargeError(DeviceError):
    """A record over `Settings.unsent_record_limit_bytes`; nothing was written."""

    code = "unsent_record_too_large"


class UnsentContents(Struct, frozen=True):
    """What the log holds: readable records in the order of their appends, and its damage.

    `lost_indexes` are the positions, counted from 0 since the last rewrite, of which no record was
    found although later ones were.
    """

    records: tuple[bytes, ...]
    damage: tuple[Damage, ...]
    lost_indexes: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """True if nothing that was ever saved is unreadable; an unfinished append is no loss."""
        return not self.lost_indexes and all(part.kind == "torn_tail" for part in self.damage)


class RewriteReport(Struct, frozen=True):
    """What a rewrite did: records kept and dropped, and where a damaged log was put aside."""

    kept: int
    dropped: int
    set_aside: Path | None


class _Tail(Struct, frozen=True):
    """Where the next record goes, as long as the file is in this state."""

    state: FileState | None
    size_bytes: int
    next_index: int


class UnsentLog:
    """The log in one file, under one key; each operation holds the lock beside it."""

    def __init__(
        self, files: Files, path: Path, key: bytes, *, random: Random, settings: Settings
    ) -> None:
        self._files = files
        self._path = path
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._key = key
        self._random = random
        self._settings = settings
        self._tail: _Tail | None = None

    def append(self, record: bytes) -> int:
        """Save one record; see `extend`."""
        return self.extend([record])

    def extend(self, records: Sequence[bytes]) -> int:
        """Save records with one sync, in order, or, after a crash, the first few of them.

        Returns how many bytes of an unfinished earlier append were cut off, normally 0. Raises
        RecordTooLargeError, and StorageError, after which none of the records is there unless the
        disk refuses to take its bytes back.
        """
        if not records:
            return 0
        limit = self._settings.unsent_record_limit_bytes
        for record in records:
            if len(record) > limit:
                raise RecordTooLargeError(f"{len(record)} bytes, {limit} are allowed")
        with self._locked():
            tail, cut_bytes = self._ready_tail()
            data = self._sealed(records, tail.next_index)
            try:
                self._files.append(self._path, data, label="unsent")
            except StorageError:
                # What was reported as not saved must not turn up later as a command.
                with contextlib.suppress(StorageError):
                    self._files.truncate(self._path, tail.size_bytes, label="unsent_cut")
                raise
            self._remember(tail.size_bytes + len(data), tail.next_index + len(records))
        return cut_bytes

    def read_all(self) -> UnsentContents:
        """Read the log and report its damage, changing nothing."""
        with self._locked():
            scan = self._scan(self._read())
        return UnsentContents(
            records=tuple(record.content for record in scan.records),
            damage=scan.damage,
            lost_indexes=scan.lost_indexes,
        )

    def rewrite(self, keep: Callable[[bytes], bool]) -> RewriteReport:
        """Replace the log, at once, by those of its records that are to be kept.

        The records are read and chosen under the lock, so that none which another process has just
        appended is lost. If something in the log could not be read, the old file is put aside
        beside the new one. Raises StorageError, and what `keep` raises; then nothing has changed.
        """
        with self._locked():
            raw = self._read()
            scan = self._scan(raw)
            kept = [record.content for record in scan.records if keep(record.content)]
            set_aside = self._put_aside(raw) if _has_loss(scan) else None
            if raw and (len(kept) < len(scan.records) or scan.damage):
                data = self._sealed(kept, 0)
                self._files.replace(self._path, [data], label="unsent_rewrite")
                self._remember(len(data), len(kept))
        return RewriteReport(len(kept), len(scan.records) - len(kept), set_aside)

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        timeout = self._settings.file_lock_timeout_seconds
        return self._files.locked(self._lock_path, timeout_seconds=timeout)

    def _read(self) -> bytes:
        return self._files.read(self._path) if self._files.state(self._path) else b""

    def _scan(self, raw: bytes) -> Scan:
        return scan_log(self._key, raw, self._settings.unsent_record_limit_bytes)

    def _sealed(self, records: Sequence[bytes], first_index: int) -> bytes:
        return b"".join(
            seal_record(self._key, index, self._random.token_bytes(NONCE_BYTES), record)
            for index, record in enumerate(records, start=first_index)
        )

    def _ready_tail(self) -> tuple[_Tail, int]:
        """Return where to append, after cutting off what a crash left; and how much that was."""
        if self._tail and self._tail.state == self._files.state(self._path):
            return self._tail, 0
        raw = self._read()
        scan = self._scan(raw)
        torn = scan.torn_tail
        if torn is None:
            return _Tail(None, len(raw), scan.next_index), 0
        self._files.truncate(self._path, torn.offset, label="unsent_cut")
        return _Tail(None, torn.offset, scan.next_index), torn.length

    def _remember(self, size_bytes: int, next_index: int) -> None:
        self._tail = _Tail(self._files.state(self._path), size_bytes, next_index)

    def _put_aside(self, raw: bytes) -> Path:
        path = self._path.with_name(f"{self._path.name}.{self._random.uuid7()}.damaged")
        self._files.write_new(path, [raw], label="unsent_aside")
        return path


def _has_loss(scan: Scan) -> bool:
    return any(part.kind == "unreadable" for part in scan.damage) or bool(scan.lost_indexes)
