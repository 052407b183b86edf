"""The replica holds what the server said, page by page, and is dropped rather than believed damaged."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from support.commands import DISCLOSURES, TASK
from support.contexts import walk_to
from support.laptop import KEYS, LAPTOP_SETTINGS
from workmate_client.config import ProfilePaths
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.store_errors import StoreTooNewError
from workmate_client.replica.store import PageDoesNotJoinError, Replica
from workmate_shared.wire.messages import Change, Pull


def open_replica(folder: Path) -> Replica:
    return Replica.open(ProfilePaths(folder), KEYS, files=PosixFiles(), settings=LAPTOP_SETTINGS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "profile"


def shown(task_id: str, seq: int, state: str = "assigned") -> Change:
    task = replace(walk_to(state), task_id=task_id)
    return Change(kind="task", id=task_id, seq=seq, task=task, disclosures=DISCLOSURES)


def gone(task_id: str, seq: int, why: str) -> Change:
    return Change(kind="task", id=task_id, seq=seq, removed=why)


def page(since: str | None, cursor: str, *changes: Change, more: bool = False) -> Pull:
    return Pull(changes=changes, since=since, cursor=cursor, more=more)


def test_rows_and_cursor_come_back_as_they_were_applied(folder: Path) -> None:
    replica = open_replica(folder)
    assert (replica.cursor(), replica.tasks(), replica.is_complete()) == (None, (), False)
    assert replica.apply_page(page(None, "c1", shown(TASK, 3), more=True)) == 1
    assert not replica.is_complete()
    replica.apply_page(page("c1", "c2", shown("task-2", 4)))
    replica.close()
    replica = open_replica(folder)
    assert (replica.cursor(), replica.is_complete(), replica.dropped) == ("c2", True, None)
    held = replica.task(TASK)
    assert held is not None
    assert (held.task, held.seq, held.disclosures) == (walk_to("assigned"), 3, DISCLOSURES)
    assert [task.task.task_id for task in replica.tasks()] == sorted([TASK, "task-2"])


@pytest.mark.parametrize("since", [None, "c0", "c2"])
def test_a_page_that_does_not_join_changes_nothing(folder: Path, since: str | None) -> None:
    replica = open_replica(folder)
    replica.apply_page(page(None, "c1", shown(TASK, 1)))
    with pytest.raises(PageDoesNotJoinError):
        replica.apply_page(page(since, "c9", shown("task-2", 2)))
    with pytest.raises(PageDoesNotJoinError):
        replica.apply_page(Pull(since="c1"))
    assert replica.cursor() == "c1"
    assert [task.task.task_id for task in replica.tasks()] == [TASK]


def test_the_same_page_twice_is_refused_the_second_time(folder: Path) -> None:
    replica = open_replica(folder)
    first = page(None, "c1", shown(TASK, 1))
    replica.apply_page(first)
    with pytest.raises(PageDoesNotJoinError):
        replica.apply_page(first)


def test_a_newer_state_replaces_the_older_one_with_all_its_values(folder: Path) -> None:
    replica = open_replica(folder)
    replica.apply_page(page(None, "c1", shown(TASK, 1)))
    purged = replace(shown(TASK, 2, "accepted"), disclosures={})
    replica.apply_page(page("c1", "c2", purged))
    held = replica.task(TASK)
    assert held is not None
    assert (held.task.state, held.disclosures) == ("accepted", {})


def test_a_task_that_leaves_sight_keeps_its_public_state_and_loses_its_values(
    folder: Path,
) -> None:
    replica = open_replica(folder)
    replica.apply_page(page(None, "c1", shown(TASK, 1)))
    replica.apply_page(page("c1", "c2", gone(TASK, 2, "reassigned"), gone("never", 2, "released")))
    held = replica.task(TASK)
    assert held is not None
    assert (held.removed, held.disclosures, held.task) == ("reassigned", {}, walk_to("assigned"))
    assert replica.task("never") is None
    replica.apply_page(page("c2", "c3", shown(TASK, 3)))
    held = replica.task(TASK)
    assert held is not None
    assert held.removed is None


def test_a_fresh_snapshot_keeps_the_old_rows_until_its_last_page_and_then_only_its_own(
    folder: Path,
) -> None:
    replica = open_replica(folder)
    replica.apply_page(page(None, "c1", shown("old", 1), shown("both", 2)))
    replica.start_snapshot()
    assert replica.cursor() is None
    replica.apply_page(page(None, "n1", shown("both", 5), more=True))
    assert {t.task.task_id for t in replica.tasks()} == {"old", "both"}
    replica.close()
    replica = open_replica(folder)
    replica.apply_page(page("n1", "n2", shown("new", 6)))
    assert {t.task.task_id for t in replica.tasks()} == {"both", "new"}
    replica.apply_page(page("n2", "n3", shown("newest", 7)))
    assert {t.task.task_id for t in replica.tasks()} == {"both", "new", "newest"}


@pytest.mark.parametrize("damage", [b"", b"noise" * 4000, None])
def test_a_damaged_replica_is_dropped_and_begun_anew(folder: Path, damage: bytes | None) -> None:
    replica = open_replica(folder)
    replica.apply_page(page(None, "c1", shown(TASK, 1)))
    replica.close()
    path = folder / "replica.db"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data) if damage is None else damage)
    replica = open_replica(folder)
    assert (replica.cursor(), replica.tasks()) == (None, ())
    assert (replica.dropped is not None) == (damage != b"")
    replica.apply_page(page(None, "c1", shown(TASK, 1)))
    assert not list(folder.glob("*.new*"))


def test_a_replica_of_a_newer_program_is_refused_and_left_as_it_is(folder: Path) -> None:
    replica = open_replica(folder)
    with replica._database.write() as connection:
        connection.exec_driver_sql("PRAGMA user_version=2")
    replica.close()
    with pytest.raises(StoreTooNewError):
        open_replica(folder)


def test_who_has_the_dropped_replica_open_goes_on_with_the_new_one(folder: Path) -> None:
    screen, daemon = open_replica(folder), open_replica(folder)
    screen.apply_page(page(None, "c1", shown(TASK, 1)))
    assert daemon.cursor() == "c1"
    with daemon._database.locked():
        daemon._database.drop()
    assert not (folder / "replica.db").exists()
    open_replica(folder)
    assert screen.cursor() is None
    screen.apply_page(page(None, "c2", shown(TASK, 1)))
    assert daemon.cursor() == "c2"
