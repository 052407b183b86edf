"""The command line does what the services do, says so for people and programs, and fails in words."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.commands import make_policy
from support.laptop import machine_for_tests
from support.office import Job, Office, Person, open_office
from support.pictures import picture
from workmate_client.cli import main
from workmate_client.commands.program import Program
from workmate_client.config import ProfilePaths
from workmate_shared.kernel.table import Role

POLICY = msgspec.to_builtins(make_policy(photos=make_policy().photos))
PASSPHRASE = "a long enough passphrase"


class Terminal:
    """Runs command lines of one worker, each as if it were a program of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.environment = {"WORKMATE_HOME": str(folder), "WORKMATE_PASSPHRASE": PASSPHRASE}
        self.machine = machine_for_tests()
        self._capsys = capsys

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Return status, standard output and standard error."""
        status = await asyncio.to_thread(main, arguments, self.environment, self.machine)
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    async def json(self, *arguments: str) -> Any:
        """Return what a command that succeeds answers in JSON."""
        status, out, err = await self.run(*arguments, "--json")
        assert status == 0, err
        return json.loads(out)

    async def refused(self, *arguments: str) -> dict[str, Any]:
        """Return the error that a command is refused with."""
        status, out, err = await self.run(*arguments, "--json")
        assert (status, out) == (1, "")
        error: dict[str, Any] = json.loads(err)["error"]
        assert error["code"]
        assert error["detail"]
        plain, _, words = await self.run(*arguments)
        assert plain == 1
        assert words.startswith(f"{error['code']}: ")
        return error


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with open_office(tmp_path / "office") as opened:
        yield opened


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path / "profile", capsys)


async def enrolled(office: Office, terminal: Terminal) -> Person:
    """Enrol the terminal's laptop for a new worker."""
    worker = await office.hire(Role.WORKER, principal_id="usr_w1")
    issued = await office.admin.post("/v1/enrolment-codes", {"principal_id": "usr_w1"})
    url = str(office.client.make_url("/")).rstrip("/")
    answer = await terminal.json(
        "enrol", "--server", url, "--code", issued.json["code"], "--keys", "vault"
    )
    assert (answer["worker_id"], answer["already"]) == ("usr_w1", False)
    assert answer["keys"] == {
        "safe": "vault",
        "reason": "asked_for",
        "detail": "under a passphrase",
    }
    return worker


async def assigned(office: Office, worker: Person) -> Job:
    return await office.job("assigned", worker=worker, proof_policy=POLICY)


async def test_a_day_at_the_command_line_from_enrolment_to_a_verified_proof(
    office: Office, terminal: Terminal, tmp_path: Path
) -> None:
    job = await assigned(office, await enrolled(office, terminal))
    report = await terminal.json("sync", "once")
    assert report["pulled"] == 1
    (line,) = await terminal.json("jobs")
    assert (line["task_id"], line["state"], line["client"]) == (
        job.task_id,
        "assigned",
        "Frau Müller",
    )
    done = await terminal.json("do", "accept", job.task_id)
    assert (done["state"], done["status"], done["device_seq"]) == ("accepted", "pending", 2)
    await terminal.json("do", "start-travel", job.task_id)
    await terminal.json("eta", job.task_id, "--arrive-at", "2026-03-01T10:30:00+01:00")
    place = ("--lat", "40.5863974", "--lon", "-73.9325913", "--accuracy-m", "8")
    await terminal.json("do", "arrive", job.task_id, *place)
    await terminal.json("note", job.task_id, "the", "gate", "was", "open")
    await terminal.json("proof", "answer", job.task_id, "isolated", "yes")
    await terminal.json("proof", "answer", job.task_id, "volts", "231")
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(picture(taken="2026:03:01 09:55:00", offset="+01:00"))
    added = await terminal.json("proof", "photo", job.task_id, str(photo), "--slot", "after")
    assert [p["captured_at"] for p in added["photos"]] == ["2026-03-01T09:55:00+01:00"]
    await terminal.json("proof", "sign", job.task_id, "--name", "Ravi K.")
    status = await terminal.json("proof", "consent", job.task_id, "--name", "Frau Müller")
    assert (status["ready"], status["missing"]) == (True, [])
    await terminal.json("proof", "submit", job.task_id)
    before = await terminal.json("status")
    assert before["status"]["counts"]["pending"] == 6
    assert not before["status"]["safe_to_wipe"]
    report = await terminal.json("sync", "once")
    assert (report["conflicts"], report["rejected"], report["stopped"]) == (0, 0, None)
    assert report["uploaded_files"] == 2
    view = await terminal.json("job", job.task_id)
    assert view["task"]["state"] == "proof_pending"
    assert {line["shown"]["words"] for line in view["history"]} >= {"verified (receipts held)"}
    verified = await terminal.json("receipts", "verify")
    assert verified["all_proven"]
    assert verified["proven"] == (await terminal.json("status"))["status"]["counts"]["issued"]
    assert (await terminal.json("status"))["status"]["conserved"]
    supervisor = await office.somebody(Role.SUPERVISOR)
    seen = (await supervisor.get(f"/v1/tasks/{job.task_id}")).json
    decision = {"manifest_id": seen["current_manifest_id"]}
    approved = await supervisor.command("approve_proof", job, decision, version=seen["version"])
    assert approved.status == 200, approved.body


async def test_a_conflict_is_shown_and_done_again_or_set_aside(
    office: Office, terminal: Terminal
) -> None:
    job = await assigned(office, await enrolled(office, terminal))
    await terminal.json("sync", "once")
    await terminal.json("do", "accept", job.task_id)
    dispatcher = await office.somebody(Role.DISPATCHER)
    amended = await dispatcher.command("amend", job, {"priority": 1})
    assert amended.status == 200
    report = await terminal.json("sync", "once")
    assert report["conflicts"] == 1
    (conflict,) = await terminal.json("conflicts")
    assert [act["code"] for act in conflict["acts"]] == ["version_conflict"]
    assert [event["type"] for event in conflict["meanwhile"]] == ["task.amended"]
    name = conflict["command_id"]
    _, out, _ = await terminal.run("conflicts")
    assert name in out
    await terminal.json("conflicts", "set-aside", name, "--reason", "not now")
    await terminal.json("conflicts", "bring-back", name)
    (again,) = await terminal.json("conflicts", "redo", name)
    assert (again["supersedes"], again["status"]) == (name, "pending")
    report = await terminal.json("sync", "once")
    assert (report["committed"], report["conflicts"]) == (1, 0)
    assert await terminal.json("conflicts") == []


async def test_refusals_name_code_sentence_and_what_to_do(
    office: Office, terminal: Terminal
) -> None:
    job = await assigned(office, await enrolled(office, terminal))
    await terminal.json("sync", "once")
    error = await terminal.refused("do", "arrive", job.task_id, "--no-fix", "indoors")
    assert error["code"] == "state_not_allowed"
    assert error["details"]["state"] == "assigned"
    assert error["todo"]
    assert (await terminal.refused("job", "unheard-of"))["code"] == "not_found"
    error = await terminal.refused("proof", "submit", job.task_id)
    assert error["code"] == "proof_incomplete"
    assert {remark["code"] for remark in error["missing"]} >= {"photos_missing"}
    error = await terminal.refused("proof", "answer", job.task_id, "volts", "many")
    assert error["code"] == "answer_invalid"
    error = await terminal.refused("proof", "photo", job.task_id, "/nowhere/photo.jpg")
    assert error["code"] == "source_missing"
    error = await terminal.refused("do", "arrive", job.task_id, "--lat", "1")
    assert error["code"] == "position_invalid"
    error = await terminal.refused("do", "arrive", job.task_id, "--lat", "91", "--lon", "0")
    assert error["code"] == "position_invalid"
    assert (await terminal.refused("conflicts", "redo", "x"))["code"] == "command_unknown"


async def test_a_server_that_is_away_stops_the_sync_in_words_and_loses_nothing(
    office: Office, terminal: Terminal
) -> None:
    job = await assigned(office, await enrolled(office, terminal))
    await terminal.json("sync", "once")
    await terminal.json("do", "accept", job.task_id)
    await office.client.close()
    status, out, _ = await terminal.run("sync", "once", "--json")
    assert status == 1
    assert json.loads(out)["stopped"]
    status, out, _ = await terminal.run("sync", "once")
    assert "Stopped:" in out
    found = (await terminal.json("sync", "status"))["pending"]
    assert found == 1


async def test_before_enrolment_everything_says_so_and_makes_nothing(
    terminal: Terminal, tmp_path: Path
) -> None:
    for arguments in (("status",), ("jobs",), ("sync", "once"), ("receipts", "verify")):
        assert (await terminal.refused(*arguments))["code"] == "keys_missing"
    status, _, err = await terminal.run()
    assert status == 1
    assert "workmate enrol" in err
    assert not (tmp_path / "profile").exists()


async def test_an_address_in_the_clear_is_refused_before_keys_are_made(
    terminal: Terminal, tmp_path: Path
) -> None:
    code = "0000-0000-0000-0000-0000-0000-0000-0000-0000-0000-0000"
    error = await terminal.refused("enrol", "--server", "http://example.org", "--code", code)
    assert error["code"] == "server_insecure"
    assert not (tmp_path / "profile").exists()


async def test_a_wrong_passphrase_opens_nothing_and_says_so(
    office: Office, terminal: Terminal
) -> None:
    await enrolled(office, terminal)
    terminal.environment["WORKMATE_PASSPHRASE"] = "another long passphrase"
    assert (await terminal.refused("status"))["code"] == "wrong_passphrase"


async def test_work_whose_keys_are_gone_is_never_given_new_ones(
    office: Office, terminal: Terminal, tmp_path: Path
) -> None:
    await enrolled(office, terminal)
    (tmp_path / "profile" / "keys.vault").unlink()
    url = str(office.client.make_url("/"))
    error = await terminal.refused("enrol", "--server", url, "--code", "x", "--keys", "vault")
    assert error["code"] == "keys_missing"
    assert "keys to it are gone" in error["detail"]


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("do",), ("do", "accept"), ("proof", "sign"), ("eta", "t"), ("job",)],
)
async def test_wrong_usage_ends_with_status_two(
    terminal: Terminal, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as raised:
        await terminal.run(*arguments)
    assert raised.value.code == 2


async def test_json_may_be_asked_for_before_or_behind_the_subcommand(terminal: Terminal) -> None:
    _, _, before = await terminal.run("--json", "status")
    _, _, behind = await terminal.run("status", "--json")
    assert json.loads(before) == json.loads(behind)
    _, _, alone = await terminal.run("--json")
    assert json.loads(alone) == json.loads(behind)


async def test_foreign_text_cannot_drive_the_terminal(office: Office, terminal: Terminal) -> None:
    worker = await enrolled(office, terminal)
    evil = {"client": "\x1b[2J\x1b[Hroot", "instructions": "one\ntwo\u202e"}
    job = await office.job("assigned", worker=worker, personal=evil)
    await terminal.json("sync", "once")
    for arguments in (("jobs",), ("job", job.task_id)):
        _, out, _ = await terminal.run(*arguments)
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "root" in out


def test_a_new_passphrase_is_asked_for_twice_where_somebody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked: list[str] = []
    answers = iter([PASSPHRASE, PASSPHRASE, PASSPHRASE, "something else"])

    def prompt(question: str) -> str:
        asked.append(question)
        return next(answers)

    machine = machine_for_tests()
    program = Program(machine, ProfilePaths(tmp_path / "one"), {}, prompt)
    _, choice = program.new_device("vault")
    assert choice is not None
    assert len(asked) == 2
    program.close()
    other = Program(machine, ProfilePaths(tmp_path / "two"), {}, prompt)
    with pytest.raises(Exception, match="differ"):
        other.new_device("vault")
    assert not (tmp_path / "two" / "keys.vault").exists()


async def working(office: Office, terminal: Terminal) -> Job:
    """A job on which the terminal's worker is at work."""
    job = await assigned(office, await enrolled(office, terminal))
    await terminal.json("sync", "once")
    await terminal.json("do", "accept", job.task_id)
    await terminal.json("do", "start-travel", job.task_id)
    await terminal.json("do", "arrive", job.task_id, "--no-fix", "indoors")
    return job


async def test_of_several_photos_the_good_ones_are_taken_and_each_bad_one_is_named(
    office: Office, terminal: Terminal, tmp_path: Path
) -> None:
    job = await working(office, terminal)
    (tmp_path / "good.jpg").write_bytes(picture())
    (tmp_path / "empty.jpg").write_bytes(b"")
    files = [str(tmp_path / name) for name in ("missing.jpg", "good.jpg", "empty.jpg")]
    status, out, err = await terminal.run("proof", "photo", job.task_id, *files)
    assert (status, err) == (1, "")
    assert "Saved: good.jpg" in out
    assert out.count("NOT taken:") == 2
    assert "Nothing was changed" not in out
    status, out, _ = await terminal.run("proof", "photo", job.task_id, *files, "--json")
    assert status == 1
    answer = json.loads(out)
    assert [failed["error"]["code"] for failed in answer["failed"]] == [
        "source_missing",
        "source_empty",
    ]
    assert len(answer["draft"]["photos"]) == 1


async def test_text_that_is_not_utf8_is_refused_in_words_and_such_a_file_name_is_taken(
    office: Office, terminal: Terminal, tmp_path: Path
) -> None:
    job = await working(office, terminal)
    for arguments in (
        ("note", job.task_id, "caf\udce9"),
        ("job", "\udce9"),
        ("proof", "answer", job.task_id, "volts", "\udce9"),
        ("proof", "sign", job.task_id, "--name", "Andr\udce9"),
    ):
        assert (await terminal.refused(*arguments))["code"] == "text_not_utf8"
    path = tmp_path / "caf\udce9.jpg"
    error = await terminal.refused("proof", "photo", job.task_id, str(path))
    assert error["code"] == "source_missing"
    path.write_bytes(picture())
    await terminal.json("proof", "photo", job.task_id, str(path))
    terminal.environment["WORKMATE_PASSPHRASE"] = "a long \udce9 passphrase"
    assert (await terminal.refused("status"))["code"] == "text_not_utf8"


async def test_proof_status_shows_what_is_asked_and_given_and_the_text_agreed_to(
    office: Office, terminal: Terminal, tmp_path: Path
) -> None:
    job = await working(office, terminal)
    (tmp_path / "good.jpg").write_bytes(picture())
    added = await terminal.json("proof", "photo", job.task_id, str(tmp_path / "good.jpg"))
    await terminal.json("proof", "answer", job.task_id, "volts", "231")
    _, out, _ = await terminal.run("proof", "status", job.task_id)
    policy = added["policy"]
    for shown in (
        *(item["prompt"] for item in policy["checklist"]),
        policy["consent"]["text"],
        added["photos"][0]["hash"],
        "231",
    ):
        assert shown in out
    _, out, _ = await terminal.run("job", job.task_id)
    assert all(item["prompt"] in out for item in policy["checklist"])
    assert f"workmate note {job.task_id} TEXT" in out
    error = await terminal.refused("eta", job.task_id, "--arrive-at", "soon")
    assert error["detail"] == "soon is not a time with its offset from UTC"


async def test_a_returned_proof_is_seen_in_the_sync_in_the_list_and_in_its_status(
    office: Office, terminal: Terminal
) -> None:
    job = await working(office, terminal)
    await terminal.json("proof", "submit", job.task_id, "--incomplete")
    await terminal.json("sync", "once")
    supervisor = await office.somebody(Role.SUPERVISOR)
    seen = (await supervisor.get(f"/v1/tasks/{job.task_id}")).json
    decision = {
        "manifest_id": seen["current_manifest_id"],
        "personal": {"reason": "the photo is dark"},
    }
    answer = await supervisor.command("reject_proof", job, decision, version=seen["version"])
    assert answer.status == 200, answer.body
    _, out, _ = await terminal.run("sync", "once")
    assert "1 proof was returned" in out
    _, out, _ = await terminal.run("sync", "once")
    assert "returned" not in out
    _, out, _ = await terminal.run("jobs")
    assert "returned" in out
    (line,) = await terminal.json("jobs")
    status = await terminal.json("proof", "status", job.task_id)
    assert line["returned"] == status["returned"] is not None


async def test_a_revoked_laptop_is_told_at_the_sync_and_in_its_status(
    office: Office, terminal: Terminal
) -> None:
    job = await working(office, terminal)
    device = (await terminal.json("status"))["status"]["device_id"]
    answer = await office.admin.post(f"/v1/devices/{device}/revoke", {"wipe": True})
    assert answer.status == 200, answer.body
    for arguments in (("sync", "once"), ("status",)):
        _, out, _ = await terminal.run(*arguments)
        assert "device_revoked: the office no longer trusts this laptop" in out
        assert "The office asks to wipe this laptop" in out
    (lost,) = await terminal.json("conflicts")
    assert lost["task_id"] == job.task_id
    error = await terminal.refused("conflicts", "redo", lost["command_id"])
    assert error["code"] == "device_revoked"


async def test_an_act_that_waits_for_the_network_says_so(
    office: Office, terminal: Terminal
) -> None:
    await working(office, terminal)
    await office.client.close()
    _, out, _ = await terminal.run("sync", "once")
    assert "for an earlier step" not in out
    assert "waits" in out


async def test_a_file_that_cannot_be_read_is_named_by_the_sync_and_among_the_decisions(
    office: Office, terminal: Terminal, tmp_path: Path
) -> None:
    job = await working(office, terminal)
    photo = tmp_path / "good.jpg"
    photo.write_bytes(picture())
    await terminal.json("proof", "photo", job.task_id, str(photo))
    await terminal.json("proof", "submit", job.task_id, "--incomplete")
    for sealed in (tmp_path / "profile" / "evidence").iterdir():
        sealed.unlink()
    for arguments in (("sync", "once"), ("conflicts",), ("status",)):
        _, out, _ = await terminal.run(*arguments)
        assert "good.jpg" in out
        assert "its copy is gone; add it again" in out
    status, out, _ = await terminal.run("proof", "photo", job.task_id, str(photo))
    assert (status, "Saved: good.jpg" in out) == (0, True)
    report = await terminal.json("sync", "once")
    assert (report["uploaded_files"], report["files_waiting"]) == (1, [])
    assert await terminal.json("conflicts") == []
