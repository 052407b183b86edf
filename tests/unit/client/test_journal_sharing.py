"""Screen and daemon work on one journal at the same time, and lose nothing to each other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import support
from support.laptop import LAPTOP_SETTINGS, TASK, Laptop, laptop, machine_for_tests
from workmate_client.journal.store_errors import StoreBusyError
from workmate_client.service import acts, submission

ACTS = 25


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    tests = Path(support.__path__[0]).parent
    return subprocess.Popen(
        [sys.executable, "-m", "support.busy_writer", str(folder), name, str(ACTS)],
        env={**os.environ, "PYTHONPATH": str(tests)},
        stdout=subprocess.PIPE,
    )


def test_two_processes_that_write_at_once_lose_no_act_and_use_no_number_twice(
    tmp_path: Path,
) -> None:
    it = laptop(tmp_path / "profile")
    writers = [start(it.folder, name) for name in ("screen", "daemon")]
    # Meanwhile a long reader.
    with it.device.journal._database.read() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM queued_command").scalar_one()
        told = [json.loads(writer.communicate()[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    saved = {name: seq for acts_of_one in told for seq, name in acts_of_one}
    assert sorted(saved.values()) == list(range(1, 2 * ACTS + 1))
    journal = it.reopen().journal
    assert {c.command_id: c.device_seq for c in journal.pending()} == saved
    assert journal.conservation().holds
    draft = journal.draft(TASK, "shared")
    assert draft is not None
    assert draft.content == b"." * (2 * ACTS)
    assert journal.notices() == ()


def test_two_openers_of_one_journal_see_each_others_acts(tmp_path: Path) -> None:
    screen = laptop(tmp_path / "profile")
    daemon = Laptop(screen.folder, screen.story)
    acts.accept(screen.device, TASK)
    assert [c.name for c in daemon.device.journal.pending()] == ["accept"]
    daemon.answer_all()
    assert screen.device.journal.pending() == ()
    assert submission.note(screen.device, TASK, "seen").command is not None


def test_a_writer_that_waits_too_long_is_told_so_and_has_changed_nothing(tmp_path: Path) -> None:
    it = laptop(tmp_path / "profile")
    settings = replace(LAPTOP_SETTINGS, database_busy_timeout_seconds=0.05)
    it.reopen(machine_for_tests(settings=settings))
    database = it.device.journal._database
    with database.connected() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError):
            acts.accept(it.device, TASK)
        connection.rollback()
    assert it.device.journal.pending() == ()
    assert acts.accept(it.device, TASK).state == "accepted"
