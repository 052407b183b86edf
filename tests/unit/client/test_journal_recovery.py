"""A damaged, missing or half-written journal is rebuilt, the worker is told, and nothing is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from support.laptop import KEYS, TASK, Laptop, laptop, machine_for_tests
from workmate_client.bootstrap import open_device
from workmate_client.config import ProfilePaths
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.recovery import StoreKeyError
from workmate_client.journal.store_errors import (
    SqliteTooOldError,
    StoreTooNewError,
    check_sqlite,
)
from workmate_client.ports import StorageError
from workmate_client.service import acts, proof, submission
from workmate_client.service.outbox import device_status
from workmate_client.service.photos import add_photo

PAGE = 4096


def flip_pages(path: Path) -> None:
    """Change a byte in every second page but the first."""
    data = bytearray(path.read_bytes())
    for start in range(PAGE, len(data), 2 * PAGE):
        data[start + 100] ^= 1
    path.write_bytes(data)


def fill_with_noise(path: Path) -> None:
    path.write_bytes(b"not a database" * 5000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_in_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 // PAGE * PAGE])


def remove(path: Path) -> None:
    path.unlink()


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    """A laptop on which something of every kind has been done."""
    made = laptop(tmp_path / "profile")
    acts.accept(made.device, TASK)
    made.answer_all()
    made.pull()
    acts.start_travel(made.device, TASK)
    acts.arrive(made.device, TASK, no_fix_reason="indoors")
    proof.answer(made.device, TASK, "volts", "231")
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(b"\xff\xd8\xff" + bytes(1000))
    add_photo(made.device, TASK, photo)
    return made


@pytest.mark.parametrize("damage", [flip_pages, fill_with_noise, empty, cut_in_half, remove])
def test_whatever_happens_to_the_database_no_act_and_no_file_is_lost_and_the_worker_is_told(
    it: Laptop, damage: Callable[[Path], None]
) -> None:
    before = it.device.journal.pending()
    profile = it.device.profile()
    files = {item.hash for item in it.device.journal.evidence()}
    it.device.close()
    damage(it.folder / "journal.db")
    journal = it.reopen().journal
    assert "journal_rebuilt" in [notice.code for notice in journal.notices()]
    pending = {command.command_id: command.parts for command in journal.pending()}
    assert {c.command_id: c.parts for c in before}.items() <= pending.items()
    assert {item.hash for item in journal.evidence()} >= files
    found = journal.profile()
    assert found is not None
    assert replace(found, answered_before=()) == profile
    assert journal.conservation().holds
    draft = proof.proof_status(it.device, TASK).draft
    assert draft.answers == {"volts": "231"}
    assert [photo.slot for photo in draft.photos] == ["after"]
    assert [(i.task_id, i.slot) for i in journal.evidence()] == [(TASK, "after")]
    assert any("has been rebuilt" in notice for notice in device_status(it.device).notices)
    kept = [path for path in it.folder.iterdir() if path.name.endswith(".damaged")]
    assert bool(kept) == (damage not in (empty, remove))
    # Work goes on where it stood.
    done = submission.note(it.device, TASK, "still here")
    assert done.command is not None
    assert done.command.device_seq == 4


def test_rows_that_can_still_be_read_are_taken_over_from_the_damaged_file(it: Laptop) -> None:
    for number in range(200):
        it.device.journal.save_draft(f"task-{number}", "note", bytes(500))
    outcomes = [c.outcome for c in it.device.journal.commands() if c.outcome]
    it.device.close()
    path = it.folder / "journal.db"
    data = bytearray(path.read_bytes())
    data[len(data) * 3 // 4 // PAGE * PAGE + 10] ^= 1
    path.write_bytes(data)
    journal = it.reopen().journal
    assert "journal_rebuilt" in [notice.code for notice in journal.notices()]
    assert len(journal.drafts()) > 100
    assert [c.outcome for c in journal.commands() if c.outcome] == outcomes
    assert journal.conservation().holds


def test_a_truncated_write_ahead_log_costs_no_act(it: Laptop) -> None:
    before = it.device.journal.pending()
    wal = it.folder / "journal.db-wal"
    copy = it.folder.parent / "copy"
    copy.mkdir()
    for path in it.folder.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    it.device.close()
    for path in copy.iterdir():
        (it.folder / path.name).write_bytes(path.read_bytes())
    wal.write_bytes(wal.read_bytes()[:10_000])
    (it.folder / "journal.db-shm").unlink()
    journal = it.reopen().journal
    assert {c.command_id for c in before} <= {c.command_id for c in journal.pending()}
    assert "acts_recovered" in [notice.code for notice in journal.notices()]
    assert journal.profile() is not None


def test_a_damaged_unsent_log_is_put_aside_and_written_anew_from_the_database(it: Laptop) -> None:
    path = it.folder / "unsent.log"
    it.device.close()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    journal = it.reopen().journal
    assert "unsent_log_damaged" in [notice.code for notice in journal.notices()]
    assert list(it.folder.glob("unsent.log.*.damaged"))
    pending = [c.command_id for c in journal.pending()]
    it.device.close()
    remove(it.folder / "journal.db")
    assert [c.command_id for c in it.reopen().journal.pending()] == pending


def test_the_keys_of_another_profile_touch_nothing(it: Laptop) -> None:
    it.device.close()
    before = {p.name: p.read_bytes() for p in it.folder.iterdir() if p.is_file()}
    with pytest.raises(StoreKeyError):
        open_device(machine_for_tests(), ProfilePaths(it.folder), ProfileKeys(bytes(32), bytes(32)))
    after = {p.name: p.read_bytes() for p in it.folder.iterdir() if p.is_file()}
    assert {name: after[name] for name in ("journal.db", "unsent.log", "replica.db")} == {
        name: before[name] for name in ("journal.db", "unsent.log", "replica.db")
    }
    assert it.reopen().journal.notices() == ()


def test_a_journal_of_a_newer_program_is_refused_and_left_as_it_is(it: Laptop) -> None:
    with it.device.journal._database.write() as connection:
        connection.exec_driver_sql("PRAGMA user_version=99")
    it.device.close()
    with pytest.raises(StoreTooNewError, match="99"):
        it.reopen()
    assert not list(it.folder.glob("*.damaged"))


def test_a_journal_that_vanishes_while_it_is_open_does_not_come_back_empty(it: Laptop) -> None:
    path = it.folder / "journal.db"
    path.rename(it.folder / "elsewhere")
    with pytest.raises(StorageError) as raised:
        it.device.journal.pending()
    assert raised.value.code == "file_missing"
    assert not path.exists()


def test_a_sealed_file_that_no_row_names_is_listed_again(it: Laptop) -> None:
    sealed = it.device.sealed.import_bytes(b"\x89PNG\r\n\x1a\n and more")
    journal = it.reopen().journal
    found = [item for item in journal.evidence() if item.kind == "found"]
    assert [(item.hash, item.sealed_name, item.media_type) for item in found] == [
        (sealed.hash, sealed.name, "image/png")
    ]
    assert [notice.code for notice in journal.notices()] == ["evidence_found"]


def test_a_found_file_is_described_by_the_proof_that_names_it(it: Laptop) -> None:
    submission.submit_proof(it.device, TASK, incomplete=True)
    (before,) = it.device.journal.evidence()
    with it.device.journal._database.write() as connection:
        connection.exec_driver_sql("DELETE FROM evidence_item")
    (after,) = it.reopen().journal.evidence()
    assert (after.task_id, after.kind, after.slot, after.hash) == (
        before.task_id,
        before.kind,
        before.slot,
        before.hash,
    )


def test_a_row_whose_file_is_gone_is_set_aside_and_told(it: Laptop) -> None:
    (item,) = it.device.journal.evidence()
    it.device.close()
    (it.folder / "evidence" / f"{item.sealed_name}.sealed").unlink()
    journal = it.reopen().journal
    (after,) = journal.evidence()
    assert after.quarantined == "sealed_file_missing"
    assert [notice.code for notice in journal.notices()] == ["evidence_missing"]
    journal.dismiss_notice(journal.notices()[0].notice_id)
    assert it.reopen().journal.notices() == ()


def test_nothing_that_the_worker_typed_lies_readable_on_the_disk(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    submission.note(it.device, TASK, "canary of the note")
    proof.sign(it.device, TASK, "worker", name="Canary Signer")
    it.device.journal.add_notice("canary", "canary in a notice")
    content = [path.read_bytes() for path in it.folder.rglob("*") if path.is_file()]
    it.device.close()
    content += [path.read_bytes() for path in it.folder.rglob("*") if path.is_file()]
    for needle in (b"anary", b"Depot", b"SQLite format", KEYS.journal_key):
        assert not any(needle in data for data in content)


def test_an_sqlite_that_can_lose_data_is_refused() -> None:
    with pytest.raises(SqliteTooOldError, match=r"3\.51\.2"):
        check_sqlite((3, 51, 2))
    check_sqlite((3, 51, 3))


def test_connections_sync_fully_write_ahead_and_check_references(it: Laptop) -> None:
    with it.device.journal._database.connected() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "user_version")
        }
        tables = connection.exec_driver_sql("PRAGMA table_list").mappings().all()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "user_version": 1}
    own = [table for table in tables if not table["name"].startswith("sqlite_")]
    assert own
    assert all(table["strict"] for table in own)
