"""What a relay does in the database: claim, take what is due, settle.

A relay works for a subscription under a lease with a fencing token. Whatever it settles is checked
against the token in the same transaction, so that one that lost its lease changes nothing more.
"""

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, and_, bindparam, exists, func, insert, or_, select, update

from workmate_server.store.outbox import (
    ATTEMPTS,
    OUTBOX,
    PENDING,
    SUBSCRIPTIONS,
    RowStatus,
    Subscription,
    is_subscription,
    read_subscription,
    rows_of,
)
from workmate_server.store.tables import AuditEvent, table_of

_EVENTS = table_of(AuditEvent)

_SETTLE = (
    update(OUTBOX)
    .where(OUTBOX.c.outbox_id == bindparam("row"))
    .values(
        status=bindparam("new_status"),
        attempts=bindparam("attempt"),
        next_attempt_at=bindparam("next_at"),
        last_error=bindparam("error"),
    )
)


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


def find_work(connection: Connection, owner: str, now: str) -> list[tuple[Subscription, int]]:
    """Return the active subscriptions that have due rows and no other owner, with their token."""
    c = SUBSCRIPTIONS.c
    due = exists().where(
        OUTBOX.c.tenant_id == c.tenant_id,
        OUTBOX.c.subscription_id == c.subscription_id,
        OUTBOX.c.status == PENDING,
        OUTBOX.c.next_attempt_at <= now,
    )
    free = or_(c.lease_until.is_(None), c.lease_until <= now, c.lease_owner == owner)
    rows = connection.execute(
        select(SUBSCRIPTIONS)
        .where(c.active == 1, free, due)
        .order_by(c.tenant_id, c.subscription_id)
    )
    return [(read_subscription(row), row.fencing) for row in rows]


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
        update(SUBSCRIPTIONS)
        .where(
            is_subscription(subscription.tenant_id, subscription.subscription_id),
            SUBSCRIPTIONS.c.fencing == seen_fencing,
            SUBSCRIPTIONS.c.active == 1,
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
        update(SUBSCRIPTIONS)
        .where(
            is_subscription(lease.subscription.tenant_id, lease.subscription.subscription_id),
            SUBSCRIPTIONS.c.fencing == lease.fencing,
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
    c = OUTBOX.c
    rows = connection.execute(
        select(
            OUTBOX,
            _EVENTS.c.type,
            _EVENTS.c.aggregate_version,
            _EVENTS.c.recorded_at,
            _EVENTS.c.payload,
        )
        .join(_EVENTS, and_(_EVENTS.c.tenant_id == c.tenant_id, _EVENTS.c.seq == c.seq))
        .where(
            rows_of(subscription.tenant_id, subscription.subscription_id),
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
    c = OUTBOX.c
    rows = connection.execute(
        select(c.aggregate_id, func.min(c.seq))
        .where(
            rows_of(subscription.tenant_id, subscription.subscription_id),
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
        connection.execute(insert(ATTEMPTS), told)
    if any(one.deactivates for one in settled):
        subscription = lease.subscription
        connection.execute(
            update(SUBSCRIPTIONS)
            .where(is_subscription(subscription.tenant_id, subscription.subscription_id))
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
        update(OUTBOX)
        .where(
            rows_of(due.tenant_id, due.subscription_id),
            OUTBOX.c.seq.in_(later),
            OUTBOX.c.status == PENDING,
            OUTBOX.c.next_attempt_at < failed.next_attempt_at,
        )
        .values(next_attempt_at=failed.next_attempt_at)
    )
