"""A database that fails because the disk is full says that, and not that the disk is broken."""

from pathlib import Path

import pytest
from sqlcipher3 import dbapi2

from support.laptop import TASK, laptop
from workmate_client.journal.database import Database
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.store_errors import ROOM_BYTES, translated
from workmate_client.ports import StorageError
from workmate_client.service import acts, jobs, outbox


class Room(PosixFiles):
    """A real disk that tells how much is free as the test wants it."""

    def __init__(self, free: int) -> None:
        super().__init__()
        self._free = free

    def free_bytes(self, folder: Path) -> int:
        assert folder.is_dir()
        return self._free


@pytest.mark.parametrize(
    ("free", "code"),
    [(0, "disk_full"), (ROOM_BYTES - 1, "disk_full"), (ROOM_BYTES, "store_failed")],
)
def test_an_error_of_the_disk_with_no_room_left_is_a_full_disk(
    tmp_path: Path, free: int, code: str
) -> None:
    error = dbapi2.OperationalError("disk I/O error")
    error.sqlite_errorcode = dbapi2.SQLITE_IOERR | (19 << 8)
    found = translated(error, tmp_path / "journal.db", Room(free))
    assert isinstance(found, StorageError)
    assert found.code == code


def no_room(database: Database) -> None:
    """Fail as SQLite does where its side files cannot be made."""
    raise StorageError("disk_full", database.path, "disk I/O error")


def test_on_a_full_disk_what_is_there_can_be_read_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = laptop(tmp_path / "profile")
    acts.accept(it.device, TASK)
    it.device.close()
    before = (it.folder / "journal.db").read_bytes()
    really_check = Database.check

    def check(database: Database) -> None:
        if not database._frozen:
            no_room(database)
        really_check(database)

    monkeypatch.setattr(Database, "check", check)
    it.reopen()
    assert outbox.device_status(it.device).counts.pending == 1
    assert [line.task_id for line in jobs.list_jobs(it.device)] == [TASK]
    with pytest.raises(StorageError) as raised:
        acts.start_travel(it.device, TASK)
    assert raised.value.code == "disk_full"
    it.device.close()
    assert (it.folder / "journal.db").read_bytes() == before
    monkeypatch.undo()
    assert acts.start_travel(it.reopen(), TASK).state == "en_route"
