"""The demo as a stranger runs it, and its checker on folders that somebody tampered with."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlcipher3 import dbapi2

from support.demo import INPUTS, check, run_demo
from workmate_client.bootstrap import safes_of, this_machine
from workmate_client.config import ProfilePaths
from workmate_client.demo.places import Places


@pytest.fixture(scope="module", params=INPUTS, ids=lambda chosen: chosen.name)
def kept(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("demo") / "kept"
    finished = run_demo(folder, request.param)
    assert finished.returncode == 0, finished.stderr
    return folder, json.loads(finished.stdout.splitlines()[-1])


def test_every_invariant_holds_and_every_fault_is_shown(
    kept: tuple[Path, dict[str, Any]],
) -> None:
    _, figures = kept
    assert figures["lost"] == figures["duplicated"] == 0
    assert figures["log_verified"] is True
    for name in ("replayed", "conflicts", "handovers", "rejections", "cancelled", "photos"):
        assert figures[name] >= 1
    assert figures["completed"] == figures["tasks"] - figures["cancelled"]


def test_the_checker_alone_comes_to_the_same_figures(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, figures = kept
    finished = check(folder)
    assert finished.returncode == 0
    assert json.loads(finished.stdout) == figures


def test_a_command_taken_out_of_a_journal_is_lost_and_an_event_written_twice_is_doubled(
    kept: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = kept
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    _forget_one_command(copy)
    lines = (copy / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (copy / "log.jsonl").write_text("".join([*lines[:40], lines[39], *lines[40:]]))
    finished = check(copy)
    figures = json.loads(finished.stdout)
    assert (figures["lost"], figures["duplicated"]) == (1, 1)
    assert finished.returncode == 1


def test_a_log_that_was_cut_off_or_changed_is_found_out(
    kept: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = kept
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    lines = (copy / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (copy / "log.jsonl").write_text("".join(lines[:-3]), encoding="utf-8")
    cut = check(copy)
    assert json.loads(cut.stdout)["lost"] == 3
    changed = lines[30].replace("recorded_at", "recorded_on", 1)
    (copy / "log.jsonl").write_text("".join([*lines[:30], changed, *lines[31:]]), encoding="utf-8")
    assert [cut.returncode, check(copy).returncode] == [1, 1]


def test_a_folder_that_is_no_demo_is_refused_in_one_sentence(tmp_path: Path) -> None:
    finished = check(tmp_path)
    assert finished.returncode == 2
    assert "no kept demo" in finished.stderr
    assert "Traceback" not in finished.stderr


def _forget_one_command(folder: Path) -> None:
    about = Places(folder).read_about()
    laptop = ProfilePaths(folder / min(about["workers"]))
    keys = safes_of(this_machine(), laptop, lambda: about["passphrase"]).find().load()
    connection = dbapi2.connect(str(laptop.journal))
    connection.execute(f"PRAGMA key = \"x'{keys.journal_key.hex()}'\"")
    (chosen,) = connection.execute(
        "SELECT command_id FROM queued_command WHERE name = 'accept' ORDER BY device_seq LIMIT 1"
    ).fetchone()
    for table in ("recorded_outcome", "queued_command"):
        connection.execute(f"DELETE FROM {table} WHERE command_id = ?", (chosen,))
    connection.commit()
    connection.close()
