"""How the bytes of evidence arrive: begun, continued as often as it takes, and verified at the end.

An upload belongs to the principal who began it. Bytes are made durable piece by piece, so that a
cut connection costs one piece at most. Whoever has uploaded a file before may skip its bytes; to
know its hash is not enough. A file counts only after its hash was verified.
"""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

from msgspec import Struct

from workmate_server.config import Settings
from workmate_server.engine.blocking import RunBlocking
from workmate_server.engine.subscribers import AUTOMATIC_APPROVAL_KIND
from workmate_server.evidence.media import HEAD_BYTES, media_type_of
from workmate_server.ports import (
    BlobStore,
    Clock,
    Entropy,
    HashMismatchError,
    OffsetMismatchError,
    UploadBusyError,
    UploadMissingError,
)
from workmate_server.store import outbox, uploads
from workmate_server.store.database import Database
from workmate_server.store.uploads import Upload
from workmate_shared.kernel.instants import format_instant
from workmate_shared.tasks import table

UPLOAD_STATES = frozenset({table.ACCEPTED, table.EN_ROUTE, table.IN_PROGRESS, table.PROOF_PENDING})
"""States in which the assignee may upload whatever he likes for the task."""

_EXPIRED_AT_ONCE = 500


class UploadError(Exception):
    """An upload that cannot begin or go on; `code` is one of the catalogue's.

    `limit` is the size in bytes that something too large goes beyond.
    """

    def __init__(self, code: str, limit: int = 0) -> None:
        super().__init__(code)
        self.code = code
        self.limit = limit


class Uploader(Struct, frozen=True):
    """Whose bytes they are. One who may no longer act uploads only what his commands name."""

    tenant_id: str
    principal_id: str
    may_act: bool


class Announced(Struct, frozen=True, kw_only=True):
    """What is to come: the file's BLAKE3 hash (hex), its size in bytes, and for which task.

    File name and media type are claims that are kept and not relied on.
    """

    hash: str
    size: int
    task_id: str
    filename: str = ""
    media_type: str = ""


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """Every upload of one server. Offsets and sizes are in bytes."""

    database: Database
    blobs: BlobStore
    settings: Settings
    clock: Clock
    entropy: Entropy
    run_blocking: RunBlocking

    async def begin(self, uploader: Uploader, announced: Announced) -> tuple[Upload, int]:
        """Begin an upload; return it and the offset at which to go on.

        The offset is the whole size for a file that this principal has uploaded before. Raises
        UploadError: `not_found` where he may not upload it for this task, `too_large`, or
        `hash_mismatch` for an empty file under another file's hash.
        """
        most = self.settings.upload_bytes_max
        if announced.size > most:
            raise UploadError("too_large", most)
        upload, complete = await self.run_blocking(self._begin, uploader, announced)
        if complete:
            return upload, upload.size
        return upload, await self.run_blocking(self._offset, upload)

    async def find(self, uploader: Uploader, upload_id: str) -> tuple[Upload, int]:
        """Return an upload and how much of it is held. Raises UploadError, `not_found`.

        One whose last byte came just before a crash is finished here, and may be `hash_mismatch`.
        """
        return await self.run_blocking(self._find, uploader, upload_id)

    async def append(self, upload: Upload, offset: int, content: AsyncIterable[bytes]) -> int:
        """Add bytes at `offset` and return the new end; the last byte finishes the upload.

        What came before `content` failed is kept, and its exception raised. Raises UploadError:
        `upload_conflict` at another offset or beside another writer, `too_large` beyond the
        announced size, `hash_mismatch`, or `not_found` for one that has ended meanwhile.
        """
        async for piece in _pieces(content, self.settings.upload_piece_bytes):
            if offset + len(piece) > upload.size:
                raise UploadError("too_large", upload.size)
            offset = await self.run_blocking(self._append, upload, offset, piece)
        if offset == upload.size:
            await self.run_blocking(self._finish, upload)
        return offset

    async def expire(self) -> int:
        """Drop uploads that were begun too long ago, bytes first; return how many."""
        return await self.run_blocking(self._expire)

    def _begin(self, uploader: Uploader, announced: Announced) -> tuple[Upload, bool]:
        now = format_instant(self.clock.now())
        upload = Upload(
            upload_id=self.entropy.uuid7(),
            tenant_id=uploader.tenant_id,
            principal_id=uploader.principal_id,
            task_id=announced.task_id,
            hash=announced.hash,
            size=announced.size,
            filename=announced.filename,
            media_type=announced.media_type,
            created_at=now,
        )
        stored = self.blobs.stat(upload.tenant_id, upload.hash)
        with self.database.write() as connection:
            standing = uploads.task_standing(connection, upload.tenant_id, upload.task_id)
            mine = (upload.tenant_id, upload.principal_id)
            holds = (
                standing is not None
                and uploader.may_act
                and standing.assignee_id == upload.principal_id
                and standing.state in UPLOAD_STATES
            )
            if not holds and not uploads.has_named(connection, *mine, upload.task_id, upload.hash):
                raise UploadError("not_found")
            known = uploads.uploaded_before(connection, *mine, upload.hash)
            complete = known == upload.size == stored
            # The row comes before the bytes: no bytes are ever held of which nobody knows.
            uploads.add_upload(connection, upload)
            if complete:
                uploads.link_blob(self.database, connection, upload, now)
        if not complete:
            self.blobs.begin_upload(upload.upload_id)
        return upload, complete

    def _find(self, uploader: Uploader, upload_id: str) -> tuple[Upload, int]:
        with self.database.read() as connection:
            upload = uploads.find_upload(connection, upload_id)
        if upload is None or (upload.tenant_id, upload.principal_id) != (
            uploader.tenant_id,
            uploader.principal_id,
        ):
            raise UploadError("not_found")
        return upload, self._offset(upload)

    def _offset(self, upload: Upload) -> int:
        if self._is_held(upload):
            return upload.size
        held = self.blobs.size(upload.upload_id)
        if held is None:
            # Discarded, or finished and not yet recorded: which of the two cannot be told, and
            # only the bytes themselves prove that this principal has them.
            raise UploadError("not_found")
        if held == upload.size:
            self._finish(upload)
        return held

    def _append(self, upload: Upload, offset: int, piece: bytes) -> int:
        try:
            return self.blobs.append(upload.upload_id, offset, [piece])
        except (OffsetMismatchError, UploadBusyError) as error:
            raise UploadError("upload_conflict") from error
        except UploadMissingError as error:
            raise UploadError(
                "upload_conflict" if self._is_held(upload) else "not_found"
            ) from error

    def _finish(self, upload: Upload) -> None:
        try:
            self.blobs.finish(upload.upload_id, upload.tenant_id, upload.hash)
        except HashMismatchError as error:
            self._forget(upload)
            raise UploadError("hash_mismatch") from error
        except UploadBusyError as error:
            raise UploadError("upload_conflict") from error
        except UploadMissingError as error:
            if self._is_held(upload):
                return
            raise UploadError("not_found") from error
        head = b"".join(self.blobs.open_range(upload.tenant_id, upload.hash, 0, HEAD_BYTES))
        now = format_instant(self.clock.now())
        with self.database.write() as connection:
            uploads.keep_blob(self.database, connection, upload, media_type_of(head), now)
            outbox.look_again(
                connection, upload.tenant_id, AUTOMATIC_APPROVAL_KIND, upload.task_id, now
            )

    def _is_held(self, upload: Upload) -> bool:
        with self.database.read() as connection:
            return uploads.held_for(connection, upload)

    def _forget(self, upload: Upload) -> None:
        with self.database.write() as connection:
            uploads.remove_uploads(connection, [upload.upload_id])

    def _expire(self) -> int:
        life = timedelta(seconds=self.settings.upload_life_seconds)
        before = format_instant(self.clock.now() - life)
        with self.database.read() as connection:
            old = uploads.uploads_before(connection, before, _EXPIRED_AT_ONCE)
        for upload in old:
            self.blobs.discard(upload.upload_id)
        with self.database.write() as connection:
            uploads.remove_uploads(connection, [upload.upload_id for upload in old])
        return len(old)


async def _pieces(content: AsyncIterable[bytes], size: int) -> AsyncIterator[bytes]:
    """Gather content into pieces of about `size` bytes; what came before an error comes first."""
    gathered = bytearray()
    try:
        async for chunk in content:
            gathered += chunk
            if len(gathered) >= size:
                yield bytes(gathered)
                gathered.clear()
    except ConnectionError:
        if gathered:
            yield bytes(gathered)
        raise
    if gathered:
        yield bytes(gathered)
