"""`outbox list` and `outbox redrive`: what waits to be delivered, and another try for the dead."""

from msgspec import Struct

from workmate_server.bootstrap import Parts, StartError, open_parts
from workmate_server.commands.result import Result
from workmate_server.config import Locations
from workmate_server.store import outbox
from workmate_shared.kernel.instants import format_instant


class DeadLetter(Struct, frozen=True, kw_only=True):
    """One event that was given up, for one subscription."""

    outbox_id: str
    event_id: str
    aggregate_id: str
    seq: int
    attempts: int
    last_error: str | None


class Waiting(Struct, frozen=True, kw_only=True):
    """One subscription: how many of its rows wait, how many are dead, and the oldest dead ones."""

    subscription_id: str
    kind: str
    target: str
    active: bool
    pending: int
    dead: int
    dead_letters: tuple[DeadLetter, ...]


class Deliveries(Struct, frozen=True):
    """What `outbox list` tells."""

    subscriptions: tuple[Waiting, ...]


class Redriven(Struct, frozen=True):
    """How many dead rows are tried again."""

    redriven: int


def list_deliveries(locations: Locations, tenant_id: str | None) -> Result:
    """List the subscriptions of a tenant and what waits for each.

    Raises StartError, KeyFolderError, ConfigError or SchemaVersionError.
    """
    with open_parts(locations) as parts:
        parts.database.require_current_schema()
        tenant = parts.tenant(tenant_id)
        found = _read(parts, tenant.tenant_id)
    lines = [
        f"{one.subscription_id}  {one.kind}  {one.target}  "
        f"{'active' if one.active else 'ended'}  {one.pending} pending  {one.dead} dead"
        for one in found
    ]
    lines += [
        f"dead: {letter.outbox_id}  event {letter.event_id}  {letter.last_error or ''}".rstrip()
        for one in found
        for letter in one.dead_letters
    ]
    return Result(value=Deliveries(tuple(found)), lines=lines)


def redrive_deliveries(locations: Locations, tenant_id: str | None, subscription_id: str) -> Result:
    """Let the dead rows of a subscription be tried again, and the subscription work.

    Raises StartError, `subscription_unknown` among others; KeyFolderError, ConfigError or
    SchemaVersionError.
    """
    with open_parts(locations) as parts:
        parts.database.require_current_schema()
        tenant = parts.tenant(tenant_id)
        now = format_instant(parts.clock.now())
        with parts.database.write() as connection:
            known = outbox.find_subscription(connection, tenant.tenant_id, subscription_id)
            if known is None:
                detail = f"there is no subscription {subscription_id}"
                raise StartError("subscription_unknown", detail)
            count = outbox.redrive(connection, tenant.tenant_id, subscription_id, now)
    return Result(value=Redriven(count), lines=(f"{count} deliveries are tried again.",))


def _read(parts: Parts, tenant_id: str) -> list[Waiting]:
    with parts.database.read() as connection:
        listed = outbox.list_subscriptions(connection, tenant_id)
        limit = parts.settings.list_page_default
        letters = {
            one.subscription_id: outbox.dead_letters(
                connection, tenant_id, one.subscription_id, 0, limit
            )
            for one, _ in listed
        }
    return [
        Waiting(
            subscription_id=one.subscription_id,
            kind=one.kind,
            target=one.target,
            active=one.active,
            pending=counts.get(outbox.PENDING, 0),
            dead=counts.get(outbox.DEAD, 0),
            dead_letters=tuple(
                DeadLetter(**{name: getattr(row, name) for name in DeadLetter.__struct_fields__})
                for row in letters[one.subscription_id]
            ),
        )
        for one, counts in listed
    ]
