"""Deliveries over real HTTP to a receiver on the loopback."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from support.receiver import Received, Receiver, open_receiver
from workmate_server.config import Settings
from workmate_server.outbox.carriers import Attempt
from workmate_server.outbox.signing import make_secret, seal_secret
from workmate_server.outbox.webhooks import WebhookCarrier
from workmate_server.store.deliveries import Due
from workmate_server.store.outbox import Subscription
from workmate_server.telemetry.system import SystemClock, SystemEntropy

KEY = bytes(range(32))
SECRET = make_secret(SystemEntropy())
DUE = Due(
    outbox_id="hook-1/7",
    tenant_id="tenant-1",
    subscription_id="hook-1",
    seq=7,
    event_id="event-7",
    aggregate_id="task-1",
    attempts=0,
    type="task.accepted",
    aggregate_version=3,
    recorded_at="2026-03-01T09:00:00.000Z",
    payload=b'{"type":"task.accepted"}',
)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as opened:
        yield opened


async def deliver(
    url: str, *, private: bool = True, key: bytes = KEY, timeout_seconds: float = 5.0
) -> Attempt:
    settings = Settings(webhook_timeout_seconds=timeout_seconds)
    carrier = WebhookCarrier(settings, key, SystemClock(), private_targets=private)
    subscription = Subscription(
        tenant_id="tenant-1",
        subscription_id="hook-1",
        kind="webhook",
        target=url,
        sealed_secret=seal_secret(SECRET, KEY, SystemEntropy()),
        active=True,
    )
    async with carrier:
        return await carrier.deliver(subscription, DUE)


def answering(status: int, **headers: str) -> Receiver:
    receiver = Receiver()

    async def answer(_received: Received) -> web.StreamResponse:
        return web.Response(status=status, headers=headers, text="so it is")

    receiver.answer = answer
    return receiver


async def test_an_event_arrives_signed_so_that_its_receiver_can_check_it(
    receiver: Receiver,
) -> None:
    attempt = await deliver(receiver.url)
    assert attempt == Attempt(delivered=True, status_code=204, response="")
    (got,) = receiver.received
    content = b".".join(
        (got.headers["webhook-id"].encode(), got.headers["webhook-timestamp"].encode(), got.body)
    )
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    wanted = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{wanted}"
    assert got.headers["webhook-id"] == got.event["id"] == "event-7"
    assert got.headers["content-type"] == "application/cloudevents+json"


@pytest.mark.parametrize("status", [199 + 1, 201, 202, 204])
async def test_every_2xx_is_a_delivery(receiver: Receiver, status: int) -> None:
    receiver.answer = answering(status).answer
    assert (await deliver(receiver.url)).delivered


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500, 503])
async def test_any_other_answer_is_a_failure_that_is_kept(receiver: Receiver, status: int) -> None:
    receiver.answer = answering(status, Location=receiver.url).answer
    attempt = await deliver(receiver.url)
    assert not attempt.delivered
    assert not attempt.gone
    assert attempt.status_code == status
    assert attempt.response == "so it is"
    assert len(receiver.received) == 1


async def test_a_receiver_says_when_to_come_back(receiver: Receiver) -> None:
    receiver.answer = answering(503, **{"Retry-After": "77"}).answer
    assert (await deliver(receiver.url)).retry_after_seconds == 77


async def test_a_receiver_that_is_gone_says_so(receiver: Receiver) -> None:
    receiver.answer = answering(410).answer
    assert (await deliver(receiver.url)).gone


async def test_a_receiver_that_takes_too_long_is_a_failure(receiver: Receiver) -> None:
    never = asyncio.Event()

    async def hang(_received: Received) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    receiver.answer = hang
    attempt = await deliver(receiver.url, timeout_seconds=0.2)
    never.set()
    assert attempt == Attempt(delivered=False, error="the receiver took too long")


async def test_of_a_long_answer_only_the_beginning_is_read_and_less_is_kept(
    receiver: Receiver,
) -> None:
    async def flood(_received: Received) -> web.StreamResponse:
        return web.Response(status=500, body=b"\xff\x00" + b"x" * 10_000_000)

    receiver.answer = flood
    attempt = await deliver(receiver.url)
    assert attempt.status_code == 500
    assert attempt.response is not None
    assert len(attempt.response) == 500
    assert "\x00" not in attempt.response


async def test_nobody_listening_is_a_failure() -> None:
    async with open_receiver() as receiver:
        url = receiver.url
    attempt = await deliver(url)
    assert not attempt.delivered
    assert attempt.status_code is None
    assert attempt.error


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
async def test_an_own_address_is_never_connected_to_unless_the_operator_allows_it(
    receiver: Receiver, host: str
) -> None:
    attempt = await deliver(receiver.url.replace("127.0.0.1", host), private=False)
    assert not attempt.delivered
    assert attempt.error
    assert receiver.received == []


async def test_a_secret_that_cannot_be_opened_sends_nothing(receiver: Receiver) -> None:
    attempt = await deliver(receiver.url, key=bytes(32))
    assert attempt == Attempt(delivered=False, error="the sealing key does not open this secret")
    assert receiver.received == []
