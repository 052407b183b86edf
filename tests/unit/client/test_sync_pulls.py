"""Pulls: pages join, a refusal keeps the cursor, and neither ever holds up what is to be sent."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from support.contexts import walk_to
from support.faults import PORTAL_PAGE, forged
from support.scripted_server import SYNC
from support.signing_log import OTHER_SEED, SigningLog
from support.syncing import TENANT, WORKER, SyncedDevice, synced
from workmate_shared.tasks.task import Task
from workmate_shared.wire.messages import Change, Pull, SyncAnswer, SyncRequest


def job(name: str, state: str = "assigned") -> Task:
    return replace(walk_to(state), task_id=name)


def change(name: str, seq: int, state: str = "assigned") -> Change:
    return Change(kind="task", id=name, seq=seq, task=job(name, state))


def seen(it: SyncedDevice) -> dict[str, str | None]:
    """The tasks that the device has heard of, and why they are gone."""
    return {found.task.task_id: found.removed for found in it.device.replica.tasks()}


async def test_all_pages_are_pulled_and_each_is_stored_with_its_cursor(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.server.serve_pages((change("a", 1), change("b", 2)), (change("c", 3),))
        report = await it.sync()
        assert report.pulled == 3
        assert set(seen(it)) == {"a", "b", "c"}
        assert [request.cursor for request in it.server.requests] == [None, "1"]
        assert it.device.replica.cursor() == "2"


async def test_a_run_that_is_cut_between_two_pages_goes_on_at_the_second(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.server.serve_pages((change("a", 1),), (change("b", 2),))
        it.server.fail(SYNC, None, PORTAL_PAGE)
        await it.sync()
        assert set(seen(it)) == {"a"}
        it.wait()
        await it.sync()
        assert set(seen(it)) == {"a", "b"}
        assert [request.cursor for request in it.server.requests] == [None, "1"]


@pytest.mark.parametrize("since", [None, "7"])
async def test_a_page_that_does_not_join_is_not_stored_and_sending_goes_on(
    tmp_path: Path, since: str | None
) -> None:
    async with synced(tmp_path) as it:
        it.server.serve_pages((change("a", 1),))
        await it.sync()
        it.act()
        page = Pull(changes=(change("b", 9),), since=since, cursor="9")
        it.server.fail(SYNC, forged(lambda answer: replace(answer, pull=page)))
        report = await it.sync()
        assert (report.pull_fault, report.committed) == ("pull_not_joined", 1)
        assert it.device.replica.cursor() == "1"
        assert set(seen(it)) == {"a"}
        it.check()


@pytest.mark.parametrize("code", ["protocol_too_old", "actor_deactivated", "re_enrol"])
async def test_a_refused_pull_is_recorded_keeps_the_cursor_and_sending_goes_on(
    tmp_path: Path, code: str
) -> None:
    async with synced(tmp_path) as it:
        it.server.serve_pages((change("a", 1),))
        await it.sync()
        it.walk(tasks=2)
        it.server.limits = replace(it.server.limits, commands=1)
        it.server.pull = lambda _request: Pull(refused=code)
        report = await it.sync()
        assert (report.pull_refused, report.committed) == (code, 4)
        assert it.device.profile().pull_refused == code
        assert it.device.replica.cursor() == "1"
        it.server.serve_pages((change("a", 1),), (change("b", 2),))
        await it.sync()
        assert it.device.profile().pull_refused is None
        assert set(seen(it)) == {"a", "b"}
        it.check()


@pytest.mark.parametrize("code", ["cursor_expired", "bad_cursor"])
async def test_a_void_cursor_starts_a_fresh_snapshot_and_never_touches_the_queue(
    tmp_path: Path, code: str
) -> None:
    async with synced(tmp_path) as it:
        it.server.serve_pages((change("a", 1), change("b", 2)))
        await it.sync()
        name = it.act().command_id
        it.server.decisions = {"accept": "not_found"}

        def renewed(request: SyncRequest) -> Pull:
            if request.cursor == "1":
                return Pull(refused=code)
            return Pull(changes=(change("b", 5),), since=request.cursor, cursor="new")

        it.server.pull = renewed
        report = await it.sync()
        assert (report.pulled, report.pull_refused) == (1, None)
        assert set(seen(it)) == {"b"}
        assert it.device.replica.cursor() == "new"
        assert it.statuses() == {name: "pending"}
        it.check()


async def test_a_server_that_voids_even_a_fresh_start_is_not_asked_for_ever(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.server.pull = lambda _request: Pull(refused="cursor_expired")
        report = await it.sync()
        assert report.pull_refused == "cursor_expired"
        assert len(it.server.requests) == 1


async def test_a_change_of_a_task_frees_the_command_that_waited_for_it(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.act(task="a")
        it.server.decisions = {"accept": "not_found"}
        await it.sync()
        assert it.journal.pending()[0].wait_code == "not_found"
        it.server.decisions = {}
        it.server.serve_pages((change("a", 1),))
        report = await it.sync()
        assert report.committed == 1
        it.check()


async def test_a_wipe_is_reported_only_when_proven_and_after_the_queue_was_offered(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.act()
        profile = it.device.profile()

        def revoked(log: SigningLog) -> Pull:
            notice = log.revoke(WORKER, profile.device_id, wipe=True)
            return Pull(refused="device_revoked", receipt=notice.receipt, event=notice.event)

        forged_order = revoked(SigningLog(TENANT, seed=OTHER_SEED))
        it.server.pull = lambda _request: forged_order
        assert not (await it.sync()).wipe_ordered
        order = revoked(it.server.log)
        it.server.pull = lambda _request: order
        it.act(task="task-2")
        it.server.fail(SYNC, PORTAL_PAGE)
        assert not (await it.sync()).wipe_ordered
        it.wait()
        report = await it.sync()
        assert report.wipe_ordered
        assert report.pull_refused == "device_revoked"
        assert not it.journal.pending()
        it.check()


async def test_what_the_server_says_of_itself_is_kept(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        limits = replace(it.server.limits, keep_from=17)
        it.server.limits = limits
        await it.sync()
        profile = it.device.profile()
        assert (profile.limits, profile.last_server_time) == (limits, it.server.server_time)
        assert profile.last_contact_at is not None
        (request,) = it.server.requests
        assert request.device.pending == 0
        assert request.device.disk_free is not None


async def test_an_answer_that_proves_nothing_is_no_contact(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.act()

        def bare(answer: SyncAnswer) -> SyncAnswer:
            return replace(answer, outcomes=())

        it.server.fail(SYNC, forged(bare))
        await it.sync()
        assert it.device.profile().last_contact_at is None
