"""What the folder store promises beyond the contract: crashes, full disks, rivals, modes."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from blake3 import blake3

from support.blob_killing import (
    FIRST,
    HASH,
    KILLED,
    READ_BYTES,
    SECOND,
    STATES,
    TENANT,
    Recording,
    live,
    state_of,
)
from support.syncs import watch_syncs
from workmate_server.evidence.folder_blobs import FolderBlobStore
from workmate_server.ports import BlobStoreUnavailableError, UploadBusyError
from workmate_server.telemetry.system import NoHooks

POINTS = [
    f"blob.{step}.{side}"
    for step in (
        *("begin", "append", "append", "sync", "rename", "settle", "leave"),
        *("begin", "append", "discard", "delete"),
    )
    for side in ("before", "after")
]


def open_folder(root: Path) -> FolderBlobStore:
    return FolderBlobStore(root, NoHooks(), READ_BYTES)


def killed_at(number: int, root: Path) -> list[str]:
    """Run a life up to a kill point; return what it acknowledged."""
    tests = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-m", "support.blob_killing", str(root), str(number)],
        cwd=tests,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (KILLED, "")
    return ["nothing", *done.stdout.splitlines()]


def test_every_step_passes_its_kill_points_in_order(tmp_path: Path) -> None:
    hooks = Recording()
    store = FolderBlobStore(tmp_path, hooks, READ_BYTES)
    for name, state in zip(live(store), list(STATES.items())[1:], strict=True):
        assert (name, state_of(store)) == state
    assert hooks.points == POINTS


def test_whatever_a_step_changed_is_synced_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = f"blobs/{TENANT}"
    expected = {
        "begun": [".", "uploads"],
        "half": ["uploads/u1"],
        "whole": ["uploads/u1"],
        "finished": [".", "blobs", blobs, "uploads/u1", f"{blobs}/{HASH[:2]}", "uploads"],
        "another begun": ["uploads"],
        "another half": ["uploads/u2"],
        "discarded": ["uploads"],
        "deleted": [f"{blobs}/{HASH[:2]}"],
    }
    synced = watch_syncs(monkeypatch, tmp_path)
    for acknowledged in live(open_folder(tmp_path)):
        assert (acknowledged, synced) == (acknowledged, expected[acknowledged])
        synced.clear()


def test_what_a_killed_process_left_unsynced_is_synced_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_folder(tmp_path)
    store.begin_upload("u1")
    (tmp_path / "uploads" / "u1").write_bytes(FIRST)
    synced = watch_syncs(monkeypatch, tmp_path)
    assert store.size("u1") == len(FIRST)
    assert synced == ["uploads/u1"]


@pytest.mark.parametrize("number", range(len(POINTS)))
def test_killed_anywhere_a_store_is_in_the_old_state_or_the_new_one(
    tmp_path: Path, number: int
) -> None:
    acknowledged = killed_at(number, tmp_path)
    names = list(STATES)
    assert acknowledged == names[: len(acknowledged)]
    store = open_folder(tmp_path)
    found = state_of(store)
    assert found in {STATES[name] for name in names[len(acknowledged) - 1 :][:2]}
    if found[1] is not None:
        assert b"".join(store.open_range(TENANT, HASH)) == FIRST + SECOND


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 7, 8])
def test_killed_before_the_end_an_upload_goes_on_where_it_stands(
    tmp_path: Path, number: int
) -> None:
    killed_at(number, tmp_path)
    store = open_folder(tmp_path)
    store.begin_upload("u1")
    held = store.size("u1")
    assert held is not None
    store.append("u1", held, [(FIRST + SECOND)[held:]])
    store.finish("u1", TENANT, HASH)
    assert b"".join(store.open_range(TENANT, HASH)) == FIRST + SECOND


@contextmanager
def disk_full_at(size_bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    store = open_folder(tmp_path)
    content = bytes(3 << 20)
    store.begin_upload("u1")
    end = store.append("u1", 0, [content[: 1 << 20]])
    with disk_full_at(2 << 20), pytest.raises(BlobStoreUnavailableError):
        store.append("u1", end, [content[end:]])
    held = store.size("u1")
    assert held is not None
    assert end <= held <= 2 << 20
    store.append("u1", held, [content[held:]])
    store.finish("u1", TENANT, blake3(content).hexdigest())


def test_an_upload_has_one_writer_and_is_not_finished_under_it(tmp_path: Path) -> None:
    store, rival = open_folder(tmp_path), open_folder(tmp_path)
    store.begin_upload("u1")

    def chunks() -> Iterator[bytes]:
        yield FIRST
        with pytest.raises(UploadBusyError):
            rival.append("u1", 0, [SECOND])
        with pytest.raises(UploadBusyError):
            rival.finish("u1", TENANT, blake3(FIRST).hexdigest())
        yield SECOND

    store.append("u1", 0, chunks())
    assert rival.finish("u1", TENANT, HASH) == len(FIRST + SECOND)


def test_a_blob_cut_short_on_disk_is_healed_by_the_next_upload(tmp_path: Path) -> None:
    store = open_folder(tmp_path)
    for _ in range(2):
        store.begin_upload("u1")
        store.append("u1", 0, [FIRST, SECOND])
        store.finish("u1", TENANT, HASH)
        assert b"".join(store.open_range(TENANT, HASH)) == FIRST + SECOND
        (tmp_path / "blobs" / TENANT / HASH[:2] / HASH).write_bytes(FIRST)


def test_nobody_else_on_the_host_may_read_evidence(tmp_path: Path) -> None:
    store = open_folder(tmp_path / "a" / "b")
    store.begin_upload("u1")
    store.append("u1", 0, [FIRST, SECOND])
    store.finish("u1", TENANT, HASH)
    store.begin_upload("u2")
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "a").rglob("*")} == {0}
