"""Durable file operations on the real disk, with faults put in through the hook."""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.device import failing_at
from workmate_client.journal.files import PosixFiles
from workmate_client.ports import StorageError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_new_file_is_written_synced_named_and_its_name_synced_in_this_order(
    tmp_path: Path,
) -> None:
    points: list[str] = []
    files = PosixFiles(lambda point, _: points.append(point))
    files.write_new(tmp_path / "a", [b"one ", b"two"], label="x")
    assert (tmp_path / "a").read_bytes() == b"one two"
    assert [point for point in points if point.endswith("before")] == [
        "x.create.before",
        "x.write.before",
        "x.write.before",
        "x.fsync.before",
        "x.rename.before",
        "x.fsync_folder.before",
    ]
    assert points[1::2] == [point.replace("before", "after") for point in points[::2]]


def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(StorageError) as caught:
        PosixFiles().write_new(tmp_path / "a", [b"new"], label="x")
    assert caught.value.code == "file_exists"
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_disk_without_hard_links_still_takes_new_files_and_refuses_used_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(_path: Path, _target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    PosixFiles().write_new(tmp_path / "a", [b"first"], label="x")
    with pytest.raises(StorageError) as caught:
        PosixFiles().write_new(tmp_path / "a", [b"second"], label="x")
    assert caught.value.code == "file_exists"
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"first"


def test_replacing_puts_the_new_content_in_place_of_the_old(tmp_path: Path) -> None:
    files = PosixFiles()
    files.replace(tmp_path / "a", [b"first"], label="x")
    files.replace(tmp_path / "a", [b"second"], label="x")
    assert files.read(tmp_path / "a") == b"second"
    assert files.names(tmp_path) == ["a"]


def test_files_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    files = PosixFiles()
    files.make_folder(tmp_path / "inner", label="x")
    files.write_new(tmp_path / "inner" / "a", [b"1"], label="x")
    files.append(tmp_path / "inner" / "b", b"1", label="x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("inner/a", "inner/b")]
    assert modes == [0o600, 0o600]
    assert stat.S_IMODE((tmp_path / "inner").stat().st_mode) == 0o700


def test_appending_adds_at_the_end_and_syncs_a_new_files_name_before_its_content(
    tmp_path: Path,
) -> None:
    points: list[str] = []
    files = PosixFiles(lambda point, _: points.append(point))
    files.append(tmp_path / "a", b"one ", label="x")
    first = points[::2]
    points.clear()
    files.append(tmp_path / "a", b"two", label="x")
    assert files.read(tmp_path / "a") == b"one two"
    steps = ("create", "fsync_folder", "write", "fsync")
    assert first == [f"x.{step}.before" for step in steps]
    assert points[::2] == ["x.create.before", "x.write.before", "x.fsync.before"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EROFS, "store_read_only"),
        (errno.EACCES, "store_denied"),
        (errno.EIO, "store_failed"),
    ],
)
@pytest.mark.parametrize("step", ["create", "write", "fsync", "rename"])
def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, step: str, number: int, code: str
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    files = PosixFiles(failing_at(f"x.{step}.before", number))
    with pytest.raises(StorageError) as caught:
        files.replace(tmp_path / "a", [b"new"], label="x")
    assert caught.value.code == code
    assert caught.value.path == tmp_path / "a"
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_what_the_content_raises_passes_through_and_leaves_nothing(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"one"
        raise LookupError("interrupted")

    with pytest.raises(LookupError, match="interrupted"):
        PosixFiles().write_new(tmp_path / "a", chunks(), label="x")
    assert names(tmp_path) == []


def test_a_file_that_was_never_finished_is_known_by_its_name(tmp_path: Path) -> None:
    files = PosixFiles()
    seen: list[str] = []

    def chunks() -> Iterator[bytes]:
        seen.extend(files.names(tmp_path))
        yield b""

    files.write_new(tmp_path / "a", chunks(), label="x")
    assert [files.is_temporary(name) for name in (*seen, "a")] == [True, False]


def test_cutting_keeps_the_first_bytes(tmp_path: Path) -> None:
    files = PosixFiles()
    files.append(tmp_path / "a", b"0123456789", label="x")
    files.truncate(tmp_path / "a", 4, label="x")
    assert files.read(tmp_path / "a") == b"0123"


def test_removing_twice_is_as_good_as_once(tmp_path: Path) -> None:
    files = PosixFiles()
    files.append(tmp_path / "a", b"1", label="x")
    files.remove(tmp_path / "a", label="x")
    files.remove(tmp_path / "a", label="x")
    assert files.names(tmp_path) == []


def test_a_folder_is_made_with_its_parents_and_every_new_name_is_synced(tmp_path: Path) -> None:
    synced: list[Path] = []
    files = PosixFiles(lambda p, path: synced.append(path) if p == "x.fsync_folder.after" else None)
    files.make_folder(tmp_path / "a" / "b", label="x")
    files.make_folder(tmp_path / "a" / "b", label="x")
    assert (tmp_path / "a" / "b").is_dir()
    assert synced[-3:] == [tmp_path, tmp_path / "a", tmp_path / "a"]


def test_a_range_is_cut_at_the_files_end(tmp_path: Path) -> None:
    files = PosixFiles()
    files.append(tmp_path / "a", b"0123456789", label="x")
    assert files.read_range(tmp_path / "a", 2, 3) == b"234"
    assert files.read_range(tmp_path / "a", 8, 100) == b"89"
    assert files.read_range(tmp_path / "a", 100, 1) == b""


def test_what_is_missing_has_no_state_and_cannot_be_read(tmp_path: Path) -> None:
    files = PosixFiles()
    assert files.state(tmp_path / "a") is None
    assert files.names(tmp_path / "none") == []
    with pytest.raises(StorageError) as caught:
        files.read(tmp_path / "a")
    assert caught.value.code == "file_missing"


def test_states_tell_files_folders_and_pipes_apart(tmp_path: Path) -> None:
    files = PosixFiles()
    (tmp_path / "file").write_bytes(b"12")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    states = {name: files.state(tmp_path / name) for name in files.names(tmp_path)}
    kinds = {name: state.kind for name, state in states.items() if state}
    assert kinds == {"file": "file", "folder": "folder", "pipe": "other", "link": "file"}
    assert states["file"] == states["link"]


def test_reading_a_pipe_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError):
        PosixFiles().read_range(tmp_path / "pipe", 0, 10)


def test_a_lock_keeps_others_out_until_it_is_given_back(tmp_path: Path) -> None:
    files = PosixFiles()
    path = tmp_path / "a.lock"
    with files.locked(path, timeout_seconds=0.0):
        with pytest.raises(StorageError) as caught, files.locked(path, timeout_seconds=0.0):
            pass
        assert caught.value.code == "file_busy"
    with files.locked(path, timeout_seconds=0.0):
        pass


def test_a_thread_that_waits_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    files = PosixFiles()
    path = tmp_path / "a.lock"
    order: list[str] = []

    def second() -> None:
        with files.locked(path, timeout_seconds=60.0):
            order.append("second")

    with files.locked(path, timeout_seconds=0.0):
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_folder_that_is_missing_or_free_space_is_told(tmp_path: Path) -> None:
    files = PosixFiles()
    assert files.free_bytes(tmp_path) > 0
    for ask in (files.free_bytes, lambda path: files.fsync_folder(path, label="x")):
        with pytest.raises(StorageError) as caught:
            ask(tmp_path / "none")
        assert caught.value.code == "file_missing"
