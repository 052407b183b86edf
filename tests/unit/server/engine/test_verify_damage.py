"""A damaged database file is reported as that: no exception, and no guess at what it held."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.eventful import prepare
from support.tampering import opened_copy
from workmate_server.engine.verify import VerifyReport, verify
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.store.database import DatabaseDamagedError
from workmate_server.store.sqlite import SqliteDatabase

PAGE = 4096


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    asyncio.run(prepare(folder))
    return folder


def _verify(folder: Path) -> VerifyReport:
    keys = KeyFolder.open(folder / "keys")
    database = SqliteDatabase(folder / "office.db", keys.database_key)
    try:
        key = keys.log_key
        return verify(database, keys, {key.key_id: key.public_key})
    finally:
        database.close()


def _pages(prepared: Path) -> int:
    return (prepared / "office.db").stat().st_size // PAGE


def _assert_damaged(report: VerifyReport) -> None:
    assert report.findings
    assert {(f.place, f.fault) for f in report.findings} == {("database file", "damaged")}


@pytest.mark.parametrize("part", [index / 12 for index in range(12)])
@pytest.mark.parametrize("offset", [0, 1900, PAGE - 1])
def test_one_byte_of_any_page_is_reported(
    prepared: Path, tmp_path: Path, part: float, offset: int
) -> None:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "office.db"
    data = bytearray(file.read_bytes())
    data[int(part * _pages(prepared)) * PAGE + offset] ^= 1
    file.write_bytes(data)
    _assert_damaged(_verify(tmp_path))


def _overwrite(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes(3 * PAGE) + data[middle + 3 * PAGE :]


def _swap_pages(data: bytes) -> bytes:
    one, other = data[10 * PAGE : 11 * PAGE], data[20 * PAGE : 21 * PAGE]
    return data[: 10 * PAGE] + other + data[11 * PAGE : 20 * PAGE] + one + data[21 * PAGE :]


@pytest.mark.parametrize(
    "damage",
    [
        _overwrite,
        _swap_pages,
        lambda data: data[: len(data) // 2],
        lambda data: data[:-100],
        lambda data: data + bytes(PAGE),
        lambda _: b"",
        lambda data: bytes(len(data)),
        lambda data: b"SQLite format 3\x00" + data[16:],
    ],
)
def test_larger_damage_is_reported(
    prepared: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "office.db"
    file.write_bytes(damage(file.read_bytes()))
    _assert_damaged(_verify(tmp_path))


def test_a_damaged_file_says_nothing_on_the_console(
    prepared: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "office.db"
    file.write_bytes(_overwrite(file.read_bytes()))
    _assert_damaged(_verify(tmp_path))
    assert capfd.readouterr() == ("", "")


def test_reading_a_damaged_file_raises_damage_and_not_absence(
    prepared: Path, tmp_path: Path
) -> None:
    with opened_copy(prepared, tmp_path) as log:
        file = tmp_path / "office.db"
        log.database.close()
        data = file.read_bytes()
        file.write_bytes(data[:PAGE] + bytes(len(data) - PAGE))
        with pytest.raises(DatabaseDamagedError):
            log.rows("audit_event")


def test_an_emptied_column_that_its_table_forbids_is_reported_by_its_name(
    prepared: Path, tmp_path: Path
) -> None:
    with opened_copy(prepared, tmp_path) as log:
        with log.database.write() as connection:
            schema = "SELECT sql FROM sqlite_master WHERE name = 'feed'"
            whole = connection.exec_driver_sql(schema).scalar_one()
            for sql in (whole.replace(" NOT NULL", ""), whole):
                connection.exec_driver_sql("PRAGMA writable_schema=ON")
                connection.exec_driver_sql(
                    "UPDATE sqlite_master SET sql = ? WHERE name = 'feed'", (sql,)
                )
                connection.exec_driver_sql("PRAGMA writable_schema=RESET")
                if sql != whole:
                    connection.exec_driver_sql("UPDATE feed SET seq = NULL WHERE rowid = 1")
        (found,) = log.verify().findings
        assert (found.place, found.detail) == ("database file", "NULL value in feed.seq")
