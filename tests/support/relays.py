"""Relays with real webhooks over a real log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support.log import Log
from support.receiver import ForwardClock, Receiver
from workmate_server.config import Settings
from workmate_server.engine.blocking import WorkerThreads
from workmate_server.outbox.relay import Relay, RelayParts
from workmate_server.outbox.signing import make_secret, seal_secret
from workmate_server.outbox.webhooks import WebhookCarrier
from workmate_server.store import outbox
from workmate_server.store.outbox import Subscription
from workmate_server.telemetry.system import SystemEntropy

HOOK = "hook-1"


def subscribe(
    log: Log, receiver: Receiver, subscription_id: str = HOOK, url: str | None = None
) -> str:
    """Make a webhook to the receiver; return its secret."""
    entropy = SystemEntropy()
    secret = make_secret(entropy)
    with log.database.write() as connection:
        outbox.add_subscription(
            connection,
            Subscription(
                tenant_id=log.tenant_id,
                subscription_id=subscription_id,
                kind=outbox.WEBHOOK,
                target=url or receiver.url,
                sealed_secret=seal_secret(secret, log.keys.sealing_key, entropy),
                active=True,
            ),
        )
    return secret


@asynccontextmanager
async def open_relay(
    log: Log, *, owner: str = "relay-1", clock: ForwardClock | None = None, **limits: Any
) -> AsyncIterator[Relay]:
    """Open a relay for webhooks on this host."""
    wall, threads = clock or ForwardClock(), WorkerThreads(2)
    settings = Settings(**{"relay_poll_seconds": 0.01, "webhook_timeout_seconds": 5.0} | limits)
    parts = RelayParts(
        database=log.database,
        settings=settings,
        clock=wall,
        entropy=SystemEntropy(),
        run_blocking=threads,
        owner=owner,
    )
    carrier = WebhookCarrier(settings, log.keys.sealing_key, wall, private_targets=True)
    try:
        async with carrier:
            yield Relay(parts, {outbox.WEBHOOK: carrier})
    finally:
        threads.close()


def outbox_rows(log: Log, subscription_id: str = HOOK) -> list[dict[str, Any]]:
    """Return the rows of a subscription in order of the log."""
    rows = [row for row in log.rows("outbox") if row["subscription_id"] == subscription_id]
    return sorted(rows, key=lambda row: int(row["seq"]))
