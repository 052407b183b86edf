"""Held files whose bytes are gone or changed are found, each by its hash."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from blake3 import blake3

from support.log import Log, open_log
from workmate_server.config import Settings
from workmate_server.engine.verify_report import Findings
from workmate_server.evidence.checking import check_held_bytes
from workmate_server.evidence.folder_blobs import FolderBlobStore
from workmate_server.store.held import PAGE, walk_held
from workmate_server.store.tables import BlobRow, table_of
from workmate_server.telemetry.system import NoHooks

READ_BYTES = Settings().blob_read_bytes


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    async with open_log(tmp_path) as opened:
        yield opened


def note(log: Log, *names: str, size: int, purged_at: str | None = None) -> None:
    rows = [
        {
            "tenant_id": log.tenant_id,
            "hash": name,
            "size": size,
            "media_type": "image/jpeg",
            "verified_at": "2026-03-01T09:00:00.000Z",
            "purged_at": purged_at,
        }
        for name in names
    ]
    with log.database.write() as connection:
        connection.execute(table_of(BlobRow).insert(), rows)


def store(log: Log, blobs: FolderBlobStore, content: bytes) -> str:
    name = blake3(content).hexdigest()
    blobs.begin_upload(name)
    blobs.append(name, 0, [content])
    blobs.finish(name, log.tenant_id, name)
    note(log, name, size=len(content))
    return name


def path_of(log: Log, name: str) -> Path:
    return log.folder / "blobs" / "blobs" / log.tenant_id / name[:2] / name


def check(log: Log, blobs: FolderBlobStore) -> tuple[int, list[tuple[str, str]]]:
    findings = Findings(100)
    count = check_held_bytes(log.database, blobs, findings)
    return count, [(found.place, found.fault) for found in findings.found]


async def test_only_files_whose_bytes_are_gone_or_others_are_found(log: Log) -> None:
    blobs = FolderBlobStore(log.folder / "blobs", NoHooks(), READ_BYTES)
    whole, gone, changed, cut = (store(log, blobs, f"photo {n}".encode()) for n in range(4))
    note(log, "ab" * 32, size=10, purged_at="2026-03-01T09:00:00.000Z")
    assert check(log, blobs) == (4, [])
    path_of(log, gone).unlink()
    path_of(log, changed).write_bytes(b"photo X")
    path_of(log, cut).write_bytes(b"photo")
    count, found = check(log, blobs)
    assert count == 4
    assert dict(found) == {
        f"blob {gone}": "missing",
        f"blob {changed}": "changed",
        f"blob {cut}": "changed",
    }
    assert whole not in str(found)


async def test_a_size_that_was_changed_is_found(log: Log) -> None:
    blobs = FolderBlobStore(log.folder / "blobs", NoHooks(), READ_BYTES)
    name = store(log, blobs, b"photo")
    log.tamper("UPDATE blob SET size = 6")
    assert check(log, blobs) == (1, [(f"blob {name} size", "changed")])


async def test_every_page_of_held_files_is_walked(log: Log) -> None:
    names = [f"{number:064x}" for number in range(2 * PAGE + 1)]
    note(log, *names, size=1)
    with log.database.read() as connection:
        assert [name for name, _ in walk_held(connection, log.tenant_id)] == names
