"""Bring one evidence file to the server, one piece at a time, and go on where it stopped.

Each piece that the server acknowledged is noted before the next is sent; after a crash or a cut the
server says where to go on (tus 1.0.0). A file is hashed again before its first piece leaves. One
that cannot be read, or that the server finds damaged, is set aside after some tries; others go on.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from workmate_client.errors import DeviceError
from workmate_client.journal.rows import EvidenceItem
from workmate_client.journal.sealed import SealedFileError
from workmate_client.ports import StorageError
from workmate_client.sync.backoff import delay_seconds
from workmate_client.sync.failures import RefusedError, TransportError
from workmate_client.sync.parts import SyncParts
from workmate_client.sync.transport import NewUpload, UploadPlace

P = ParamSpec("P")
T = TypeVar("T")

CHUNK_MIN_BYTES = 16 * 1024
"""A link over which not even this much moves in time is no link."""

UploadProgress = Callable[[EvidenceItem, int], None]
"""Called as `progress(item, bytes_acknowledged)`."""

_GONE = (404, 410)
_DAMAGED = "hash_mismatch"
_NOT_YET = "not_found"


class EvidenceUnreadableError(DeviceError):
    """A sealed file that cannot be read as it was sealed; `code` is what was found."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def no_upload_progress(item: EvidenceItem, bytes_acknowledged: int) -> None:
    """Show nothing."""


class Uploader:
    """Moves files on, and remembers what it need not ask or compute again in this process."""

    def __init__(self, parts: SyncParts, progress: UploadProgress = no_upload_progress) -> None:
        self._parts = parts
        self._progress = progress
        self._places: dict[tuple[str, str], UploadPlace] = {}
        self._hashed: set[tuple[str, str]] = set()
        self._restarts: dict[tuple[str, str], int] = {}
        self._chunk_bytes = parts.settings.upload_chunk_bytes

    async def advance(self, item: EvidenceItem, token: str) -> int:
        """Move a file on by one piece; returns how many bytes the server acknowledged by it.

        Raises TransportError, after which the server is asked for its offset before anything else,
        and EvidenceUnreadableError.
        """
        key = (item.task_id, item.hash)
        folder = self._parts.folder
        if key not in self._hashed:
            await self._read(folder.verify_file, item.sealed_name, item.hash)
            self._hashed.add(key)
        try:
            place = self._places.get(key)
            if place is None:
                return await self._begin(item, token)
            chunk = await self._read(
                folder.read_range, item.sealed_name, place.offset, self._chunk_bytes
            )
            offset = await self._parts.transport.send_chunk(token, place.url, place.offset, chunk)
            if not place.offset < offset <= item.size_bytes:
                raise RefusedError("upload_conflict", 409, f"the server is at {offset}")
        except TransportError:
            self._places.pop(key, None)
            raise
        await self._note(item, UploadPlace(place.url, offset))
        self._chunk_bytes = min(2 * self._chunk_bytes, self._parts.settings.upload_chunk_bytes)
        return offset - place.offset

    def shrink(self) -> bool:
        """Send smaller pieces from now on; false if they are as small as they get."""
        smaller = max(self._chunk_bytes // 2, CHUNK_MIN_BYTES)
        shrunk = smaller < self._chunk_bytes
        self._chunk_bytes = min(smaller, self._chunk_bytes)
        return shrunk

    async def _read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._parts.run_blocking(function, *args, **kwargs)
        except (SealedFileError, StorageError) as error:
            raise EvidenceUnreadableError(error.code, error.detail) from error

    async def _begin(self, item: EvidenceItem, token: str) -> int:
        """Find out where to go on; returns the bytes that need not be sent at all."""
        place = await self._resumed(item, token)
        if place is None:
            place = await self._parts.transport.create_upload(
                token,
                NewUpload(
                    task_id=item.task_id,
                    hash=item.hash,
                    size_bytes=item.size_bytes,
                    file_name=item.file_name or item.hash,
                    media_type=item.media_type,
                ),
            )
        if place.offset > item.size_bytes:
            raise RefusedError("upload_conflict", 409, f"the server is at {place.offset}")
        await self._note(item, place)
        return 0

    async def _resumed(self, item: EvidenceItem, token: str) -> UploadPlace | None:
        if item.upload_url is None:
            return None
        try:
            offset = await self._parts.transport.upload_offset(token, item.upload_url)
        except RefusedError as error:
            if error.status in _GONE:
                return None
            raise
        return UploadPlace(item.upload_url, offset)

    async def _note(self, item: EvidenceItem, place: UploadPlace) -> None:
        done = place.offset == item.size_bytes
        await self._parts.run_blocking(
            self._parts.journal.mark_uploaded,
            item.task_id,
            item.hash,
            place.offset,
            upload_url=place.url,
            done=done,
        )
        key = (item.task_id, item.hash)
        self._places[key] = place
        if done:
            del self._places[key]
        self._progress(item, place.offset)

    def record_failure(
        self, item: EvidenceItem, error: TransportError | EvidenceUnreadableError
    ) -> bool:
        """Note why a file did not move on; blocking. Returns whether it was set aside for that.

        A file that the server found damaged starts from its first byte again.
        """
        journal, settings = self._parts.journal, self._parts.settings
        key = (item.task_id, item.hash)
        code = "upload_not_allowed" if error.code == _NOT_YET else error.code
        restarts = error.code == _DAMAGED
        if restarts:
            # Progress before the end resets what the journal counts, so these are counted here.
            self._restarts[key] = self._restarts.get(key, 0) + 1
            journal.mark_uploaded(item.task_id, item.hash, 0, upload_url=None)
        attempts = self._restarts[key] if restarts else item.attempts + 1
        asked = error.retry_after_seconds if isinstance(error, TransportError) else None
        wait = delay_seconds(attempts, self._parts.fraction(), settings, asked)
        journal.record_upload_wait(
            item.task_id, item.hash, code, next_attempt_at=self._parts.instant_in(wait)
        )
        tries = attempts if restarts or item.wait_code == code else 1
        damaged = restarts or isinstance(error, EvidenceUnreadableError)
        if damaged and tries >= settings.evidence_attempts_limit:
            journal.quarantine(item.task_id, item.hash, code)
            return True
        return False
