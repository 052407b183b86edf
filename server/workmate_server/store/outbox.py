"""Subscriptions, the rows that wait for them, and what became of each attempt.

A relay works for a subscription under a lease with a fencing token. Whatever it settles is checked
against the token in the same transaction, so that one that lost its lease changes nothing more. A
row is `pending`, `delivered`, or `dead` after its last attempt.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from workmate_server.store.tables import (
    AuditEvent,
    DeliveryAttempt,
    OutboxRow,
    SubscriptionRow,
    table_of,
)

_SUBSCRIPTIONS = table_of(SubscriptionRow)
_OUTBOX = table_of(OutboxRow)
_ATTEMPTS = table_of(DeliveryAttempt)
_EVENTS = table_of(AuditEvent)

_SETTLE = (
    update(_OUTBOX)
    .where(_OUTBOX.c.outbox_id == bindparam("row"))
    .values(
        status=bindparam("new_status"),
        attempts=bindparam("attempt"),
        next_attempt_at=bindparam("next_at"),
        last_error=bindparam("error"),
    )
)

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


class Lease(Struct, frozen=True):
    """The right of one relay to work for one subscription until `until`."""

    subscription: Subscription
    owner: str
    fencing: int
    until: str


class Due(Struct, frozen=True, kw_only=True):
    """One row whose time has come, with the event that it stands for."""

    outbox_id: str
    tenant_id: str
    subscription_id: str
    seq: int
    event_id: str
    aggregate_id: str
    attempts: int
    type: str
    aggregate_version: int
    recorded_at: str
    payload: bytes


class Settled(Struct, frozen=True, kw_only=True):
    """What one attempt did to its row; `deactivates` ends the whole subscription.

    An attempt is kept apart where it has a status code or a response to tell.
    """

    due: Due
    status: RowStatus
    at: str
    next_attempt_at: str
    status_code: int | None = None
    response: str | None = None
    error: str | None = None
    deactivates: bool = False


def _is(tenant_id: str, subscription_id: str) -> Any:
    c = _SUBSCRIPTIONS.c
    return and_(c.tenant_id == tenant_id, c.subscription_id == subscription_id)


def _rows_of(tenant_id: str, subscription_id: str) -> Any:
    c = _OUTBOX.c
    return and_(c.tenant_id == tenant_id, c.subscription_id == subscription_id)


def _subscription(row: Any) -> Subscription:
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
        insert(_SUBSCRIPTIONS),
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
        select(_SUBSCRIPTIONS).where(_is(tenant_id, subscription_id))
    ).one_or_none()
    return None if row is None else _subscription(row)


def list_subscriptions(
    connection: Connection, tenant_id: str
) -> list[tuple[Subscription, dict[str, int]]]:
    """Return the tenant's subscriptions by id, each with its number of rows by status."""
    counts: dict[str, dict[str, int]] = {}
    c = _OUTBOX.c
    for row in connection.execute(
        select(c.subscription_id, c.status, func.count())
        .where(c.tenant_id == tenant_id, c.status != DELIVERED)
        .group_by(c.subscription_id, c.status)
    ):
        counts.setdefault(row[0], {})[row[1]] = row[2]
    rows = connection.execute(
        select(_SUBSCRIPTIONS)
        .where(_SUBSCRIPTIONS.c.tenant_id == tenant_id)
        .order_by(_SUBSCRIPTIONS.c.subscription_id)
    )
    return [(_subscription(row), counts.get(row.subscription_id, {})) for row in rows]


def remove_subscription(connection: Connection, tenant_id: str, subscription_id: str) -> None:
    """End a subscription and drop its rows; the log keeps the events."""
    mine = select(_OUTBOX.c.outbox_id).where(_rows_of(tenant_id, subscription_id))
    connection.execute(delete(_ATTEMPTS).where(_ATTEMPTS.c.outbox_id.in_(mine)))
    connection.execute(delete(_OUTBOX).where(_rows_of(tenant_id, subscription_id)))
    connection.execute(delete(_SUBSCRIPTIONS).where(_is(tenant_id, subscription_id)))


def find_work(connection: Connection, owner: str, now: str) -> list[tuple[Subscription, int]]:
    """Return the active subscriptions that have due rows and no other owner, with their token."""
    c = _SUBSCRIPTIONS.c
    due = exists().where(
        _OUTBOX.c.tenant_id == c.tenant_id,
        _OUTBOX.c.subscription_id == c.subscription_id,
        _OUTBOX.c.status == PENDING,
        _OUTBOX.c.next_attempt_at <= now,
    )
    free = or_(c.lease_until.is_(None), c.lease_until <= now, c.lease_owner == owner)
    rows = connection.execute(
        select(_SUBSCRIPTIONS)
        .where(c.active == 1, free, due)
        .order_by(c.tenant_id, c.subscription_id)
    )
    return [(_subscription(row), row.fencing) for row in rows]


def claim(
    connection: Connection,
    subscription: Subscription,
    owner: str,
    *,
    seen_fencing: int,
    until: str,
) -> Lease | None:
    """Take a subscription under a new token; None if somebody was faster."""
    claimed = connection.execute(
        update(_SUBSCRIPTIONS)
        .where(
            _is(subscription.tenant_id, subscription.subscription_id),
            _SUBSCRIPTIONS.c.fencing == seen_fencing,
            _SUBSCRIPTIONS.c.active == 1,
        )
        .values(lease_owner=owner, lease_until=until, fencing=seen_fencing + 1)
    )
    return Lease(subscription, owner, seen_fencing + 1, until) if claimed.rowcount else None


def renew(connection: Connection, lease: Lease, until: str | None) -> bool:
    """Hold the lease until `until`, or give it back (None); false if it has been lost.

    Whoever settles rows calls this first: on every engine the update locks the subscription's row,
    so that no other relay can take it before the transaction ends.
    """
    held = connection.execute(
        update(_SUBSCRIPTIONS)
        .where(
            _is(lease.subscription.tenant_id, lease.subscription.subscription_id),
            _SUBSCRIPTIONS.c.fencing == lease.fencing,
        )
        .values(lease_until=until, lease_owner=None if until is None else lease.owner)
    )
    return bool(held.rowcount)


def due_rows(
    connection: Connection, lease: Lease, now: str, limit: int, *, in_order: bool
) -> list[Due]:
    """Return due rows, oldest first; with `in_order` none whose aggregate waits for an older one.

    An aggregate whose oldest pending row waits for its next attempt holds up its own later rows and
    nobody else's.
    """
    found: list[Due] = []
    after_seq = 0
    while len(found) < limit:
        page = _due_page(connection, lease, now, after_seq, limit)
        waiting = _waiting(connection, lease, now, page) if in_order else {}
        found += [due for due in page if due.seq <= waiting.get(due.aggregate_id, due.seq)]
        if len(page) < limit:
            break
        after_seq = page[-1].seq
    return found[:limit]


def _due_page(
    connection: Connection, lease: Lease, now: str, after_seq: int, limit: int
) -> list[Due]:
    subscription = lease.subscription
    c = _OUTBOX.c
    rows = connection.execute(
        select(
            _OUTBOX,
            _EVENTS.c.type,
            _EVENTS.c.aggregate_version,
            _EVENTS.c.recorded_at,
            _EVENTS.c.payload,
        )
        .join(_EVENTS, and_(_EVENTS.c.tenant_id == c.tenant_id, _EVENTS.c.seq == c.seq))
        .where(
            _rows_of(subscription.tenant_id, subscription.subscription_id),
            c.status == PENDING,
            c.next_attempt_at <= now,
            c.seq > after_seq,
        )
        .order_by(c.seq)
        .limit(limit)
    )
    return [Due(**{name: getattr(row, name) for name in Due.__struct_fields__}) for row in rows]


def _waiting(connection: Connection, lease: Lease, now: str, page: Sequence[Due]) -> dict[str, int]:
    """Return the oldest seq that waits for its next attempt, for each aggregate that has one.

    The rows of an aggregate are found through the log, where its events lie together.
    """
    subscription = lease.subscription
    named = {due.aggregate_id for due in page}
    seqs = select(_EVENTS.c.seq).where(
        _EVENTS.c.tenant_id == subscription.tenant_id, _EVENTS.c.aggregate_id.in_(named)
    )
    c = _OUTBOX.c
    rows = connection.execute(
        select(c.aggregate_id, func.min(c.seq))
        .where(
            _rows_of(subscription.tenant_id, subscription.subscription_id),
            c.seq.in_(seqs),
            c.status == PENDING,
            c.next_attempt_at > now,
        )
        .group_by(c.aggregate_id)
    )
    return {row[0]: row[1] for row in rows}


def settle(
    connection: Connection,
    lease: Lease,
    until: str,
    settled: Sequence[Settled],
    *,
    in_order: bool,
) -> bool:
    """Record what attempts did, under the lease, which is renewed; false if it has been lost.

    With `in_order`, the later rows of an aggregate wait as long as the one that failed.
    """
    if not renew(connection, lease, until):
        return False
    connection.execute(
        _SETTLE,
        [
            {
                "row": one.due.outbox_id,
                "new_status": one.status,
                "attempt": one.due.attempts + 1,
                "next_at": one.next_attempt_at,
                "error": one.error,
            }
            for one in settled
        ],
    )
    for one in settled:
        if in_order and one.status == PENDING:
            _hold_up_later_rows(connection, one)
    told = [
        {
            "outbox_id": one.due.outbox_id,
            "attempt": one.due.attempts + 1,
            "at": one.at,
            "status_code": one.status_code,
            "response": one.response,
        }
        for one in settled
        if one.status_code is not None or one.response is not None
    ]
    if told:
        connection.execute(insert(_ATTEMPTS), told)
    if any(one.deactivates for one in settled):
        subscription = lease.subscription
        connection.execute(
            update(_SUBSCRIPTIONS)
            .where(_is(subscription.tenant_id, subscription.subscription_id))
            .values(active=0)
        )
    return True


def _hold_up_later_rows(connection: Connection, failed: Settled) -> None:
    due = failed.due
    later = select(_EVENTS.c.seq).where(
        _EVENTS.c.tenant_id == due.tenant_id,
        _EVENTS.c.aggregate_id == due.aggregate_id,
        _EVENTS.c.aggregate_version > due.aggregate_version,
    )
    connection.execute(
        update(_OUTBOX)
        .where(
            _rows_of(due.tenant_id, due.subscription_id),
            _OUTBOX.c.seq.in_(later),
            _OUTBOX.c.status == PENDING,
            _OUTBOX.c.next_attempt_at < failed.next_attempt_at,
        )
        .values(next_attempt_at=failed.next_attempt_at)
    )


def dead_letters(
    connection: Connection, tenant_id: str, subscription_id: str, after_seq: int, limit: int
) -> list[Any]:
    """Return the dead rows of a subscription after a seq, in order of the log."""
    return list(
        connection.execute(
            select(_OUTBOX)
            .where(
                _rows_of(tenant_id, subscription_id),
                _OUTBOX.c.status == DEAD,
                _OUTBOX.c.seq > after_seq,
            )
            .order_by(_OUTBOX.c.seq)
            .limit(limit)
        )
    )


def last_attempts(connection: Connection, outbox_ids: Sequence[str]) -> dict[str, Any]:
    """Return the last attempt of each row that has one."""
    c = _ATTEMPTS.c
    rows = connection.execute(
        select(_ATTEMPTS).where(c.outbox_id.in_(list(outbox_ids))).order_by(c.attempt)
    )
    return {row.outbox_id: row for row in rows}


def redrive(connection: Connection, tenant_id: str, subscription_id: str, now: str) -> int:
    """Let the dead rows of a subscription be tried again, and the subscription work.

    Returns the number of rows. Attempts are counted on, so that each record of one stays.
    """
    revived = connection.execute(
        update(_OUTBOX)
        .where(_rows_of(tenant_id, subscription_id), _OUTBOX.c.status == DEAD)
        .values(status=PENDING, next_attempt_at=now)
    )
    connection.execute(
        update(_SUBSCRIPTIONS).where(_is(tenant_id, subscription_id)).values(active=1)
    )
    return revived.rowcount
