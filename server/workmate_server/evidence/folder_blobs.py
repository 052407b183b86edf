"""Blobs in a folder of this host: the store behind `file:` URLs.

An acknowledged offset was synced before it was told. A finished upload moves into place by a
rename, so that a blob is there whole or not at all, and both folders are synced after it. Whoever
writes to or finishes an upload holds a lock on its file, also against other processes.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from blake3 import blake3

from workmate_server.evidence.layout import (
    UPLOADS,
    blob_path,
    clip_range,
    is_hash,
    tenant_path,
    upload_path,
)
from workmate_server.ports import (
    BlobMissingError,
    BlobStoreUnavailableError,
    HashMismatchError,
    Hooks,
    OffsetMismatchError,
    UploadBusyError,
    UploadMissingError,
)
from workmate_server.telemetry.files import PRIVATE_FILE, make_folder, remove_file, sync_folder


class FolderBlobStore:
    """A `BlobStore` below one folder, which is made when it is first written to.

    Kill points: `blob.<step>.before` and `blob.<step>.after` for the steps begin, append, sync,
    rename, settle, leave, discard and delete.
    """

    def __init__(self, root: Path, hooks: Hooks, read_bytes: int) -> None:
        self._root = root
        self._hooks = hooks
        self._read_bytes = read_bytes
        self._durable_folders: set[Path] = set()

    def begin_upload(self, upload_id: str) -> None:
        """Create the upload's file and make its name durable."""
        path = self._root / upload_path(upload_id)
        with _storage_errors():
            self._make_folder(path.parent)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE_FILE))
            self._step("begin", lambda: sync_folder(path.parent))

    def append(self, upload_id: str, offset: int, chunks: Iterable[bytes]) -> int:
        """Write at the end, then sync once, then answer."""
        with self._locked(upload_id) as descriptor:
            held = os.fstat(descriptor).st_size
            if held != offset:
                raise OffsetMismatchError(held)
            for chunk in chunks:
                with _storage_errors():
                    _write(descriptor, chunk, offset)
                offset += len(chunk)
            with _storage_errors():
                self._step("append", lambda: os.fsync(descriptor))
        return offset

    def size(self, upload_id: str) -> int | None:
        """Sync what a killed process may have left unsynced, then tell the size."""
        path = self._root / upload_path(upload_id)
        with _storage_errors():
            try:
                with path.open("rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    os.fsync(file.fileno())
                    return size
            except FileNotFoundError:
                return None

    def finish(self, upload_id: str, tenant_id: str, expected_hash: str) -> int:
        """Hash the file and rename it into place, or drop it."""
        source = self._root / upload_path(upload_id)
        target = self._root / blob_path(tenant_id, expected_hash)
        with self._locked(upload_id) as descriptor, _storage_errors():
            actual, size = self._hash(descriptor)
            if actual != expected_hash:
                self._remove("discard", source)
                raise HashMismatchError(expected_hash, actual)
            if self.stat(tenant_id, expected_hash) == size:
                self._remove("discard", source)
                return size
            self._make_folder(target.parent)
            self._step("sync", lambda: os.fsync(descriptor))
            self._step("rename", lambda: source.replace(target))
            self._step("settle", lambda: sync_folder(target.parent))
            self._step("leave", lambda: sync_folder(source.parent))
        return size

    def discard(self, upload_id: str) -> None:
        """Remove the upload's file."""
        with _storage_errors():
            self._remove("discard", self._root / upload_path(upload_id))

    def iterate_uploads(self) -> Iterator[str]:
        """List the folder of uploads."""
        with _storage_errors():
            yield from _names(self._root / UPLOADS)

    def open_range(
        self, tenant_id: str, blob_hash: str, start: int = 0, stop: int | None = None
    ) -> Iterator[bytes]:
        """Read the range piece by piece; the file is open only while the iterator runs."""
        size = self.stat(tenant_id, blob_hash)
        if size is None:
            raise BlobMissingError(blob_hash)
        return self._read(tenant_id, blob_hash, *clip_range(start, stop, size))

    def stat(self, tenant_id: str, blob_hash: str) -> int | None:
        """Look the file's size up."""
        path = self._root / blob_path(tenant_id, blob_hash)
        with _storage_errors():
            try:
                return path.stat().st_size
            except FileNotFoundError:
                return None

    def delete(self, tenant_id: str, blob_hash: str) -> None:
        """Remove the blob's file."""
        with _storage_errors():
            self._remove("delete", self._root / blob_path(tenant_id, blob_hash))

    def iterate(self, tenant_id: str) -> Iterator[str]:
        """List the tenant's folders, one after the other."""
        folder = self._root / tenant_path(tenant_id)
        with _storage_errors():
            for prefix in _names(folder):
                yield from filter(is_hash, _names(folder / prefix))

    def _step(self, step: str, action: Callable[[], object]) -> None:
        self._hooks.reach(f"blob.{step}.before")
        action()
        self._hooks.reach(f"blob.{step}.after")

    def _remove(self, step: str, path: Path) -> None:
        if path.exists():
            self._step(step, lambda: remove_file(path))

    def _make_folder(self, folder: Path) -> None:
        if folder not in self._durable_folders:
            make_folder(folder)
            self._durable_folders.add(folder)

    @contextmanager
    def _locked(self, upload_id: str) -> Iterator[int]:
        """Open an upload's file for its only writer."""
        path = self._root / upload_path(upload_id)
        with _storage_errors():
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError as error:
                raise UploadMissingError(upload_id) from error
        try:
            _lock(descriptor, path, upload_id)
            yield descriptor
        finally:
            os.close(descriptor)

    def _hash(self, descriptor: int) -> tuple[str, int]:
        hasher = blake3()
        size = 0
        while chunk := os.pread(descriptor, self._read_bytes, size):
            hasher.update(chunk)
            size += len(chunk)
        return hasher.hexdigest(), size

    def _read(self, tenant_id: str, blob_hash: str, start: int, stop: int) -> Iterator[bytes]:
        path = self._root / blob_path(tenant_id, blob_hash)
        with _storage_errors():
            try:
                file = path.open("rb", buffering=0)
            except FileNotFoundError as error:
                raise BlobMissingError(blob_hash) from error
            with file:
                file.seek(start)
                while start < stop and (chunk := file.read(min(self._read_bytes, stop - start))):
                    start += len(chunk)
                    yield chunk


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BlobStoreUnavailableError(str(error)) from error


def _lock(descriptor: int, path: Path, upload_id: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between opening and locking, the one before us may have moved the file to its place.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return
    except BlockingIOError as error:
        raise UploadBusyError(upload_id) from error
    except FileNotFoundError:
        pass
    raise UploadMissingError(upload_id)


def _write(descriptor: int, chunk: bytes, offset: int) -> None:
    rest = memoryview(chunk)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest = rest[written:]
        offset += written


def _names(folder: Path) -> Iterator[str]:
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        yield from (entry.name for entry in entries if not entry.name.startswith("."))
