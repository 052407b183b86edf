"""What a device pulls: every change that its worker may see, once, in order, and nothing else."""

import asyncio
from typing import Any

import msgspec
import pytest
from sqlalchemy import update

from support.handheld import Handheld, rows_of, take_handheld
from support.office import PERSONAL, SITE, Job, Office, Person, assert_problem, disclose
from workmate_server.store.tables import TenantHead, table_of
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.manifest import AnswerItem
from workmate_shared.wire.batch import verify_receipt
from workmate_shared.wire.messages import Change, Pull


@pytest.fixture
async def handheld(office: Office) -> Handheld:
    return await take_handheld(office, await office.somebody(Role.WORKER))


async def pull(handheld: Handheld, cursor: str | None = None, limit: int = 500) -> Pull:
    return (await handheld.sync(cursor=cursor, limit=limit)).pull


async def pull_all(handheld: Handheld, cursor: str | None = None, limit: int = 500) -> list[Change]:
    """Pull page after page until there is no more."""
    changes: list[Change] = []
    while True:
        page = await pull(handheld, cursor, limit)
        assert page.refused is None
        assert page.since == cursor
        changes += page.changes
        cursor = page.cursor
        if not page.more:
            return changes


def values(change: Change) -> list[Any]:
    return [msgspec.json.decode(one.value) for one in change.disclosures.values()]


async def dispatch(office: Office, job: Job, worker: Person) -> None:
    dispatcher = await office.somebody(Role.DISPATCHER)
    body = {
        "worker_id": worker.principal_id,
        "personal": {"selection_reason": "nearest with the skill"},
    }
    answer = await dispatcher.command("assign", job, body)
    assert answer.status == 200, answer.body


async def test_a_fresh_device_gets_every_task_of_its_worker_with_what_he_needs(
    office: Office, handheld: Handheld
) -> None:
    mine = await office.job("accepted")
    await office.job("accepted", worker=await office.hire(Role.WORKER))
    await office.job("unassigned")
    (change,) = await pull_all(handheld)
    assert (change.kind, change.id) == ("task", mine.task_id)
    assert change.task is not None
    assert (change.task.state, change.task.version) == ("accepted", 3)
    assert change.task.holders == (handheld.device.principal_id,)
    assert PERSONAL in values(change)
    assert SITE in values(change)
    assert set(change.disclosures) == {*change.task.personal, change.task.position}


async def test_an_object_comes_once_however_often_it_changed(
    office: Office, handheld: Handheld
) -> None:
    jobs = [await office.job("assigned") for _ in range(3)]
    cursor = (await pull(handheld)).cursor
    await handheld.sync(*handheld.chain(jobs[2], "accept", "start_travel", version=2))
    await handheld.sync(*handheld.chain(jobs[0], "accept", version=2))
    changes = await pull_all(handheld, cursor)
    assert [change.id for change in changes] == [jobs[2].task_id, jobs[0].task_id]
    assert [change.task.state for change in changes if change.task] == ["en_route", "accepted"]
    assert [change.seq for change in changes] == sorted(change.seq for change in changes)


async def test_nothing_comes_twice_and_nothing_is_passed_over_while_pages_are_turned(
    office: Office, handheld: Handheld
) -> None:
    jobs = [await office.job("assigned") for _ in range(5)]
    first = await pull(handheld, limit=2)
    assert first.more
    assert [change.id for change in first.changes] == [job.task_id for job in jobs[:2]]
    # One of the first page and one of those to come change between the pages.
    await handheld.sync(
        *handheld.chain(jobs[0], "accept", version=2),
        *handheld.chain(jobs[3], "accept", version=2),
    )
    rest = await pull_all(handheld, first.cursor, limit=2)
    assert [change.id for change in rest] == [jobs[index].task_id for index in (2, 4, 0, 3)]
    assert await pull_all(handheld, (await pull(handheld)).cursor) == []


async def test_pages_of_any_size_join_to_the_same_tasks(office: Office, handheld: Handheld) -> None:
    for _ in range(4):
        await office.job("assigned")
    whole = await pull_all(handheld)
    for limit in (1, 3, 4, 5):
        assert await pull_all(handheld, limit=limit) == whole


async def test_the_last_page_says_so_even_when_it_is_full(
    office: Office, handheld: Handheld
) -> None:
    await office.job("assigned")
    await office.job("assigned")
    page = await pull(handheld, limit=2)
    assert len(page.changes) == 2
    assert not page.more


async def test_a_task_that_is_taken_away_is_removed_with_the_reason(
    office: Office, handheld: Handheld
) -> None:
    given, released = await office.job("assigned"), await office.job("accepted")
    cursor = (await pull(handheld)).cursor
    await dispatch(office, given, await office.hire(Role.WORKER))
    dispatcher = await office.somebody(Role.DISPATCHER)
    await dispatcher.command("release", released, {"personal": {"reason": "no longer needed"}})
    assert [(c.id, c.removed, c.task, c.disclosures) for c in await pull_all(handheld, cursor)] == [
        (given.task_id, "reassigned", None, {}),
        (released.task_id, "released", None, {}),
    ]


async def test_where_a_job_is_is_told_only_while_it_is_to_be_done(
    office: Office, handheld: Handheld
) -> None:
    await office.job("completed")
    await office.job("cancelled")
    for change in await pull_all(handheld):
        assert SITE not in values(change)
        assert PERSONAL in values(change)


async def test_a_worker_gets_back_what_he_gathered_himself(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress")
    answers, answered = disclose({"answers": {"isolated": True}}, salt=21)
    places, placed = disclose({"after-1": {"lat_e7": 1, "lon_e7": 2, "source": "gps"}}, salt=22)
    proof = job.proof(items=(AnswerItem(item_id="isolated"),), personal=answers, position=places)
    signed = handheld.signed(
        "submit_proof",
        job,
        expected_version=job.version,
        manifest=proof["manifest"],
        content_hash=proof["content_hash"],
        disclosures={answers: answered, places: placed},
    )
    answer = await handheld.sync(signed)
    assert answer.outcomes[0].status == "committed"
    (change,) = answer.pull.changes
    assert {answers, places} <= set(change.disclosures)


async def test_of_a_hand_over_the_next_worker_gets_the_words_and_never_the_places(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress")
    answers, answered = disclose({"notes": "the cellar is flooded"}, salt=31)
    places, placed = disclose({"after-1": {"lat_e7": 1, "lon_e7": 2, "source": "gps"}}, salt=32)
    proof = job.proof(personal=answers, position=places)
    signed = handheld.signed(
        "hand_over",
        job,
        manifest=proof["manifest"],
        content_hash=proof["content_hash"],
        disclosures={answers: answered, places: placed},
    )
    assert (await handheld.outcomes(signed))[0].status == "committed"
    job.version += 1
    dispatcher = await office.somebody(Role.DISPATCHER)
    await dispatcher.command("release", job, {"personal": {"reason": "the lift is broken"}})
    next_worker = await office.hire(Role.WORKER)
    await dispatch(office, job, next_worker)
    (change,) = await pull_all(await take_handheld(office, next_worker))
    assert answers in change.disclosures
    assert places not in change.disclosures
    assert change.task is not None
    assert change.task.holders == (next_worker.principal_id,)


async def test_an_amendment_reaches_the_worker_who_holds_the_task(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    cursor = (await pull(handheld)).cursor
    dispatcher = await office.somebody(Role.DISPATCHER)
    await dispatcher.command("amend", job, {"personal": {"instructions": "Ring three times."}})
    (change,) = await pull_all(handheld, cursor)
    assert {"instructions": "Ring three times."} in values(change)


@pytest.mark.parametrize("cursor", ["garbage", "", "####", "Zm9v", "A" * 399, "ü"])
async def test_text_that_is_no_cursor_refuses_the_pull_and_no_command(
    office: Office, handheld: Handheld, cursor: str
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    answer = await handheld.sync(accept, cursor=cursor)
    assert answer.pull == Pull(refused="bad_cursor")
    assert answer.outcomes[0].status == "committed"


async def test_another_workers_cursor_opens_nothing(office: Office, handheld: Handheld) -> None:
    await office.job("assigned")
    other = await take_handheld(office, await office.hire(Role.WORKER))
    cursor = (await pull(handheld)).cursor
    assert (await pull(other, cursor)).refused == "cursor_expired"


async def test_a_cursor_of_an_earlier_life_of_the_log_is_void(
    office: Office, handheld: Handheld
) -> None:
    await office.job("assigned")
    cursor = (await pull(handheld)).cursor
    begin_lineage(office)
    assert (await pull(handheld, cursor)).refused == "cursor_expired"
    assert len(await pull_all(handheld)) == 1
    waited = await handheld.session.get(f"/v1/sync/wait?cursor={cursor}&timeout=0")
    assert_problem(waited, "cursor_expired")


def begin_lineage(office: Office) -> None:
    with office.services.database.write() as connection:
        connection.execute(update(table_of(TenantHead)).values(lineage="lineage-2"))


async def test_a_device_that_is_too_old_gets_no_pull_and_keeps_its_outcomes(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    answer = await handheld.sync(accept, protocol=0)
    assert answer.pull == Pull(refused="protocol_too_old")
    assert answer.outcomes[0].status == "committed"


async def test_a_deactivated_workers_commands_are_decided_and_his_proof_is_handed_over(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress")
    proof = handheld.signed("submit_proof", job, expected_version=job.version)
    worker_id = handheld.device.principal_id
    gone = await office.admin.post(f"/v1/principals/{worker_id}/deactivate")
    assert gone.status == 200, gone.body
    answer = await handheld.sync(proof)
    (outcome,) = answer.outcomes
    assert (outcome.status, outcome.code) == ("rejected", "actor_deactivated")
    assert [event.type for event in outcome.events] == ["evidence.handed_over"]
    handheld.prove(outcome)
    assert answer.pull == Pull(refused="actor_deactivated")
    assert_problem(await handheld.session.get("/v1/sync/wait"), "access_not_allowed")


@pytest.mark.parametrize("wipe", [True, False])
async def test_a_revoked_device_is_told_so_with_the_receipt_that_proves_it(
    office: Office, handheld: Handheld, wipe: bool
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    revoked = await office.admin.post(
        f"/v1/devices/{handheld.device.device_id}/revoke", {"wipe": wipe}
    )
    assert revoked.status == 200, revoked.body
    answer = await handheld.sync(accept)
    assert (answer.outcomes[0].status, answer.outcomes[0].code) == ("rejected", "device_revoked")
    assert answer.pull.refused == "device_revoked"
    assert answer.pull.receipt is not None
    assert answer.pull.event is not None
    verified = verify_receipt(answer.pull.receipt, office.log_keys)
    assert [event.seq for event in verified.leaf.events] == [answer.pull.event.seq]
    told = msgspec.json.decode(answer.pull.event.payload)
    assert told["credential_id"] == handheld.device.device_id
    assert told.get("wipe", False) == wipe


async def test_a_worker_who_may_no_longer_act_carries_nobody_elses_commands(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    other = await take_handheld(office, await office.hire(Role.WORKER))
    await office.admin.post(f"/v1/devices/{other.device.device_id}/revoke", {})
    (outcome,) = await other.outcomes(accept)
    assert (outcome.status, outcome.code) == ("retry", "access_not_allowed")
    assert (await handheld.outcomes(accept))[0].status == "committed"


async def test_the_office_pulls_nothing_and_has_a_cursor_all_the_same(office: Office) -> None:
    await office.job("assigned")
    dispatcher = await office.somebody(Role.DISPATCHER)
    answer = await dispatcher.post("/v1/sync", {"protocol": 1}, key=None)
    page = msgspec.convert(answer.json["pull"], Pull)
    assert (page.changes, page.more, page.refused) == ((), False, None)
    again = await dispatcher.post("/v1/sync", {"protocol": 1, "cursor": page.cursor}, key=None)
    assert "refused" not in again.json["pull"]


async def test_the_logs_key_is_told_to_a_device_that_does_not_know_the_log(
    office: Office, handheld: Handheld
) -> None:
    answer = await handheld.sync()
    (notice,) = answer.keys
    verify_receipt(notice.receipt, office.log_keys)
    added = msgspec.json.decode(notice.event.payload)["credential"]
    assert added["credential_id"] == office.services.keys.log_key.key_id
    job = await office.job("assigned")
    done = await handheld.sync(handheld.signed("accept", job, expected_version=2))
    newest = handheld.prove(done.outcomes[0]).header
    assert (await handheld.sync(newest_header=newest)).keys == ()


async def test_the_limits_and_the_clock_are_said_in_every_answer(
    office: Office, handheld: Handheld
) -> None:
    settings = office.services.settings
    answer = await handheld.sync()
    assert answer.lineage == office.tenant.lineage
    assert (answer.protocol.minimum, answer.protocol.current) == (1, 1)
    assert answer.limits.commands == settings.sync_commands_max
    assert answer.limits.request_bytes == settings.request_bytes_max
    assert answer.limits.upload_bytes == settings.upload_bytes_max
    assert answer.limits.keep_from == 1
    assert answer.backoff == 0


async def test_a_device_keeps_what_is_younger_than_thirty_days(
    office: Office, handheld: Handheld
) -> None:
    (head,) = rows_of(office, "tenant_head")
    office.clock.advance(31 * 86_400)
    again = Handheld(office, handheld.device, await office.open_session(handheld.device))
    answer = await again.sync()
    assert answer.limits.keep_from == head["batch"]


async def test_what_a_device_says_of_itself_is_kept(office: Office, handheld: Handheld) -> None:
    await handheld.sync(device={"build": "1.0", "pending": 3, "upload_bytes_left": 9})
    uses = {row["credential_id"]: row for row in rows_of(office, "credential_use")}
    told = msgspec.json.decode(uses[handheld.device.device_id]["report"])
    assert told == {"build": "1.0", "pending": 3, "upload_bytes_left": 9}
    await handheld.sync(device={"build": "1.0", "pending": 0})
    uses = {row["credential_id"]: row for row in rows_of(office, "credential_use")}
    told = msgspec.json.decode(uses[handheld.device.device_id]["report"])
    assert told == {"build": "1.0"}


async def test_a_wait_ends_at_once_when_there_is_something_to_pull(
    office: Office, handheld: Handheld
) -> None:
    await office.job("assigned")
    waited = await handheld.session.get("/v1/sync/wait")
    assert waited.json == {"changed": True}


async def test_a_wait_without_news_ends_when_its_time_is_over(
    office: Office, handheld: Handheld
) -> None:
    await office.job("assigned")
    cursor = (await pull(handheld)).cursor
    waited = await handheld.session.get(f"/v1/sync/wait?cursor={cursor}&timeout=0")
    assert waited.json == {"changed": False}


async def test_a_wait_hears_of_a_change_and_not_of_other_peoples(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("unassigned")
    cursor = (await pull(handheld)).cursor
    waiting = asyncio.create_task(handheld.session.get(f"/v1/sync/wait?cursor={cursor}&timeout=50"))
    await office.job("assigned", worker=await office.hire(Role.WORKER))
    assert not waiting.done()
    await dispatch(office, job, job.worker)
    assert (await waiting).json == {"changed": True}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("cursor=garbage", "bad_cursor"),
        ("timeout=soon", "invalid_request"),
        ("until=1", "invalid_request"),
    ],
)
async def test_a_wait_that_makes_no_sense_is_refused(
    handheld: Handheld, query: str, code: str
) -> None:
    assert_problem(await handheld.session.get(f"/v1/sync/wait?{query}"), code)
