"""Which events wait in the outbox for whom."""

from pathlib import Path

import pytest

from support.log import Log, open_log
from workmate_server.engine.subscribers import AUTOMATIC_APPROVAL_KIND, gets
from workmate_server.outbox.rules import AUTOMATIC_APPROVAL, RULE_PREFIX
from workmate_server.store import outbox
from workmate_server.store.outbox import WEBHOOK, Subscription
from workmate_shared.wire.registry import EVENT_TYPES


def subscribe(log: Log, kind: str) -> None:
    with log.database.write() as connection:
        outbox.add_subscription(
            connection,
            Subscription(
                tenant_id=log.tenant_id,
                subscription_id=kind,
                kind=kind,
                target=kind,
                sealed_secret=None,
                active=True,
            ),
        )


def waiting(log: Log, kind: str) -> list[str]:
    """Return the types of the events that wait for a subscription, in order."""
    types = {row["seq"]: row["type"] for row in log.rows("audit_event")}
    rows = [row for row in log.rows("outbox") if row["subscription_id"] == kind]
    return [types[row["seq"]] for row in sorted(rows, key=lambda row: row["seq"])]


async def test_a_webhook_gets_every_event_and_a_rule_those_that_it_acts_on(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        for kind in (WEBHOOK, AUTOMATIC_APPROVAL_KIND):
            subscribe(log, kind)
        await log.walk("proof_pending")
        assert len(waiting(log, WEBHOOK)) == 6
        assert waiting(log, AUTOMATIC_APPROVAL_KIND) == ["task.proof_submitted"]


def test_the_rule_is_known_by_the_kind_of_its_subscription() -> None:
    assert AUTOMATIC_APPROVAL_KIND == RULE_PREFIX + AUTOMATIC_APPROVAL


@pytest.mark.parametrize("event_type", sorted(EVENT_TYPES))
def test_a_kind_that_nobody_has_described_gets_everything(event_type: str) -> None:
    assert gets("rule:of_tomorrow", event_type)
