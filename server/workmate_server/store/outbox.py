"""Subscriptions, and what could not be delivered to them.

Each event has a row for each subscription, written with it. A row is `pending`, `delivered`, or
`dead` after its last attempt; a dead one stays until somebody drives it again.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from sqlalchemy import (
    Connection,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)

from workmate_server.store.tables import (
    DeliveryAttempt,
    OutboxRow,
    SubscriptionRow,
    table_of,
)

SUBSCRIPTIONS = table_of(SubscriptionRow)
OUTBOX = table_of(OutboxRow)
ATTEMPTS = table_of(DeliveryAttempt)

WEBHOOK = "webhook"
RowStatus = Literal["pending", "delivered", "dead"]
PENDING: Final = "pending"
DELIVERED: Final = "delivered"
DEAD: Final = "dead"


class Subscription(Struct, frozen=True, kw_only=True):
    """Somebody who gets every event; `sealed_secret` is there for webhooks only."""

    tenant_id: str
    subscription_id: str
    kind: str
    target: str
    sealed_secret: bytes | None
    active: bool


def is_subscription(tenant_id: str, subscription_id: str) -> Any:
    """Return the condition that a row is this subscription."""
    c = SUBSCRIPTIONS.c
    return and_(c.tenant_id == tenant_id, c.subscription_id == subscription_id)


def rows_of(tenant_id: str, subscription_id: str) -> Any:
    """Return the condition that a row waits, or waited, for this subscription."""
    c = OUTBOX.c
    return and_(c.tenant_id == tenant_id, c.subscription_id == subscription_id)


def read_subscription(row: Any) -> Subscription:
    """Return a subscription from its row."""
    return Subscription(
        tenant_id=row.tenant_id,
        subscription_id=row.subscription_id,
        kind=row.kind,
        target=row.target,
        sealed_secret=row.sealed_secret,
        active=bool(row.active),
    )


def add_subscription(connection: Connection, subscription: Subscription) -> None:
    """Begin a subscription; events committed from now on have rows for it."""
    connection.execute(
        insert(SUBSCRIPTIONS),
        [
            {
                "tenant_id": subscription.tenant_id,
                "subscription_id": subscription.subscription_id,
                "kind": subscription.kind,
                "target": subscription.target,
                "sealed_secret": subscription.sealed_secret,
                "active": int(subscription.active),
                "lease_owner": None,
                "lease_until": None,
                "fencing": 0,
            }
        ],
    )


def find_subscription(
    connection: Connection, tenant_id: str, subscription_id: str
) -> Subscription | None:
    """Return a subscription of the tenant, or None."""
    row = connection.execute(
        select(SUBSCRIPTIONS).where(is_subscription(tenant_id, subscription_id))
    ).one_or_none()
    return None if row is None else read_subscription(row)


def list_subscriptions(
    connection: Connection, tenant_id: str
) -> list[tuple[Subscription, dict[str, int]]]:
    """Return the tenant's subscriptions by id, each with its number of rows by status."""
    counts: dict[str, dict[str, int]] = {}
    c = OUTBOX.c
    for row in connection.execute(
        select(c.subscription_id, c.status, func.count())
        .where(c.tenant_id == tenant_id, c.status != DELIVERED)
        .group_by(c.subscription_id, c.status)
    ):
        counts.setdefault(row[0], {})[row[1]] = row[2]
    rows = connection.execute(
        select(SUBSCRIPTIONS)
        .where(SUBSCRIPTIONS.c.tenant_id == tenant_id)
        .order_by(SUBSCRIPTIONS.c.subscription_id)
    )
    return [(read_subscription(row), counts.get(row.subscription_id, {})) for row in rows]


def remove_subscription(connection: Connection, tenant_id: str, subscription_id: str) -> None:
    """End a subscription and drop its rows; the log keeps the events."""
    mine = select(OUTBOX.c.outbox_id).where(rows_of(tenant_id, subscription_id))
    connection.execute(delete(ATTEMPTS).where(ATTEMPTS.c.outbox_id.in_(mine)))
    connection.execute(delete(OUTBOX).where(rows_of(tenant_id, subscription_id)))
    connection.execute(delete(SUBSCRIPTIONS).where(is_subscription(tenant_id, subscription_id)))


def dead_letters(
    connection: Connection, tenant_id: str, subscription_id: str, after_seq: int, limit: int
) -> list[Any]:
    """Return the dead rows of a subscription after a seq, in order of the log."""
    return list(
        connection.execute(
            select(OUTBOX)
            .where(
                rows_of(tenant_id, subscription_id),
                OUTBOX.c.status == DEAD,
                OUTBOX.c.seq > after_seq,
            )
            .order_by(OUTBOX.c.seq)
            .limit(limit)
        )
    )


def last_attempts(connection: Connection, outbox_ids: Sequence[str]) -> dict[str, Any]:
    """Return the last attempt of each row that has one."""
    c = ATTEMPTS.c
    rows = connection.execute(
        select(ATTEMPTS).where(c.outbox_id.in_(list(outbox_ids))).order_by(c.attempt)
    )
    return {row.outbox_id: row for row in rows}


def redrive(connection: Connection, tenant_id: str, subscription_id: str, now: str) -> int:
    """Let the dead rows of a subscription be tried again, and the subscription work.

    Returns the number of rows. Attempts are counted on, so that each record of one stays.
    """
    revived = connection.execute(
        update(OUTBOX)
        .where(rows_of(tenant_id, subscription_id), OUTBOX.c.status == DEAD)
        .values(status=PENDING, next_attempt_at=now)
    )
    connection.execute(
        update(SUBSCRIPTIONS).where(is_subscription(tenant_id, subscription_id)).values(active=1)
    )
    return revived.rowcount


def look_again(
    connection: Connection, tenant_id: str, kind: str, aggregate_id: str, now: str
) -> None:
    """Make the settled rows of one aggregate due again for subscriptions of a kind.

    For a rule whose facts changed without an event: it looks at the present state once more.
    """
    rules = select(SUBSCRIPTIONS.c.subscription_id).where(
        SUBSCRIPTIONS.c.tenant_id == tenant_id, SUBSCRIPTIONS.c.kind == kind
    )
    c = OUTBOX.c
    connection.execute(
        update(OUTBOX)
        .where(
            c.tenant_id == tenant_id,
            c.aggregate_id == aggregate_id,
            c.status == DELIVERED,
            c.subscription_id.in_(rules),
        )
        .values(status=PENDING, next_attempt_at=now)
    )
