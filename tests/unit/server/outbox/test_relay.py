"""The relay between a real log and a real receiver."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from support.log import Log, open_log
from support.receiver import Answer, ForwardClock, Received, Receiver, open_receiver
from support.relays import HOOK, open_relay, outbox_rows, subscribe
from workmate_server.store import outbox
from workmate_shared.kernel.ids import task_id_for


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    async with open_log(tmp_path) as opened:
        yield opened


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as opened:
        yield opened


def answer_by(statuses: dict[str, int], **headers: str) -> Answer:
    """Answer each aggregate with a status; others are taken."""

    async def answer(received: Received) -> web.StreamResponse:
        status = statuses.get(received.event["subject"], 204)
        return web.Response(status=status, headers=headers)

    return answer


async def create(log: Log, external_id: str) -> str:
    """Create a task and amend it, so that it has two events."""
    task_id = task_id_for(log.tenant_id, "nyc311", external_id)
    named: dict[str, Any] = {"aggregate_id": task_id}
    await log.run(
        log.make("create_task", external_id=external_id, command_id=f"make-{task_id}", **named),
        log.make("amend", expected_version=1, command_id=f"amend-{task_id}", **named),
    )
    return task_id


async def test_every_event_is_delivered_once_and_settled(log: Log, receiver: Receiver) -> None:
    subscribe(log, receiver)
    await log.walk("in_progress")
    async with open_relay(log) as relay:
        assert await relay.run_once() == 5
        assert await relay.run_once() == 0
    assert [kind for _, kind in receiver.told()] == [
        "task.created",
        "task.assigned",
        "task.accepted",
        "task.en_route",
        "task.started",
    ]
    assert {row["status"] for row in outbox_rows(log)} == {"delivered"}
    events = {row["event_id"]: row["payload"] for row in log.rows("audit_event")}
    for got in receiver.received:
        assert events[got.headers["webhook-id"]] in got.body


async def test_an_aggregate_that_fails_holds_up_only_itself(log: Log, receiver: Receiver) -> None:
    subscribe(log, receiver)
    failing, fine = await create(log, "A"), await create(log, "B")
    receiver.answer = answer_by({failing: 500})
    clock = ForwardClock()
    async with open_relay(log, clock=clock) as relay:
        await relay.run_once()
        assert receiver.told().count((failing, "task.created")) == 1
        assert (failing, "task.amended") not in receiver.told()
        assert [kind for name, kind in receiver.told() if name == fine] == [
            "task.created",
            "task.amended",
        ]
        waiting = outbox_rows(log)[0]
        assert (waiting["status"], waiting["attempts"]) == ("pending", 1)
        receiver.answer = answer_by({})
        clock.forward(3600)
        assert await relay.run_once() == 2
    assert [kind for name, kind in receiver.told() if name == failing] == [
        "task.created",
        "task.created",
        "task.amended",
    ]


async def test_a_later_row_waits_while_an_older_one_of_its_aggregate_backs_off(
    log: Log, receiver: Receiver
) -> None:
    subscribe(log, receiver)
    failing = await create(log, "A")
    receiver.answer = answer_by({failing: 503}, **{"Retry-After": "60"})
    async with open_relay(log) as relay:
        assert await relay.run_once() == 1
        await log.run(
            log.make("amend", aggregate_id=failing, expected_version=2, command_id="late")
        )
        assert await relay.run_once() == 0
    assert receiver.told() == [(failing, "task.created")]


async def test_retry_after_is_waited_for(log: Log, receiver: Receiver) -> None:
    subscribe(log, receiver)
    await log.walk("unassigned")
    receiver.answer = answer_by({log.task_id: 429}, **{"Retry-After": "900"})
    clock = ForwardClock()
    async with open_relay(log, clock=clock) as relay:
        assert await relay.run_once() == 1
        clock.forward(800)
        assert await relay.run_once() == 0
        clock.forward(101)
        assert await relay.run_once() == 1


async def test_after_the_last_attempt_a_row_is_a_dead_letter_and_the_next_one_goes_out(
    log: Log, receiver: Receiver
) -> None:
    subscribe(log, receiver)
    failing = await create(log, "A")
    receiver.answer = answer_by({failing: 500})
    clock = ForwardClock()
    async with open_relay(log, clock=clock, webhook_attempts_max=2) as relay:
        for _ in range(2):
            await relay.run_once()
            clock.forward(86_400)
        first, second = outbox_rows(log)
        assert (first["status"], first["attempts"]) == ("dead", 2)
        assert first["last_error"] == "the receiver answered 500"
        assert second["status"] == "pending"
        receiver.answer = answer_by({})
        await relay.run_once()
    assert receiver.told()[-1] == (failing, "task.amended")
    attempts = [
        (row["attempt"], row["status_code"])
        for row in log.rows("delivery_attempt")
        if row["outbox_id"] == first["outbox_id"]
    ]
    assert sorted(attempts) == [(1, 500), (2, 500)]


async def test_a_dead_letter_that_is_driven_again_has_all_its_attempts_again(
    log: Log, receiver: Receiver
) -> None:
    subscribe(log, receiver)
    await log.walk("unassigned")
    receiver.answer = answer_by({log.task_id: 500})
    clock = ForwardClock()
    async with open_relay(log, clock=clock, webhook_attempts_max=2) as relay:
        for _ in range(2):
            await relay.run_once()
            clock.forward(86_400)
        with log.database.write() as connection:
            now = log.rows("outbox")[0]["next_attempt_at"]
            assert outbox.redrive(connection, log.tenant_id, HOOK, now) == 1
        await relay.run_once()
        (row,) = outbox_rows(log)
        assert (row["status"], row["attempts"]) == ("pending", 3)
        receiver.answer = answer_by({})
        clock.forward(86_400)
        await relay.run_once()
    (row,) = outbox_rows(log)
    assert (row["status"], row["attempts"], row["last_error"]) == ("delivered", 4, None)


async def test_a_receiver_that_is_gone_ends_the_subscription(log: Log, receiver: Receiver) -> None:
    subscribe(log, receiver)
    receiver.answer = answer_by({await create(log, "A"): 410})
    async with open_relay(log) as relay:
        assert await relay.run_once() == 1
        assert await relay.run_once() == 0
    (subscription,) = [r for r in log.rows("subscription") if r["subscription_id"] == HOOK]
    assert subscription["active"] == 0
    assert [row["status"] for row in outbox_rows(log)] == ["dead", "pending"]
    await create(log, "B")
    assert len(outbox_rows(log)) == 2


async def test_one_subscription_is_worked_for_by_one_relay_at_a_time(
    log: Log, receiver: Receiver
) -> None:
    subscribe(log, receiver)
    await log.walk("assigned")
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def hold(_received: Received) -> web.StreamResponse:
        arrived.set()
        await go_on.wait()
        return web.Response(status=204)

    receiver.answer = hold
    async with open_relay(log) as first, open_relay(log, owner="relay-2") as second:
        working = asyncio.create_task(first.run_once())
        await arrived.wait()
        assert await second.run_once() == 0
        go_on.set()
        assert await working == 2
    assert len(receiver.received) == 2


async def test_a_relay_that_lost_its_lease_settles_nothing_more(
    log: Log, receiver: Receiver
) -> None:
    subscribe(log, receiver)
    await log.walk("assigned")
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def hold_first(_received: Received) -> web.StreamResponse:
        if not arrived.is_set():
            arrived.set()
            await go_on.wait()
            return web.Response(status=500)
        return web.Response(status=204)

    receiver.answer = hold_first
    later = ForwardClock()
    later.forward(3600)
    async with open_relay(log) as slow, open_relay(log, owner="relay-2", clock=later) as other:
        working = asyncio.create_task(slow.run_once())
        await arrived.wait()
        assert await other.run_once() == 2
        go_on.set()
        assert await working == 1
        assert [row["status"] for row in outbox_rows(log)] == ["delivered", "delivered"]
        assert [row["attempts"] for row in outbox_rows(log)] == [1, 1]


async def test_what_was_delivered_and_not_settled_is_delivered_again_under_the_same_id(
    log: Log, receiver: Receiver
) -> None:
    subscribe(log, receiver)
    await log.walk("unassigned")
    later = ForwardClock()
    later.forward(3600)
    async with open_relay(log) as relay, open_relay(log, owner="relay-2", clock=later) as other:
        crashed, over = asyncio.Event(), asyncio.Event()

        async def crash(_received: Received) -> web.StreamResponse:
            crashed.set()
            await over.wait()
            return web.Response()

        receiver.answer = crash
        working = asyncio.create_task(relay.run_once())
        await crashed.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        receiver.answer = answer_by({})
        assert await other.run_once() == 1
        over.set()
    ids = {got.headers["webhook-id"] for got in receiver.received}
    assert (len(receiver.received), len(ids)) == (2, 1)
    assert outbox_rows(log)[0]["status"] == "delivered"


async def test_a_running_relay_takes_what_comes_and_ends_when_told(
    log: Log, receiver: Receiver
) -> None:
    subscribe(log, receiver)
    stop, all_there = asyncio.Event(), asyncio.Event()

    async def count(_received: Received) -> web.StreamResponse:
        if len(receiver.received) == 3:
            all_there.set()
        return web.Response(status=204)

    receiver.answer = count
    async with open_relay(log) as relay:
        running = asyncio.create_task(relay.run(stop))
        await log.walk("accepted")
        await all_there.wait()
        stop.set()
        await running
    assert {row["status"] for row in outbox_rows(log)} == {"delivered"}


async def test_a_slow_receiver_holds_up_no_other_subscription(log: Log, receiver: Receiver) -> None:
    subscribe(log, receiver, "slow", receiver.url.replace("/hook", "/slow"))
    stop, go_on, other_there = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with open_receiver() as quick:

        async def hold(_received: Received) -> web.StreamResponse:
            await go_on.wait()
            return web.Response(status=204)

        async def count(_received: Received) -> web.StreamResponse:
            if len(quick.received) == 3:
                other_there.set()
            return web.Response(status=204)

        receiver.answer, quick.answer = hold, count
        subscribe(log, quick)
        async with open_relay(log) as relay:
            running = asyncio.create_task(relay.run(stop))
            await log.walk("accepted")
            await other_there.wait()
            stop.set()
            go_on.set()
            await running


async def test_a_subscription_of_an_unknown_kind_waits(log: Log, receiver: Receiver) -> None:
    subscribe(log, receiver)
    log.tamper("UPDATE subscription SET kind = 'stream'")
    await log.walk("unassigned")
    async with open_relay(log) as relay:
        assert await relay.run_once() == 0
