"""Evidence: only what a signed command names, piece by piece, and a bad file holds up no other."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from support.contexts import walk_to
from support.faults import CUT, LOST_REPLY, PORTAL_PAGE, Fault, page, refused
from support.loop_time import LoopTime
from support.scripted_server import SYNC, UPLOADS
from support.syncing import QUICK, WORKER, SyncedDevice, synced
from workmate_client.journal.rows import EvidenceItem
from workmate_shared.tasks.commands import StartTravel
from workmate_shared.wire.messages import Change

PHOTO = bytes(range(200))
OTHER = b"another photo" * 20
PATCH = f"PATCH {UPLOADS}"
POST = f"POST {UPLOADS}"


def held(it: SyncedDevice) -> set[bytes]:
    return set(it.server.held.values())


def states(it: SyncedDevice) -> list[str]:
    """How each file stands, in the order in which they were taken."""

    def state(item: EvidenceItem) -> str:
        if item.verified_at:
            return "verified"
        if item.quarantined:
            return "set aside"
        return "uploaded" if item.upload_done_at else item.wait_code or "waiting"

    return [state(item) for item in it.items()]


async def test_files_follow_their_command_and_one_receipt_verifies_them_all(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO, OTHER)
        report = await it.sync()
        assert held(it) == {PHOTO, OTHER}
        assert states(it) == ["verified", "verified"]
        assert (report.uploaded_bytes, report.uploaded_files) == (len(PHOTO) + len(OTHER), 2)
        assert report.files_waiting == ()
        names = [command.name for command in it.journal.commands()]
        assert names == ["arrive", "store_evidence"]
        it.check()


async def test_a_photo_that_no_signed_command_names_never_leaves_the_device(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.keep(PHOTO)
        await it.sync()
        assert held(it) == set()
        assert not [call for call in it.server.calls if UPLOADS in call]


async def test_a_file_waits_for_the_outcome_of_its_command_unless_the_worker_holds_the_task(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.server.decisions = {"arrive": "not_found"}
        report = await it.sync()
        assert held(it) == set()
        assert [file.code for file in report.files_waiting] == ["command_unanswered"]
        task = replace(walk_to("accepted"), task_id="task-1", assignee_id=WORKER)
        it.server.serve_pages((Change(kind="task", id="task-1", seq=1, task=task),))
        it.server.decisions = {"arrive": "overloaded"}
        await it.sync()
        it.wait()
        it.server.decisions = {"arrive": "unknown_schema"}
        await it.sync()
        assert held(it) == {PHOTO}
        it.check()


async def test_commands_go_first_and_also_between_two_pieces_of_a_file(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        seen: list[int] = []

        def act(_item: EvidenceItem, done: int) -> None:
            seen.append(done)
            if len(seen) == 2:
                it.act(StartTravel, task="task-2")

        it.progress = act
        await it.sync()
        calls = it.server.calls
        assert calls.index(f"POST {SYNC}") < calls.index(f"POST {UPLOADS}")
        patches = [place for place, call in enumerate(calls) if call.startswith("PATCH")]
        assert f"POST {SYNC}" in calls[patches[0] : patches[-1]]
        assert seen == [0, 64, 128, 192, 200]
        it.check()


@pytest.mark.parametrize("fault", [LOST_REPLY, CUT, PORTAL_PAGE, refused(503, "overloaded")])
@pytest.mark.parametrize("piece", [0, 1, 3])
async def test_an_upload_goes_on_where_the_server_is_after_any_cut(
    tmp_path: Path, fault: Fault, piece: int
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.server.fail(PATCH, *[None] * piece, fault)
        await it.sync()
        it.wait()
        await it.sync()
        assert held(it) == {PHOTO}
        assert states(it) == ["verified"]
        assert len(it.server.uploads) == 1
        sent = sum(call.startswith("PATCH") for call in it.server.calls)
        assert sent <= 5
        it.check()


async def test_an_upload_that_the_server_has_forgotten_begins_again(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.server.fail(PATCH, None, PORTAL_PAGE)
        await it.sync()
        it.server.uploads.clear()
        it.wait()
        await it.sync()
        assert states(it) == ["verified"]
        it.check()


async def test_a_reply_to_the_creation_that_is_lost_costs_nothing_but_a_second_one(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.server.fail(POST, LOST_REPLY)
        await it.sync()
        it.wait()
        await it.sync()
        assert states(it) == ["verified"]
        it.check()


async def test_bytes_that_this_worker_has_uploaded_before_are_not_sent_again(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        await it.sync()
        it.capture(PHOTO, task="task-2")
        report = await it.sync()
        assert (report.uploaded_bytes, report.uploaded_files) == (0, 1)
        assert states(it) == ["verified", "verified"]


async def test_a_file_that_is_not_yet_allowed_is_tried_again_later_and_holds_up_no_other(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO, task="task-1")
        it.capture(OTHER, task="task-2")
        it.server.allowed = {"task-2"}
        for _ in range(QUICK.evidence_attempts_limit + 2):
            await it.sync()
            it.wait()
        assert states(it) == ["upload_not_allowed", "verified"]
        it.server.allowed = None
        await it.sync()
        assert states(it) == ["verified", "verified"]
        it.check()


async def test_a_damaged_file_is_set_aside_after_some_tries_while_the_others_go(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO, OTHER)
        bad = it.items()[0]
        sealed = it.device.paths.evidence / f"{bad.sealed_name}.sealed"
        raw = bytearray(sealed.read_bytes())
        raw[-1] ^= 1
        sealed.write_bytes(raw)
        for _ in range(QUICK.evidence_attempts_limit):
            assert states(it)[0] != "set aside"
            await it.sync()
            it.wait()
        assert states(it) == ["set aside", "verified"]
        assert [notice.code for notice in it.journal.notices()] == ["evidence_set_aside"]
        calls = len(it.server.calls)
        report = await it.sync()
        assert [file.set_aside for file in report.files_waiting] == [True]
        assert len(it.server.calls) <= calls + 3
        it.check()


async def test_a_missing_file_is_set_aside_in_the_same_way(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO, OTHER)
        it.device.sealed.remove(it.items()[0].sealed_name)
        for _ in range(QUICK.evidence_attempts_limit):
            await it.sync()
            it.wait()
        assert states(it) == ["set aside", "verified"]


async def test_a_file_that_arrived_damaged_starts_again_and_is_set_aside_in_the_end(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.server.fail(PATCH, refused(460, "hash_mismatch"))
        async with it.running() as runner:
            await runner.sync_once()
            assert it.items()[0].uploaded_bytes == 0
            assert it.items()[0].upload_url is None
            it.wait()
            await runner.sync_once()
        assert states(it) == ["verified"]
        it.capture(OTHER)
        it.server.fail(PATCH, *[refused(460, "hash_mismatch")] * 9)
        async with it.running() as runner:
            for _ in range(QUICK.evidence_attempts_limit):
                await runner.sync_once()
                it.wait()
        assert states(it) == ["verified", "set aside"]
        it.check()


async def test_a_session_that_expires_in_the_middle_of_an_upload_is_renewed_and_it_goes_on(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.server.uses_left = 4
        report = await it.sync()
        assert states(it) == ["verified"]
        assert report.stopped is None
        assert len(it.server.uploads) == 1
        assert it.server.calls.count("POST /v1/sessions") == 2
        it.check()


async def test_a_file_larger_than_the_server_takes_is_never_sent_and_holds_up_no_other(
    tmp_path: Path,
) -> None:
    async with synced(tmp_path) as it:
        await it.sync()
        it.server.limits = replace(it.server.limits, upload_bytes=len(PHOTO))
        it.capture(PHOTO, OTHER)
        report = await it.sync()
        assert held(it) == {PHOTO}
        assert states(it) == ["verified", "waiting"]
        assert [file.code for file in report.files_waiting] == ["too_large"]


async def test_a_proxys_limit_makes_the_file_wait_and_not_the_others(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.capture(OTHER, task="task-2")
        it.server.fail(PATCH, page(413))
        await it.sync()
        assert states(it) == ["answer_unreadable", "verified"]
        it.wait()
        await it.sync()
        assert states(it) == ["verified", "verified"]


async def test_over_a_metered_link_large_files_wait_and_commands_do_not(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        it.capture(OTHER, task="task-2")
        report = await it.sync(link_bytes=len(PHOTO))
        assert report.committed == 3
        assert held(it) == {PHOTO}
        assert [file.code for file in report.files_waiting] == ["metered_link"]
        await it.sync()
        assert states(it) == ["verified", "verified"]


async def test_files_that_the_server_lost_are_offered_to_it_again(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO, OTHER)

        def lose(item: EvidenceItem, done: int) -> None:
            if item.size_bytes == done == len(OTHER):
                it.server.held = {h: c for h, c in it.server.held.items() if c != PHOTO}
                it.progress = print

        it.progress = lose
        await it.sync()
        assert held(it) == {PHOTO, OTHER}
        assert states(it) == ["verified", "verified"]
        it.check()


async def test_a_stalled_piece_is_sent_again_in_smaller_ones(tmp_path: Path) -> None:
    content = bytes(100_000)
    settings = replace(QUICK, upload_chunk_bytes=65_536)
    async with synced(tmp_path, settings) as it:
        it.capture(content)
        time = LoopTime()
        it.server.on_hang = lambda: time.advance(settings.stall_timeout_seconds + 1)
        it.server.fail(PATCH, it.server.hang(), it.server.hang())
        steps: list[int] = []
        it.progress = lambda _item, done: steps.append(done)
        report = await it.sync()
        assert report.stopped is None
        assert states(it) == ["verified"]
        assert next(step for step in steps if step) == 16_384
        it.check()


async def test_after_a_restore_every_file_is_offered_again(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)
        await it.sync()
        it.server.held.clear()
        it.server.outcomes.clear()
        it.server.effects.clear()
        it.server.lineage = it.server.log.lineage = "l2"
        it.server.log.batch = 0
        await it.sync()
        assert held(it) == {PHOTO}
        assert states(it) == ["verified"]
        it.check()


async def test_two_files_of_one_name_both_arrive(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO, OTHER)
        assert {item.file_name for item in it.items()} == {"Foto.jpg"}
        await it.sync()
        assert held(it) == {PHOTO, OTHER}


async def test_no_more_pieces_are_sent_once_somebody_stops_the_run(tmp_path: Path) -> None:
    async with synced(tmp_path) as it:
        it.capture(PHOTO)

        def stop(_item: EvidenceItem, done: int) -> None:
            if done == 64:
                assert it.runner is not None
                it.runner.stop()

        it.progress = stop
        report = await it.sync()
        assert report.stopped == "stopped_by_you"
        assert report.uploaded_bytes == 64
        assert it.items()[0].uploaded_bytes == 64
