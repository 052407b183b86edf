"""The commit path: one outcome for each key, whatever comes together, and nothing half-done."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support import commands as build
from support.log import open_log
from workmate_server.config import Settings
from workmate_server.engine.engine import OverloadedError, StoppingError
from workmate_server.store.database import DatabaseAwayError, DuplicateError
from workmate_server.telemetry.system import NoHooks
from workmate_shared.kernel.table import Role
from workmate_shared.wire.batch import check_events, command_hash, verify_receipt
from workmate_shared.wire.schemas import validate_payload


async def test_every_outcome_comes_with_a_receipt_that_proves_it(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        stranger = build.make_actor(Role.DISPATCHER, build.DISPATCHER)
        answers = await log.submit(
            log.make("accept", expected_version=2),
            log.make("accept", expected_version=2, command_id="again"),
            log.make("amend", expected_version=1, command_id="stale"),
            log.make("reject_proof", expected_version=3, actor=stranger),
        )
        assert [a.status for a in answers] == ["committed", "unchanged", "conflict", "rejected"]
        for answer in answers:
            assert answer.receipt is not None
            verified = verify_receipt(answer.receipt, log.public_keys)
            assert verified.leaf.command_id == answer.command_id
            assert verified.leaf.command_hash == command_hash(answer.command)
            assert verified.leaf.outcome == answer.status
            assert verified.leaf.code == answer.code
            check_events(verified, [event.payload for event in answer.events])


async def test_a_repeated_key_gets_the_first_outcome_byte_for_byte(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        command = log.make("accept", expected_version=2)
        (first,) = await log.submit(command)
        (again,) = await log.submit(command)
        assert again.replayed
        assert not first.replayed
        assert replace(again, replayed=False) == first
        assert len([e for e in log.rows("audit_event") if e["type"] == "task.accepted"]) == 1


async def test_a_key_twice_in_one_batch_has_one_effect_and_two_equal_answers(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        command = log.make("accept", expected_version=2)
        first, second = await log.submit(command, command)
        assert second.replayed
        assert replace(second, replayed=False) == first
        assert log.rows("task_snapshot")[0]["version"] == 3


async def test_twenty_posts_of_one_key_at_once_have_one_effect(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        command = log.make("accept", expected_version=2)
        answers = await asyncio.gather(*(log.submit(command) for _ in range(20)))
        receipts = {repr(answer.receipt) for (answer,) in answers}
        assert len(receipts) == 1
        assert sum(not answer.replayed for (answer,) in answers) == 1


async def test_the_same_key_with_other_content_changes_nothing(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        await log.submit(log.make("accept", expected_version=2))
        before = {table: log.rows(table) for table in ("command_log", "audit_event")}
        other = log.make("start_travel", expected_version=3, command_id="key-accept")
        (apart,) = await log.submit(other)
        assert (apart.status, apart.code) == ("retry", "idempotency_key_reused")
        one, two = await log.submit(
            log.make("observe", command_id="fresh"), log.make("arrive", command_id="fresh")
        )
        assert (one.status, two.code) == ("committed", "idempotency_key_reused")
        assert log.rows("command_log")[: len(before["command_log"])] == before["command_log"]


async def test_another_actor_with_the_same_key_is_independent(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        mine, theirs = await log.submit(
            log.make("accept", expected_version=2, command_id="k"),
            log.make("amend", expected_version=3, command_id="k"),
        )
        assert (mine.status, theirs.status) == ("committed", "committed")


async def test_an_offline_chain_commits_in_one_request(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        chain = [
            log.make("accept", expected_version=2),
            log.make("start_travel", expected_version=2, after="key-accept"),
            log.make("arrive", expected_version=2, after="key-start_travel"),
            log.make("submit_proof", expected_version=2, after="key-arrive"),
        ]
        answers = await log.submit(*chain)
        assert [answer.version for answer in answers] == [3, 4, 5, 6]
        (again,) = await log.submit(chain[3])
        assert again.replayed


async def test_a_chain_that_arrives_over_several_requests_is_reached_through_the_log(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        await log.run(
            log.make("accept", expected_version=2),
            log.make("start_travel", expected_version=2, after="key-accept"),
            log.make("arrive", expected_version=2, after="key-start_travel"),
        )


async def test_a_step_waits_for_the_one_before_it(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        later = log.make("start_travel", expected_version=2, after="key-accept")
        (early,) = await log.submit(later)
        assert (early.status, early.code, early.blocked_by) == ("retry", "blocked_by", "key-accept")
        await log.run(log.make("accept", expected_version=2), later)


async def test_a_change_in_between_breaks_the_whole_chain_and_keeps_its_evidence(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        await log.run(
            log.make("assign", expected_version=2, command_id="to-ben", worker_id=build.FORMER)
        )
        answers = await log.submit(
            log.make("accept", expected_version=2),
            log.make("start_travel", expected_version=2, after="key-accept"),
            log.make("arrive", expected_version=2, after="key-start_travel"),
            log.make("submit_proof", expected_version=2, after="key-arrive"),
        )
        assert [a.code for a in answers] == ["version_conflict"] + ["chain_broken"] * 3
        assert [e.type for e in answers[3].events] == ["evidence.handed_over"]
        (manifest,) = log.rows("evidence_manifest")
        assert manifest["status"] == "handed_over"
        assert log.rows("task_snapshot")[0]["state"] == "assigned"
        kept = {row["commitment"] for row in log.rows("disclosure")}
        assert set(build.make_manifest().commitments()) <= kept


async def test_values_are_kept_only_where_an_event_refers_to_them(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        refused = log.make("cancel", expected_version=1)
        (answer,) = await log.submit(refused)
        assert answer.code == "version_conflict"
        assert refused.personal not in {row["commitment"] for row in log.rows("disclosure")}


async def test_the_feed_tells_the_old_and_the_new_assignee(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        await log.run(
            log.make("assign", expected_version=2, command_id="to-ben", worker_id=build.FORMER)
        )
        feed = {row["audience"]: row["removed_why"] for row in log.rows("feed")}
        assert feed == {
            "office": None,
            f"worker:{build.ASSIGNEE}": "reassigned",
            f"worker:{build.FORMER}": None,
        }


async def test_outbox_rows_are_written_with_their_events(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        log.tamper(
            "INSERT INTO subscription (tenant_id, subscription_id, kind, target, active, fencing) "
            "VALUES (:tenant, 'hook', 'webhook', 'https://example.org', 1, 0)",
            tenant=log.tenant_id,
        )
        await log.walk("accepted")
        events = [row["event_id"] for row in log.rows("audit_event")][-3:]
        assert [row["event_id"] for row in log.rows("outbox")] == events


async def test_a_command_that_the_engine_cannot_digest_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_on_travel(name: str, payload: bytes) -> None:
        if name == "task.en_route":
            raise RuntimeError("planted")
        validate_payload(name, payload)

    monkeypatch.setattr("workmate_server.engine.commit.validate_payload", fail_on_travel)
    async with open_log(tmp_path) as log:
        await log.walk("accepted")
        good, bad, other = await log.submit(
            log.make("observe", command_id="one"),
            log.make("start_travel", expected_version=3),
            log.make("observe", command_id="two"),
        )
        assert (good.status, other.status) == ("committed", "committed")
        assert (bad.status, bad.code) == ("retry", "internal")


class _LostAfterCommit(NoHooks):
    armed = False

    def reach(self, point: str) -> None:
        if self.armed and point == "engine.commit.after":
            self.armed = False
            raise DatabaseAwayError("the connection was lost")


async def test_a_connection_lost_during_the_commit_is_answered_from_what_is_stored(
    tmp_path: Path,
) -> None:
    hooks = _LostAfterCommit()
    async with open_log(tmp_path, hooks=hooks) as log:
        await log.walk("assigned")
        hooks.armed = True
        (answer,) = await log.submit(log.make("accept", expected_version=2))
        assert answer.status == "committed"
        assert answer.receipt is not None
        assert log.verify().clean


class _FailsBeforeCommit(NoHooks):
    error: Exception | None = None

    def reach(self, point: str) -> None:
        if self.error is not None and point == "engine.commit.before":
            error, self.error = self.error, None
            raise error


@pytest.mark.parametrize("error", [DatabaseAwayError("gone"), DuplicateError("two writers")])
async def test_a_transaction_that_fails_leaves_nothing_and_the_key_free(
    tmp_path: Path, error: Exception
) -> None:
    hooks = _FailsBeforeCommit()
    async with open_log(tmp_path, hooks=hooks) as log:
        await log.walk("assigned")
        before = log.rows("command_log")
        hooks.error = error
        command = log.make("accept", expected_version=2)
        (answer,) = await log.submit(command)
        assert (answer.status, answer.code) == ("retry", "database_away")
        assert log.rows("command_log") == before
        await log.run(command)


async def test_a_duplicate_found_by_the_database_is_decided_again_one_by_one(
    tmp_path: Path,
) -> None:
    hooks = _FailsBeforeCommit()
    async with open_log(tmp_path, hooks=hooks) as log:
        await log.walk("assigned")
        hooks.error = DuplicateError("another process was first")
        answers = await log.submit(
            log.make("accept", expected_version=2), log.make("observe", command_id="note")
        )
        assert [answer.status for answer in answers] == ["committed", "committed"]


async def test_more_than_the_queue_takes_is_refused_and_the_rest_is_committed(
    tmp_path: Path,
) -> None:
    limits = replace(Settings(), commit_queue_max=500)
    async with open_log(tmp_path, settings=limits) as log:
        await log.walk("assigned")
        many = [log.make("observe", command_id=f"o{n}") for n in range(500)]
        taken = asyncio.create_task(log.submit(*many))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await log.submit(log.make("observe", command_id="one-more"))
        assert {answer.status for answer in await taken} == {"committed"}


async def test_a_request_larger_than_a_batch_is_committed_in_several(tmp_path: Path) -> None:
    limits = replace(Settings(), batch_commands_max=10)
    async with open_log(tmp_path, settings=limits) as log:
        await log.walk("assigned")
        answers = await log.submit(*(log.make("observe", command_id=f"o{n}") for n in range(25)))
        assert [answer.version for answer in answers] == list(range(3, 28))


async def test_stopping_finishes_what_was_taken(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        taken = asyncio.create_task(log.submit(log.make("accept", expected_version=2)))
        await asyncio.sleep(0)
        await log.engine.stop()
        (answer,) = await taken
        assert answer.status == "committed"
        with pytest.raises(StoppingError):
            await log.submit(log.make("observe"))
        heads: dict[str, Any] = log.keys.read_heads()
        assert list(heads) == [log.tenant_id]


async def test_a_cancelled_caller_cancels_no_commit(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        command = log.make("accept", expected_version=2)
        task = asyncio.create_task(log.submit(command))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (answer,) = await log.submit(command)
        assert answer.status == "committed"
        assert log.rows("task_snapshot")[0]["version"] == 3


async def test_whoever_waits_hears_of_a_commit(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        (head,) = log.rows("tenant_head")
        waiting = asyncio.create_task(log.engine.wait_for_change(log.tenant_id, head["seq"], 30.0))
        await asyncio.sleep(0)
        await log.walk("unassigned")
        assert await waiting == head["seq"] + 1
        assert await log.engine.wait_for_change(log.tenant_id, head["seq"] + 1, 0.01) == (
            head["seq"] + 1
        )


async def test_the_log_refuses_to_be_changed(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        for statement in (
            "UPDATE audit_event SET type = 'x'",
            "DELETE FROM command_log",
            "UPDATE commit_batch SET batch = 9",
        ):
            with pytest.raises(DuplicateError, match="only grows"), log.database.write() as conn:
                conn.exec_driver_sql(statement)
