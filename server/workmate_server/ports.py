"""What the server takes from outside itself: time, chance, kill points, and a place for bytes.

A port stands here because more than one real implementation exists, or because the simulation
replaces it. Whatever is not asynchronous may block, and is called in worker threads.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time. Nothing in the server reads another clock or waits in another way."""

    def now(self) -> datetime:
        """Return the present moment as an aware datetime in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards; only differences mean anything."""
        ...

    async def sleep(self, delay_seconds: float) -> None:
        """Return after so many seconds, without holding up anybody else."""
        ...


class Entropy(Protocol):
    """Chance: secrets, salts and ids. Nothing in the server draws from another source."""

    def token_bytes(self, size: int) -> bytes:
        """Return so many random bytes, fit for keys."""
        ...

    def uuid7(self) -> str:
        """Return a new UUIDv7 (RFC 9562) in its canonical lower-case form."""
        ...


class Hooks(Protocol):
    """Named points at which a test may end the process, to see what is left."""

    def reach(self, point: str) -> None:
        """Pass the point of this name; a hook that kills does not return."""
        ...


class BlobError(Exception):
    """A blob store did not do what it was asked."""


class HashMismatchError(BlobError):
    """The bytes uploaded do not have the hash that was announced; they have been discarded."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"announced {expected}, received {actual}")
        self.expected = expected
        self.actual = actual


class OffsetMismatchError(BlobError):
    """Bytes were sent for another place than the end of what is held (`held`, in bytes)."""

    def __init__(self, held: int) -> None:
        super().__init__(f"the upload holds {held} bytes")
        self.held = held


class UploadMissingError(BlobError):
    """No upload has this id: it never began, was discarded, or has been finished."""


class UploadBusyError(BlobError):
    """Another caller is writing to or finishing this upload; nothing was done."""


class BlobMissingError(BlobError):
    """No blob with this hash is held for this tenant."""


class BlobStoreUnavailableError(BlobError):
    """The store cannot be reached, refuses, or is full; what it acknowledged before is kept."""


class BlobStore(Protocol):
    """Bytes by their BLAKE3 hash (64 lower-case hex digits), for each tenant, written once.

    A blob is there whole or not at all. What an upload acknowledges (an offset returned, a size
    told) survives a crash of the process and, as far as the store can promise it, a power cut.
    Ids and hashes that are no names raise ValueError before anything is touched. Every method
    raises BlobStoreUnavailableError where the store fails; all may be called from many threads.
    """

    def begin_upload(self, upload_id: str) -> None:
        """Begin an empty upload. A repeat changes nothing; an id is never used a second time."""
        ...

    def append(self, upload_id: str, offset: int, chunks: Iterable[bytes]) -> int:
        """Add bytes at the end, which must be at `offset`; return the new end, durably kept.

        Chunks should be at hand: while the iterator waits, the upload is busy. If it raises, what
        came before may be kept; `size` tells. Raises OffsetMismatchError, UploadMissingError or
        UploadBusyError.
        """
        ...

    def size(self, upload_id: str) -> int | None:
        """Return how many bytes of an upload are durably kept; None when there is none."""
        ...

    def finish(self, upload_id: str, tenant_id: str, expected_hash: str) -> int:
        """Hash everything that was uploaded, make it a blob, end the upload; return the size.

        A blob that is there already stays, and the upload's bytes are dropped. On a mismatch they
        are dropped too. Raises HashMismatchError, UploadMissingError or UploadBusyError.
        """
        ...

    def discard(self, upload_id: str) -> None:
        """End an upload and drop its bytes. One that is not there changes nothing."""
        ...

    def iterate_uploads(self) -> Iterator[str]:
        """Yield the ids of all unfinished uploads, of all tenants, in no particular order."""
        ...

    def open_range(
        self, tenant_id: str, blob_hash: str, start: int = 0, stop: int | None = None
    ) -> Iterator[bytes]:
        """Yield the bytes from `start` up to, not including, `stop` (None: the end).

        A range that reaches past the end is cut there, as a slice is; a negative one raises
        ValueError. Raises BlobMissingError at once, before the first byte is asked for.
        """
        ...

    def stat(self, tenant_id: str, blob_hash: str) -> int | None:
        """Return a blob's size in bytes; None when it is not held."""
        ...

    def delete(self, tenant_id: str, blob_hash: str) -> None:
        """Drop a blob's bytes. One that is not there changes nothing."""
        ...

    def iterate(self, tenant_id: str) -> Iterator[str]:
        """Yield the hashes of all blobs held for a tenant, in no particular order."""
        ...
