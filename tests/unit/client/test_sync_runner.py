"""The engine against a real server that misbehaves: nothing is lost, doubled, or falsely sent."""

from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace

from support.faults import (
    CUT,
    HALF,
    LOST_REPLY,
    PORTAL_PAGE,
    TRUNCATED,
    Fault,
    forged,
    page,
    problem,
    refused,
)
from support.loop_time import LoopTime
from support.scripted_server import ENROLMENTS, SYNC
from support.signing_log import OTHER_SEED
from support.syncing import QUICK, WORKER, SyncedDevice, synced
from workmate_client.journal.lock import LockedError, ProfileLock
from workmate_client.journal.parts import NotEnrolledError
from workmate_client.sync.blocking import run_in_thread
from workmate_client.sync.runner import SyncRunner
from workmate_shared.principals.commands import Enrol
from workmate_shared.tasks.commands import StartTravel
from workmate_shared.wire.dsse import BATCH_TYPE, key_id, public_key_of, sign, split_envelope
from workmate_shared.wire.messages import Outcome, Pull, SyncAnswer, SyncRequest


async def test_everything_that_was_done_is_sent_once_and_accounted_for(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        names = it.walk(tasks=3)
        report = await it.sync()
        assert (report.sent, report.committed, report.waiting) == (6, 6, ())
        assert [c for request in it.server.requests for c in request.commands]
        assert list(it.server.tries) == names
        assert report.conservation.holds
        assert report.stopped is None
        profile = it.device.profile()
        assert profile.last_sync_at is not None
        assert profile.newest_batch == it.server.log.batch
        it.check()


async def test_a_second_run_has_nothing_to_send_and_says_so(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.walk()
        await it.sync()
        report = await it.sync()
        assert (report.sent, report.committed, report.retry_in_seconds) == (0, 0, None)
        it.check()


def spoiled(change: str) -> Fault:
    """An answer of which one thing in each outcome is not as the server signed it."""

    def wrong(outcome: Outcome) -> Outcome:
        receipt = outcome.receipt
        assert receipt is not None
        match change:
            case "receipt":
                return replace(outcome, receipt=None)
            case "leaf":
                leaf = receipt.leaf.replace(outcome.command_id, "0" * 36)
                return replace(outcome, receipt=replace(receipt, leaf=leaf))
            case "signer":
                header, _, _ = split_envelope(receipt.header, BATCH_TYPE)
                signed = sign(BATCH_TYPE, header, OTHER_SEED)
                return replace(outcome, receipt=replace(receipt, header=signed))
            case "status":
                return replace(outcome, status="unchanged")
        raise AssertionError(change)

    def spoil(answer: SyncAnswer) -> SyncAnswer:
        return replace(answer, outcomes=tuple(wrong(outcome) for outcome in answer.outcomes))

    return forged(spoil)


FAULTS = {
    "portal": PORTAL_PAGE,
    "empty json": page(200, b"{}", "application/json"),
    "half an answer": HALF,
    "truncated": TRUNCATED,
    "reply lost": LOST_REPLY,
    "cut": CUT,
    "redirect": page(302, Location="https://portal.example/"),
    "proxy 502": page(502),
    "proxy 503": page(503, Retry_After="5"),
    "busy": refused(503, "overloaded", Retry_After="5"),
    "too many": refused(429, "too_many"),
    "broken": refused(500, "internal"),
    "forbidden": refused(403, "tenant_mismatch"),
    "no receipt": spoiled("receipt"),
    "another leaf": spoiled("leaf"),
    "another signer": spoiled("signer"),
    "another status": spoiled("status"),
    "no outcomes": forged(lambda answer: replace(answer, outcomes=())),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_whatever_comes_in_the_place_of_an_answer_nothing_is_sent_until_it_is_proven(
    tmp_path: Path, fault: str
) -> None:
    async with synced(tmp_path) as it:
        name = it.act().command_id
        it.server.fail(SYNC, FAULTS[fault])
        report = await it.sync()
        assert (report.committed, report.unchanged) == (0, 0)
        assert it.statuses() == {name: "pending"}
        assert report.conservation.pending == 1
        it.check()
        it.wait()
        report = await it.sync()
        assert it.statuses() == {name: "committed"}
        assert report.committed == 1
        it.check()


@pytest.mark.parametrize("fault", ["portal", "proxy 502", "busy", "too many", "broken"])
async def test_a_fatal_answer_stops_the_run_after_the_first(tmp_path: Path, fault: str) -> None:
    async with synced(tmp_path) as it:
        it.walk(tasks=20)
        it.server.fail(SYNC, *[FAULTS[fault]] * 50)
        report = await it.sync()
        assert it.server.calls.count(f"POST {SYNC}") == 1
        assert report.stopped is not None
        assert report.retry_in_seconds is not None
        assert report.retry_in_seconds > 0
        it.check()


async def test_the_servers_own_word_on_when_to_come_back_is_kept(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.act()
        it.server.fail(SYNC, refused(503, "overloaded", Retry_After="77"))
        async with it.running() as runner:
            report = await runner.sync_once()
            assert report.stopped == "overloaded"
            assert report.retry_in_seconds is not None
            assert report.retry_in_seconds >= 77
            calls = len(it.server.calls)
            assert (await runner.sync_once()).stopped == "overloaded"
            assert len(it.server.calls) == calls
            runner.contact_came_back()
            assert (await runner.sync_once()).committed == 1


async def test_a_server_that_asks_for_a_pause_gets_it(tmp_path: Path) -> None:
    async with synced(tmp_path) as it, it.running() as runner:
        it.server.limits = replace(it.server.limits, commands=1)
        await runner.sync_once()
        it.server.backoff = 30.0
        it.walk()
        report = await runner.sync_once()
        assert (report.stopped, report.sent) == ("server_busy", 1)
        it.wait(29.0)
        assert (await runner.sync_once()).sent == 0
        it.wait(1.0)
        report = await runner.sync_once()
        assert (report.stopped, report.sent) == (None, 1)
        it.check()


async def test_a_server_that_decides_nothing_for_now_is_left_alone_and_no_command_blamed(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.walk()
        it.server.decisions = {"accept": "database_away", "start_travel": "database_away"}
        report = await it.sync()
        assert report.stopped == "database_away"
        assert [waiting.code for waiting in report.waiting] == [None, None]
        assert len(it.server.requests) == 1
        it.server.decisions = {}
        it.wait()
        assert (await it.sync()).committed == 2
        it.check()


async def test_one_command_that_is_not_taken_holds_its_lane_and_no_other(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        stuck, other, after_it, after_other = it.walk(tasks=2)
        it.server.decisions = {stuck: "not_found", after_it: "version_ahead"}
        report = await it.sync()
        assert it.statuses() == {
            stuck: "pending",
            other: "committed",
            after_it: "pending",
            after_other: "committed",
        }
        assert {w.command_id: w.code for w in report.waiting}[stuck] == "not_found"
        assert report.stopped is None
        it.server.decisions = {}
        it.wait()
        await it.sync()
        assert set(it.statuses().values()) == {"committed"}
        it.check()


async def test_conflicts_and_rejections_end_commands_and_are_counted_apart(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        conflict, rejected, unchanged = (it.act(task=f"t{n}").command_id for n in range(3))
        it.server.decisions = {
            conflict: {"status": "conflict", "code": "version_conflict"},
            rejected: {"status": "rejected", "code": "not_assignee"},
            unchanged: {"status": "unchanged"},
        }
        report = await it.sync()
        counts = (report.conflicts, report.rejected, report.unchanged, report.committed)
        assert counts == (1, 1, 1, 0)
        assert report.conservation.holds
        it.check()


async def test_what_was_blocked_goes_as_soon_as_what_it_waited_for_is_answered(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        first = it.act(task="t1").command_id
        blocked = it.act(task="t2").command_id

        def answer(said: SyncAnswer) -> SyncAnswer:
            retry = Outcome(
                command_id=blocked, status="retry", code="blocked_by", blocked_by=first, after=900
            )
            return replace(said, outcomes=(said.outcomes[0], retry))

        it.server.fail(SYNC, forged(answer))
        report = await it.sync()
        assert report.committed == 2
        assert len(it.server.requests) == 2
        it.check()


def refusing(it: SyncedDevice, largest: int, status: int = 413) -> None:
    """The server takes only so many commands in one request."""

    def refuse(request: SyncRequest) -> web.Response | None:
        return problem(status, "too_large") if len(request.commands) > largest else None

    it.server.refuse = refuse


async def test_a_request_that_is_too_large_is_halved_until_it_goes(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.walk(tasks=4)
        refusing(it, largest=2)
        report = await it.sync()
        assert report.committed == 8
        assert max(len(request.commands) for request in it.server.requests) == 2
        it.check()


async def test_a_command_that_is_too_large_alone_waits_and_the_others_go(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        names = it.walk(tasks=3)
        huge = names[1]

        def refuse(request: SyncRequest) -> web.Response | None:
            sent = [c.envelope.payload for c in request.commands]
            mine = it.journal.command(huge)
            assert mine is not None
            return problem(413, "too_large") if mine.signed().envelope.payload in sent else None

        it.server.refuse = refuse
        report = await it.sync()
        assert {w.command_id: w.code for w in report.waiting}[huge] == "too_large"
        assert report.committed == 4
        assert report.stopped is None
        it.check()


async def test_a_command_that_hangs_the_server_is_found_and_waits_alone(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        names = it.walk(tasks=4)
        poison = it.journal.command(names[2])
        assert poison is not None
        time = LoopTime()
        it.server.on_hang = lambda: time.advance(QUICK.stall_timeout_seconds + 1)
        payload = poison.signed().envelope.payload
        it.server.hang_on = lambda request: (
            payload in [c.envelope.payload for c in request.commands]
        )
        for _ in range(5):
            await it.sync()
            it.wait(1.0)
        statuses = it.statuses()
        assert statuses.pop(poison.command_id) == "pending"
        assert statuses.pop(names[6]) == "pending"
        assert set(statuses.values()) == {"committed"}
        waiting = it.journal.command(poison.command_id)
        assert waiting is not None
        assert waiting.wait_code == "no_answer"
        it.check()


async def test_requests_keep_the_limits_that_the_server_names(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        await it.sync()
        it.server.limits = replace(it.server.limits, commands=3, request_bytes=12_000)
        await it.sync()
        it.walk(tasks=5)
        assert (await it.sync()).committed == 10
        sizes = [len(request.commands) for request in it.server.requests]
        assert max(sizes) <= 3
        it.check()


async def test_an_expired_session_is_renewed_without_anybody(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        await it.sync()
        it.server.limits = replace(it.server.limits, commands=1)
        await it.sync()
        it.walk(tasks=3)
        it.server.uses_left = 2
        report = await it.sync()
        assert report.committed == 6
        assert it.server.calls.count("POST /v1/sessions") == 4
        it.check()


async def test_a_login_that_is_refused_for_good_stops_the_run_and_keeps_everything(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.walk()
        it.server.fail(SYNC, *[refused(401, "unauthenticated")] * 9)
        report = await it.sync()
        assert report.stopped == "unauthenticated"
        assert it.server.calls.count(f"POST {SYNC}") == 2
        it.server.fail("/v1/sessions/nonce", refused(401, "re_enrol"))
        it.wait()
        assert (await it.sync()).stopped == "re_enrol"
        assert set(it.statuses().values()) == {"pending"}
        it.check()


async def test_only_one_process_talks_to_the_server(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        name = it.act().command_id
        with ProfileLock(it.device.paths.sync_lock, it.clock), pytest.raises(LockedError):
            await it.sync()
        assert it.server.calls == []
        await it.sync()
        assert it.statuses() == {name: "committed"}


async def test_a_run_can_be_stopped_between_two_requests(tmp_path: Path) -> None:
    async with synced(tmp_path) as it, it.running() as runner:
        it.walk()
        await runner.sync_once()
        it.server.limits = replace(it.server.limits, commands=1)
        await runner.sync_once()
        it.walk(tasks=2)

        def stop_then(request: SyncRequest) -> Pull:
            runner.stop()
            return Pull(since=request.cursor, cursor=request.cursor)

        it.server.pull = stop_then
        report = await runner.sync_once()
        assert (report.stopped, report.sent) == ("stopped_by_you", 1)
        assert (await runner.sync_once()).sent == 1
        it.check()


async def test_the_same_holds_when_blocking_work_runs_in_threads(tmp_path: Path) -> None:
    async with synced(tmp_path) as it, it.running() as runner:
        it.walk(tasks=5)
        threaded = SyncRunner(replace(runner._parts, run_blocking=run_in_thread))
        assert (await threaded.sync_once()).committed == 10
        it.check()


async def test_the_watchdog_speaks_when_answers_come_and_no_outcome_for_ten_minutes(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it, it.running() as runner:
        it.act()
        it.server.decisions = {"accept": "not_found"}
        for _ in range(6):
            assert (await runner.sync_once()).alarm is None
            it.wait(100.0)
        report = await runner.sync_once()
        assert report.alarm is not None
        assert report.alarm.pending == 1
        assert report.alarm.quiet_seconds >= 600
        it.server.decisions = {}
        it.wait()
        assert (await runner.sync_once()).alarm is None


@pytest.mark.parametrize(("offset", "certain"), [(0.0, 0.0), (86_400.0, 86_400.0)])
async def test_the_clocks_error_is_measured_at_every_sync(
    tmp_path: Path, offset: float, certain: float
) -> None:
    async with synced(tmp_path) as it:
        it.wait(offset)
        report = await it.sync()
        assert report.skew is not None
        assert report.skew.certain_seconds == certain
        assert it.device.profile().clock_skew_seconds == certain


async def test_a_clock_that_was_years_ahead_holds_up_nothing_once_it_is_right(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        years = 3 * 365 * 86_400.0
        it.wait(years)
        it.act()
        it.server.decisions = {"accept": "not_found"}
        await it.sync()
        it.wait(-years)
        it.server.decisions = {}
        assert (await it.sync()).committed == 1
        it.check()


async def test_a_key_that_the_log_announced_is_pinned_and_used(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.server.keys = (it.server.log.add_key(OTHER_SEED),)
        it.act()
        assert (await it.sync()).committed == 1
        assert key_id(public_key_of(OTHER_SEED)) in it.device.profile().pinned_keys
        it.server.keys = ()
        it.act(StartTravel)
        assert (await it.sync()).committed == 1
        it.check()


async def test_two_histories_are_told_to_the_worker_once_and_believed_never(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.act()
        await it.sync()
        it.server.log.batch, it.server.log.previous = 0, None
        name = it.act(StartTravel).command_id
        assert (await it.sync()).forked
        it.wait()
        await it.sync()
        assert it.statuses()[name] == "pending"
        assert [notice.code for notice in it.journal.notices()] == ["log_fork"]
        it.check()


async def test_after_a_restore_everything_goes_out_again_as_it_is(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        names = it.walk(tasks=2)
        await it.sync()
        kept, lost = names[0], names[1:]
        for name in lost:
            del it.server.outcomes[name], it.server.effects[name]
        it.server.lineage = it.server.log.lineage = "l2"
        it.server.log.batch = 0
        report = await it.sync()
        assert report.lineage_changed
        assert report.committed == 4
        assert it.server.effects == dict.fromkeys([*lost, kept], 1)
        assert it.device.profile().lineage == "l2"
        assert set(it.statuses().values()) == {"committed"}
        assert len(it.server.tries[kept]) == 2
        it.check()


def enrol_again(it: SyncedDevice) -> str:
    """The device's enrolment is pending, as after a restore of the server; returns its id."""
    keys = it.device.keys
    issued = it.device.author.issue(
        Enrol, WORKER, public_key=keys.public_key.hex(), server_key_id="ab" * 32
    )
    return issued.command_id


async def test_an_enrolment_that_is_pending_again_goes_to_its_own_address(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        name = enrol_again(it)
        other = it.act().command_id
        report = await it.sync()
        assert report.committed == 2
        assert it.server.calls.count(f"POST {ENROLMENTS}") == 1
        sent = [c.envelope for request in it.server.requests for c in request.commands]
        assert len(sent) == 1
        assert it.statuses() == {name: "committed", other: "committed"}
        it.check()


@pytest.mark.parametrize("fault", [refused(404, "enrolment_unknown"), refused(429, "too_many")])
async def test_an_enrolment_that_is_refused_waits_and_holds_up_nothing(
    tmp_path: Path, fault: Fault
) -> None:
    async with synced(tmp_path) as it:
        name = enrol_again(it)
        other = it.act().command_id
        it.server.fail(ENROLMENTS, fault)
        await it.sync()
        assert it.statuses() == {name: "pending", other: "committed"}
        it.wait()
        await it.sync()
        assert it.statuses()[name] == "committed"
        it.check()


async def test_a_device_whose_enrolment_has_no_proven_answer_sends_nothing(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.journal.update_profile(enrolled=False)
        with pytest.raises(NotEnrolledError):
            await it.sync()
        assert it.server.calls == []


class CrashError(Exception):
    """Stands for the death of the process at a point of the journal."""


@pytest.mark.parametrize(
    "point",
    [
        "journal.profile.committed",
        "journal.outcome.written",
        "journal.outcome.committed",
        "journal.issue.written",
        "journal.issue.committed",
    ],
)
async def test_a_device_that_dies_while_it_records_loses_and_doubles_nothing(
    tmp_path: Path, point: str
) -> None:
    deadly: set[str] = set()

    def hook(reached: str, _path: Path) -> None:
        if reached in deadly:
            deadly.clear()
            raise CrashError

    async with synced(tmp_path, hook=hook) as it:
        it.walk(tasks=2)
        it.capture(b"a photo", task="task-0")
        deadly.add(point)
        with pytest.raises(CrashError):
            await it.sync()
        it.wait()
        await it.sync()
        assert set(it.statuses().values()) == {"committed"}
        assert [item.verified_at is not None for item in it.items()] == [True]
        it.check()


async def test_an_act_in_the_middle_of_a_run_goes_out_in_the_same_run(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.act()

        def act_then(request: SyncRequest) -> Pull:
            if len(it.server.requests) == 1:
                it.act(StartTravel)
            return Pull(since=request.cursor, cursor="0")

        it.server.pull = act_then
        assert (await it.sync()).committed == 2
        assert it.journal.pending() == ()
        it.check()
