"""Files that workers point at: which are taken, which are refused, and why."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.device import PIECE, SteppingClock, quick_settings, sealed_folder
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.source import SourceError
from workmate_client.ports import Files, StorageError

LIMIT = quick_settings().evidence_file_limit_bytes


def refused(
    path: Path,
    clock: SteppingClock | None = None,
    files: Files | None = None,
    during: Callable[[], None] = lambda: None,
) -> str:
    """Return the code with which a file is refused, after checking that nothing was added."""
    folder = path.parent / "evidence"
    with pytest.raises(SourceError) as caught:
        sealed_folder(folder, files, clock).import_file(path, lambda *_: during())
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert not folder.exists() or list(folder.iterdir()) == []
    return caught.value.code


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "device"):
        assert refused(tmp_path / name) == "source_not_a_file"


def test_a_missing_or_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "dangling.jpg").symlink_to(tmp_path / "none")
    assert refused(tmp_path / "none.jpg") == "source_missing"
    assert refused(tmp_path / "dangling.jpg") == "source_missing"
    assert refused(tmp_path / "empty.jpg") == "source_empty"


def test_a_file_of_the_largest_size_is_taken_and_a_larger_one_refused(tmp_path: Path) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(bytes(LIMIT + 1))
    assert refused(source) == "source_too_large"
    source.write_bytes(bytes(LIMIT))
    assert sealed_folder(tmp_path / "evidence").import_file(source).size_bytes == LIMIT


def test_a_link_to_a_file_is_taken_as_the_file(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"pixels")
    (tmp_path / "link.jpg").symlink_to(tmp_path / "photo.jpg")
    assert sealed_folder(tmp_path / "evidence").import_file(tmp_path / "link.jpg").size_bytes == 6


@pytest.mark.parametrize("operation", ["state", "read_range"])
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(b"pixels")
    files = PosixFiles()
    real = getattr(files, operation)

    def denied(path: Path, *rest: int) -> object:
        if path == source:
            raise StorageError("store_denied", path, "Permission denied")
        return real(path, *rest)

    monkeypatch.setattr(files, operation, denied)
    assert refused(source, files=files) == "source_unreadable"


def test_a_file_that_is_still_being_written_is_waited_for(tmp_path: Path) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(b"1")
    parts = [b"2", b"3", b""]

    def camera() -> None:
        with source.open("ab") as file:
            file.write(parts.pop(0))

    kept = sealed_folder(tmp_path / "evidence", clock=SteppingClock(camera)).import_file(source)
    assert kept.size_bytes == 3
    assert parts == []


def test_an_empty_file_that_fills_while_we_wait_is_taken(tmp_path: Path) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(b"")
    clock = SteppingClock(lambda: None if source.stat().st_size else void(source.write_bytes(b"1")))
    assert sealed_folder(tmp_path / "evidence", clock=clock).import_file(source).size_bytes == 1


def void(_: object) -> None:
    """Take a value and give none."""


def test_a_file_that_never_stands_still_is_refused_after_the_time_allowed(tmp_path: Path) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(b"1")

    def recorder() -> None:
        with source.open("ab") as file:
            file.write(b"1")

    clock = SteppingClock(recorder)
    assert refused(source, clock) == "source_changing"
    timeout = quick_settings().evidence_settle_timeout_seconds
    assert timeout <= clock.seconds <= timeout + 1


def lengthened(source: Path) -> None:
    with source.open("ab") as file:
        file.write(b"x")


def cut(source: Path) -> None:
    os.truncate(source, PIECE)


def overwritten(source: Path) -> None:
    changed_ns = source.stat().st_mtime_ns
    with source.open("r+b") as file:
        file.write(b"x")
    os.utime(source, ns=(changed_ns, changed_ns + 1))


def exchanged(source: Path) -> None:
    state = source.stat()
    other = source.with_name("other.jpg")
    other.write_bytes(bytes(state.st_size))
    os.utime(other, ns=(state.st_mtime_ns, state.st_mtime_ns))
    other.replace(source)


@pytest.mark.parametrize("change", [lengthened, cut, overwritten, exchanged])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(bytes(4 * PIECE))
    assert refused(source, during=lambda: change(source)) == "source_changed"


def test_a_file_that_vanishes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(bytes(4 * PIECE))
    assert refused(source, during=lambda: source.unlink(missing_ok=True)) == "source_unreadable"
