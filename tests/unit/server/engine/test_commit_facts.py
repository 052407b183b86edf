"""What a commit believes: proved values only, ids that are one in their tenant, and what is stored."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import event

from support import commands as build
from support.eventful import Story, hold_files
from support.log import Log, open_log
from workmate_server.config import Settings
from workmate_server.engine.answers import stored_receipt
from workmate_server.engine.model import Submission
from workmate_server.store import loads
from workmate_server.store.database import DatabaseAwayError
from workmate_server.telemetry.system import NoHooks
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import AccessToken, DeviceKey
from workmate_shared.wire.batch import decode_header
from workmate_shared.wire.binary import from_base64
from workmate_shared.wire.commitment import Disclosure


def _slipped_in(submission: Submission, commitment: str, value: str) -> Submission:
    forged = Disclosure(salt="AAAA", retention_class="contract_7y", value=value)
    return replace(submission, disclosures={**submission.disclosures, commitment: forged})


async def test_a_value_that_proves_nothing_is_never_shown_beside_an_honest_command(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        site, _ = build.disclose(build.SITE)
        log.tamper("DELETE FROM disclosure WHERE commitment = :site", site=site)
        note = log.submission(log.make("observe", expected_version=2))
        forged = _slipped_in(note, site, '{"lat_e7":1,"lon_e7":1,"mappls_pin":"AAAAAA"}')
        (answer,) = await log.engine.submit(log.tenant_id, [forged])
        assert answer.status == "committed"
        assert log.rows("task_snapshot")[0]["mappls_pin"] is None
        assert site not in {row["commitment"] for row in log.rows("disclosure")}


async def test_answers_that_prove_nothing_approve_no_proof(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("proof_pending")
        hold_files(log, log.task_id)
        answers, _ = build.disclose(build.ANSWERS)
        log.tamper("DELETE FROM disclosure WHERE commitment = :answers", answers=answers)
        note = log.submission(log.make("observe", expected_version=6))
        forged = _slipped_in(note, answers, msgspec.json.encode(build.ANSWERS).decode())
        approve = log.submission(log.make("approve_proof", expected_version=6))
        _, refused = await log.engine.submit(log.tenant_id, [forged, approve])
        assert refused.code == "proof_policy_unmet"


async def test_a_purged_value_that_a_refused_command_brings_stays_purged(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        site, _ = build.disclose(build.SITE)
        log.tamper("DELETE FROM disclosure WHERE commitment = :site", site=site)
        again = log.make("create_task", command_id="again", priority=4)
        note = log.make("observe", expected_version=2)
        refused, noted = await log.submit(again, note)
        assert (refused.status, noted.status) == ("conflict", "committed")
        assert log.rows("task_snapshot")[0]["mappls_pin"] is None


async def test_a_proof_sent_and_approved_in_one_batch_is_judged_by_its_values(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("in_progress")
        hold_files(log, log.task_id)
        answers = await log.submit(
            log.make("submit_proof", expected_version=5),
            log.make("approve_proof", expected_version=6),
        )
        assert [answer.status for answer in answers] == ["committed", "committed"]
        assert log.verify().clean


def _add(log: Log, owner: str, credential: Any, name: str) -> Any:
    return log.make(
        "add_credential",
        aggregate_id=owner,
        actor=build.make_actor(Role.SYSTEM),
        command_id=name,
        credential=credential,
        expected_version=None,
    )


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        DeviceKey(credential_id=build.DEVICE, public_key="0c" * 32),
        AccessToken(credential_id=build.DEVICE, token_hash="0c" * 32, roles=()),
    ],
)
async def test_a_credentials_id_is_one_in_its_tenant(
    tmp_path: Path, other: Any, *, together: bool
) -> None:
    async with open_log(tmp_path) as log:
        mine = DeviceKey(credential_id=build.DEVICE, public_key="0a" * 32)
        first = _add(log, build.ASSIGNEE, mine, "first")
        second = _add(log, build.FORMER, other, "second")
        if together:
            answers = await log.submit(first, second)
        else:
            answers = [*await log.submit(first), *await log.submit(second)]
        assert [(a.status, a.code) for a in answers] == [
            ("committed", None),
            ("conflict", "credential_exists"),
        ]
        (row,) = [r for r in log.rows("credential") if r["credential_id"] == build.DEVICE]
        assert (row["principal_id"], row["lookup"]) == (build.ASSIGNEE, "0a" * 32)
        assert log.verify().clean


async def test_a_batch_that_is_sent_again_costs_no_more_statements_the_larger_it_is(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        story = Story(log, "task")
        await story.reach("assigned")
        counts = []
        for size in (5, 50):
            notes = [story.make("observe", command_id=f"{size}-{n}") for n in range(size)]
            await log.submit(*notes)
            counted: list[str] = []

            def count(_c: Any, _cursor: Any, sql: str, *_: Any, to: list[str] = counted) -> None:
                to.append(sql)

            event.listen(log.database._writer, "before_cursor_execute", count)
            answers = await log.submit(*notes)
            event.remove(log.database._writer, "before_cursor_execute", count)
            counts.append(len(counted))
            assert all(answer.replayed for answer in answers)
            with log.database.read() as connection:
                keys = {(build.ASSIGNEE, answer.command_id) for answer in answers}
                rows = loads.load_commands(connection, log.tenant_id, keys)
                for answer in answers:
                    row = rows[build.ASSIGNEE, answer.command_id]
                    assert answer.receipt == stored_receipt(connection, row)
        assert counts[0] == counts[1]


class _AwayThenDamaged(NoHooks):
    log: Log | None = None

    def reach(self, point: str) -> None:
        if self.log is not None and point == "engine.commit.after":
            log, self.log = self.log, None
            log.tamper("UPDATE command_log SET leaf = x'00'")
            raise DatabaseAwayError("the connection was lost")


async def test_a_look_up_that_fails_is_answered_and_the_next_command_is_committed(
    tmp_path: Path,
) -> None:
    hooks = _AwayThenDamaged()
    async with open_log(tmp_path, hooks=hooks) as log:
        await log.walk("assigned")
        hooks.log = log
        (answer,) = await log.submit(log.make("accept", expected_version=2))
        assert (answer.status, answer.code) == ("retry", "database_away")
        (answer,) = await log.submit(log.make("observe", expected_version=3))
        assert answer.status == "committed"


def _copied_batch(log: Log) -> int:
    copy = msgspec.json.decode(log.keys.read_heads()[log.tenant_id])
    return decode_header(from_base64(copy["payload"])).batch


async def test_a_copy_of_the_head_that_cannot_be_written_costs_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = replace(Settings(), head_copy_interval_seconds=1e-9)
    async with open_log(tmp_path, settings=limits) as log:
        heads = tmp_path / "keys" / "heads"
        heads.rename(tmp_path / "elsewhere")
        heads.write_bytes(b"")
        await log.walk("accepted")
        heads.unlink()
        (tmp_path / "elsewhere").rename(heads)
        assert "was not written" in caplog.text
        await log.run(log.make("start_travel", expected_version=3))
        assert _copied_batch(log) == log.rows("tenant_head")[0]["batch"]


class _Copied(NoHooks):
    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def reach(self, point: str) -> None:
        if point == "engine.head.after":
            self.loop.call_soon_threadsafe(self.done.set)


async def test_the_newest_head_is_copied_when_nothing_more_comes(tmp_path: Path) -> None:
    hooks = _Copied()
    limits = replace(Settings(), head_copy_interval_seconds=0.05)
    async with open_log(tmp_path, hooks=hooks, settings=limits) as log:
        await log.walk("assigned")
        while _copied_batch(log) != log.rows("tenant_head")[0]["batch"]:
            hooks.done.clear()
            await asyncio.wait_for(hooks.done.wait(), 30)


async def test_of_two_servers_neither_copies_a_head_older_than_the_others(tmp_path: Path) -> None:
    async with open_log(tmp_path) as one, open_log(tmp_path) as other:
        await one.walk("unassigned")
        await other.run(other.make("assign", expected_version=1))
        await other.engine.stop()
        await one.engine.stop()
        assert _copied_batch(one) == one.rows("tenant_head")[0]["batch"]
