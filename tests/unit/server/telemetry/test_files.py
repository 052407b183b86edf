"""Files are whole or untouched, names are one part of a path."""

from pathlib import Path

import pytest

from support.syncs import watch_syncs
from workmate_server.telemetry.files import checked_name, make_folder, remove_file, write_file


def test_a_written_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    write_file(path, b"old, and longer")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_file_and_folder_are_synced_whenever_a_name_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = watch_syncs(monkeypatch, tmp_path)
    make_folder(tmp_path / "a" / "b")
    assert synced == [".", "a"]
    write_file(tmp_path / "a" / "b" / "file", b"new")
    [written, folder] = synced[2:]
    assert written.startswith("a/b/.file.")
    assert folder == "a/b"
    remove_file(tmp_path / "a" / "b" / "file")
    assert synced[4:] == ["a/b"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "taken", b"new")
    assert list(tmp_path.iterdir()) == [tmp_path / "taken"]


def test_missing_folders_are_made_for_one_user(tmp_path: Path) -> None:
    for _ in range(2):
        make_folder(tmp_path / "a" / "b")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700] * 2


def test_removing_a_file_twice_is_removing_it(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    path.touch()
    for _ in range(2):
        remove_file(path)
    assert not path.exists()


@pytest.mark.parametrize("name", ["a", "0", "A.b-c_d:e@f", "x" * 128])
def test_an_id_is_a_name(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".a", "-a", "a/b", "a\\b", "a\n", "é", "x" * 129])
def test_what_could_lead_elsewhere_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        checked_name(name)
