"""Blobs in a bucket: S3 and what speaks like it, Google Cloud Storage, Azure.

An unfinished upload is a start marker and numbered pieces, `uploads/<id>/<offset>`, in the bucket
itself: any server process can take the next piece, and none loses what another acknowledged, which
a spool folder on one host could not promise. A piece is created only where none is, so two writers
cannot both have an offset. Finishing reads the pieces once, hashing on the way into the blob's own
object, which the store completes only when the hash agrees.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from blake3 import blake3
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import from_url

from workmate_server.config import MIB, Settings
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
    OffsetMismatchError,
    UploadMissingError,
)

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_START = "start"
_OFFSET_DIGITS = 20
# What S3 asks of a part is 5 MiB or more; two in flight keep memory small.
_PART_BYTES = 8 * MIB
_PARTS_AT_ONCE = 2
_RETRIES = 5


class ObjectBlobStore:
    """A `BlobStore` below a bucket's prefix, reached through `obstore`.

    `options` are the provider's own (`endpoint`, `access_key_id`, `region`, …); what is not given
    is read from the provider's usual environment variables. Uploads of pieces that a crash left in
    the provider's multipart area are the bucket's life-cycle rule to clear.
    """

    def __init__(self, url: str, settings: Settings, options: Mapping[str, str]) -> None:
        config: Any = dict(options)
        plain: ClientConfig = {"allow_http": True}
        retry: RetryConfig = {
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=settings.blob_store_timeout_seconds),
        }
        self._store: ObjectStore = from_url(
            url,
            config=config,
            client_options=plain if options.get("endpoint", "").startswith("http://") else None,
            retry_config=retry,
        )
        self._piece_bytes = settings.upload_piece_bytes
        self._read_bytes = settings.blob_read_bytes

    def begin_upload(self, upload_id: str) -> None:
        """Put the start marker, unless it is there."""
        marker = f"{upload_path(upload_id)}/{_START}"
        with _store_errors(), suppress(AlreadyExistsError):
            obstore.put(self._store, marker, b"", mode="create")

    def append(self, upload_id: str, offset: int, chunks: Iterable[bytes]) -> int:
        """Put the bytes as pieces of bounded size, each at its offset."""
        self._check_end(upload_id, offset)
        for piece in _cut(chunks, self._piece_bytes):
            with _store_errors():
                try:
                    path = _piece_path(upload_id, offset)
                    obstore.put(self._store, path, piece, mode="create")
                except AlreadyExistsError as error:
                    raise OffsetMismatchError(self.size(upload_id) or 0) from error
            offset += len(piece)
        return offset

    def size(self, upload_id: str) -> int | None:
        """Add up the pieces that follow each other from the start."""
        pieces = self._pieces(upload_id)
        return None if pieces is None else sum(size for _, size in pieces)

    def finish(self, upload_id: str, tenant_id: str, expected_hash: str) -> int:
        """Read the pieces once, hashing, into the blob's object; then drop them."""
        target = blob_path(tenant_id, expected_hash)
        pieces = self._pieces(upload_id)
        if pieces is None:
            raise UploadMissingError(upload_id)
        size = sum(size for _, size in pieces)
        content = self._verified([path for path, _ in pieces], expected_hash)
        try:
            with _store_errors():
                if self.stat(tenant_id, expected_hash) == size:
                    for _ in content:
                        pass
                else:
                    self._store_blob(target, content)
        except HashMismatchError:
            self.discard(upload_id)
            raise
        self.discard(upload_id)
        return size

    def discard(self, upload_id: str) -> None:
        """Delete the start marker, which ends the upload, and then the pieces."""
        paths = {path for path, _ in self._list(upload_path(upload_id))}
        marker = {f"{upload_path(upload_id)}/{_START}"}
        with _store_errors():
            for ending in (paths & marker, paths - marker):
                if ending:
                    obstore.delete(self._store, list(ending))

    def iterate_uploads(self) -> Iterator[str]:
        """List all markers and pieces, also those that a crash left without their marker."""
        seen: set[str] = set()
        for path, _ in self._list(UPLOADS):
            upload_id = path.split("/")[-2]
            if upload_id not in seen:
                seen.add(upload_id)
                yield upload_id

    def open_range(
        self, tenant_id: str, blob_hash: str, start: int = 0, stop: int | None = None
    ) -> Iterator[bytes]:
        """Ask for the range in one request and hand its bytes on as they come."""
        size = self.stat(tenant_id, blob_hash)
        if size is None:
            raise BlobMissingError(blob_hash)
        begin, end = clip_range(start, stop, size)
        if begin >= end:
            return iter(())
        return self._read(blob_path(tenant_id, blob_hash), begin, end)

    def stat(self, tenant_id: str, blob_hash: str) -> int | None:
        """Ask for the object's head."""
        path = blob_path(tenant_id, blob_hash)
        with _store_errors():
            try:
                return obstore.head(self._store, path)["size"]
            except FileNotFoundError:
                return None

    def delete(self, tenant_id: str, blob_hash: str) -> None:
        """Delete the object."""
        with _store_errors(), suppress(FileNotFoundError):
            obstore.delete(self._store, blob_path(tenant_id, blob_hash))

    def iterate(self, tenant_id: str) -> Iterator[str]:
        """List the tenant's prefix, page by page."""
        names = (path.rpartition("/")[2] for path, _ in self._list(tenant_path(tenant_id)))
        yield from filter(is_hash, names)

    def _list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield path and size of everything below a prefix."""
        with _store_errors():
            for page in obstore.list(self._store, f"{prefix}/"):
                yield from ((entry["path"], entry["size"]) for entry in page)

    def _pieces(self, upload_id: str) -> list[tuple[str, int]] | None:
        """Return path and size of the pieces that join from offset 0 on; None without a start."""
        sizes = dict(self._list(upload_path(upload_id)))
        if f"{upload_path(upload_id)}/{_START}" not in sizes:
            return None
        pieces: list[tuple[str, int]] = []
        held = 0
        while size := sizes.get(path := _piece_path(upload_id, held)):
            pieces.append((path, size))
            held += size
        return pieces

    def _check_end(self, upload_id: str, offset: int) -> None:
        held = self.size(upload_id)
        if held is None:
            raise UploadMissingError(upload_id)
        if held != offset:
            raise OffsetMismatchError(held)

    def _verified(self, paths: list[str], expected_hash: str) -> Iterator[bytes]:
        """Yield the content; raise HashMismatchError after its last byte if it is another."""
        hasher = blake3()
        for path in paths:
            for chunk in obstore.get(self._store, path).stream(min_chunk_size=self._read_bytes):
                hasher.update(chunk)
                yield chunk
        if hasher.hexdigest() != expected_hash:
            raise HashMismatchError(expected_hash, hasher.hexdigest())

    def _store_blob(self, path: str, content: Iterator[bytes]) -> None:
        # Left by an exception, the writer aborts and drops its parts.
        with obstore.open_writer(
            self._store, path, buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
        ) as writer:
            for chunk in content:
                writer.write(chunk)

    def _read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        with _store_errors():
            found = obstore.get(self._store, path, options={"range": (start, stop)})
            for chunk in found.stream(min_chunk_size=self._read_bytes):
                yield bytes(chunk)


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        # The rest of the text is the provider's answer in full.
        raise BlobStoreUnavailableError(str(error).partition("\n")[0]) from error


def _piece_path(upload_id: str, offset: int) -> str:
    return f"{upload_path(upload_id)}/{offset:0{_OFFSET_DIGITS}}"


def _cut(chunks: Iterable[bytes], piece_bytes: int) -> Iterator[bytes]:
    gathered = bytearray()
    for chunk in chunks:
        gathered += chunk
        while len(gathered) >= piece_bytes:
            yield bytes(gathered[:piece_bytes])
            del gathered[:piece_bytes]
    if gathered:
        yield bytes(gathered)
