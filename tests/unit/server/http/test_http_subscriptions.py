"""Webhooks by the API: made, listed, ended, and their dead letters."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from support.handheld import rows_of
from support.office import Office, assert_problem
from support.receiver import Received, Receiver, open_receiver
from workmate_server.outbox.relay import Relay, RelayParts
from workmate_server.outbox.webhooks import WebhookCarrier
from workmate_server.store import outbox
from workmate_shared.kernel.table import Role

URL = "https://hooks.example.com/workmate"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as opened:
        yield opened


async def relay_once(office: Office) -> int:
    services = office.services
    parts = RelayParts(
        database=services.database,
        settings=services.settings,
        clock=services.clock,
        entropy=services.entropy,
        run_blocking=services.run_blocking,
        owner="relay-1",
    )
    key = services.keys.sealing_key
    carrier = WebhookCarrier(services.settings, key, services.clock, private_targets=True)
    async with carrier:
        return await Relay(parts, {outbox.WEBHOOK: carrier}).run_once()


async def webhooks(office: Office) -> list[Any]:
    answer = await office.admin.get("/v1/subscriptions")
    assert answer.status == 200, answer.body
    return [one for one in answer.json["items"] if one["kind"] == "webhook"]


async def test_the_secret_is_shown_once_and_sealed_at_rest(office: Office) -> None:
    made = await office.admin.post("/v1/subscriptions", {"url": URL})
    assert made.status == 201, made.body
    secret = made.json["secret"]
    assert secret.startswith("whsec_")
    assert made.headers["Location"] == f"/v1/subscriptions/{made.json['subscription_id']}"
    (listed,) = await webhooks(office)
    assert listed == {
        "subscription_id": made.json["subscription_id"],
        "kind": "webhook",
        "url": URL,
        "active": True,
        "pending": 0,
        "dead": 0,
    }
    (row,) = [row for row in rows_of(office, "subscription") if row["kind"] == "webhook"]
    assert secret.encode() not in row["sealed_secret"]


async def test_a_repeat_makes_no_second_one_and_tells_no_secret(office: Office) -> None:
    first = await office.admin.post("/v1/subscriptions", {"url": URL}, key="one")
    again = await office.admin.post("/v1/subscriptions", {"url": URL}, key="one")
    assert again.status == 200
    assert again.json == {
        "subscription_id": first.json["subscription_id"],
        "url": URL,
        "already_issued": True,
    }
    other = await office.admin.post("/v1/subscriptions", {"url": f"{URL}/2"}, key="one")
    assert_problem(other, "idempotency_key_reused")
    assert len(await webhooks(office)) == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.com",
        "ftp://hooks.example.com/",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "https://name:word@hooks.example.com/",
        "https://hooks.example.com/#part",
        "https://hooks.example.com:99999/",
        "https://hooks.example.com/ü",
        "https://hooks.example.com/a b",
        "https://" + "a" * 2000,
    ],
)
async def test_a_url_that_is_none_is_refused(office: Office, url: str) -> None:
    answer = await office.admin.post("/v1/subscriptions", {"url": url})
    assert answer.status == 400
    assert answer.json["path"] == "$.url"
    assert await webhooks(office) == []


async def test_only_administrators_reach_subscriptions(office: Office) -> None:
    made = await office.admin.post("/v1/subscriptions", {"url": URL})
    path = f"/v1/subscriptions/{made.json['subscription_id']}"
    for person in (await office.somebody(Role.SUPERVISOR), await office.somebody(Role.INTEGRATION)):
        assert_problem(await person.post("/v1/subscriptions", {"url": URL}), "access_not_allowed")
        for method, address in (
            ("GET", "/v1/subscriptions"),
            ("DELETE", path),
            ("GET", f"{path}/dead-letters"),
            ("POST", f"{path}/redrive"),
        ):
            assert_problem(await person.call(method, address), "access_not_allowed")


async def test_another_tenants_subscription_is_not_there(office: Office) -> None:
    made = await office.admin.post("/v1/subscriptions", {"url": URL})
    path = f"/v1/subscriptions/{made.json['subscription_id']}"
    _, stranger = await office.found_tenant()
    assert all(one["url"] != URL for one in (await stranger.get("/v1/subscriptions")).json["items"])
    for method, address in (
        ("DELETE", path),
        ("GET", f"{path}/dead-letters"),
        ("POST", f"{path}/redrive"),
    ):
        assert_problem(await stranger.call(method, address), "not_found")
    assert len(await webhooks(office)) == 1


async def test_an_event_reaches_a_webhook_without_any_personal_value(
    office: Office, receiver: Receiver
) -> None:
    await office.admin.post("/v1/subscriptions", {"url": receiver.url})
    await office.job("assigned")
    assert (await webhooks(office))[0]["pending"] > 0
    assert await relay_once(office) == len(receiver.received)
    assert "task.assigned" in [kind for _, kind in receiver.told()]
    for canary in (b"Frau M", b"Lange Gasse", b"3F45CB", b"nearest with"):
        assert not any(canary in one.body for one in receiver.received)
    assert (await webhooks(office))[0]["pending"] == 0


async def test_dead_letters_are_listed_in_pages_and_driven_again(
    office: Office, receiver: Receiver
) -> None:
    async def gone(_received: Received) -> web.StreamResponse:
        return web.Response(status=410, text="closed")

    made = await office.admin.post("/v1/subscriptions", {"url": receiver.url})
    path = f"/v1/subscriptions/{made.json['subscription_id']}"
    for _ in range(2):
        await office.job("unassigned")
    receiver.answer = gone
    await relay_once(office)
    (listed,) = await webhooks(office)
    assert not listed["active"]
    (first, *_) = (await office.admin.get(f"{path}/dead-letters")).json["items"]
    assert (first["attempts"], first["last_error"]) == (1, "the receiver answered 410")
    assert first["last_attempt"]["response"] == "closed"
    dead, page = 0, await office.admin.get(f"{path}/dead-letters?limit=1")
    while page.json["items"]:
        dead += len(page.json["items"])
        if page.json["next"] is None:
            break
        page = await office.admin.get(f"{path}/dead-letters?limit=1&cursor={page.json['next']}")
    assert dead == listed["dead"]
    receiver.answer = Receiver().answer
    driven = await office.admin.post(f"{path}/redrive")
    assert driven.json == {"redriven": dead}
    await relay_once(office)
    (listed,) = await webhooks(office)
    assert (listed["active"], listed["pending"], listed["dead"]) == (True, 0, 0)


async def test_what_waited_for_a_subscription_that_ended_is_dropped(
    office: Office, receiver: Receiver
) -> None:
    made = await office.admin.post("/v1/subscriptions", {"url": receiver.url})
    await office.job("assigned")
    path = f"/v1/subscriptions/{made.json['subscription_id']}"
    assert (await office.admin.call("DELETE", path)).status == 204
    assert await webhooks(office) == []
    assert_problem(await office.admin.call("DELETE", path), "not_found")
    await office.job("unassigned")
    assert await relay_once(office) == 0
    assert receiver.received == []
