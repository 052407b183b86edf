"""The relay: takes what waits for each subscription and hands it to whoever delivers it.

Each event is delivered at least once, in order per aggregate; an aggregate that fails holds up only
itself, and a rule's row holds up nothing. A relay works under a lease: rows that it cannot settle
any more, because another took over, are the other's. Delivery never touches a task.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from workmate_server.config import Settings
from workmate_server.engine.blocking import RunBlocking
from workmate_server.outbox.carriers import Attempt, Carrier
from workmate_server.outbox.retries import backoff_seconds
from workmate_server.ports import Clock, Entropy
from workmate_server.store import deliveries
from workmate_server.store.database import Database, DatabaseAwayError
from workmate_server.store.deliveries import Due, Lease, Settled
from workmate_server.store.outbox import DEAD, DELIVERED, PENDING, RowStatus, Subscription
from workmate_shared.kernel.instants import format_instant

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RelayParts:
    """What a relay works with; `owner` names it among others, and is new for each process."""

    database: Database
    settings: Settings
    clock: Clock
    entropy: Entropy
    run_blocking: RunBlocking
    owner: str

    def instant(self, after_seconds: float = 0.0) -> str:
        """Return the present moment, or one so many seconds later, in UTC."""
        return format_instant(self.clock.now() + timedelta(seconds=after_seconds))


class Relay:
    """One worker over all subscriptions of a database; any number of them may run.

    `carriers` are those who deliver, by kind of subscription; rows of other kinds wait.
    """

    def __init__(self, parts: RelayParts, carriers: Mapping[str, Carrier]) -> None:
        self._parts = parts
        self._carriers = carriers

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; what is under way is finished.

        Subscriptions are worked for side by side, so that a slow receiver holds up no other.
        """
        running: dict[str, asyncio.Task[int]] = {}
        stopping = asyncio.ensure_future(stop.wait())
        try:
            while not stop.is_set():
                await self._start_work(running)
                await self._until_news(stopping, running)
                if _reap(running):
                    await self._parts.clock.sleep(self._parts.settings.relay_poll_seconds)
            await asyncio.gather(*running.values(), return_exceptions=True)
            _reap(running)
        finally:
            for task in (stopping, *running.values()):
                task.cancel()

    async def run_once(self) -> int:
        """Try everything that is due now, once; return the number of rows that were tried.

        Raises DatabaseAwayError; what was delivered and not settled is delivered again.
        """
        work = await self._parts.run_blocking(self._find_work)
        return sum(await _all(self._work_for(*found) for found in work))

    async def _start_work(self, running: dict[str, asyncio.Task[int]]) -> None:
        try:
            work = await self._parts.run_blocking(self._find_work)
        except DatabaseAwayError:
            LOG.warning("the relay cannot reach the database", exc_info=True)
            return
        for subscription, fencing in work:
            name = subscription.subscription_id
            if name not in running:
                running[name] = asyncio.create_task(self._work_for(subscription, fencing))

    async def _until_news(
        self, stopping: asyncio.Future[Any], running: Mapping[str, asyncio.Task[int]]
    ) -> None:
        poll = asyncio.ensure_future(
            self._parts.clock.sleep(self._parts.settings.relay_poll_seconds)
        )
        try:
            waits: set[asyncio.Future[Any]] = {stopping, poll, *running.values()}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            poll.cancel()

    async def _work_for(self, subscription: Subscription, fencing: int) -> int:
        lease = await self._parts.run_blocking(self._claim, subscription, fencing)
        if lease is None:
            return 0
        return await _Pass(self._parts, self._carriers[subscription.kind], lease).run()

    def _find_work(self) -> list[tuple[Subscription, int]]:
        with self._parts.database.read() as connection:
            work = deliveries.find_work(connection, self._parts.owner, self._parts.instant())
        return [found for found in work if found[0].kind in self._carriers]

    def _claim(self, subscription: Subscription, fencing: int) -> Lease | None:
        until = self._parts.instant(self._parts.settings.relay_lease_seconds)
        with self._parts.database.write() as connection:
            return deliveries.claim(
                connection, subscription, self._parts.owner, seen_fencing=fencing, until=until
            )


class _Pass:
    """One run over the due rows of one subscription, under one lease."""

    def __init__(self, parts: RelayParts, carrier: Carrier, lease: Lease) -> None:
        self._parts = parts
        self._carrier = carrier
        self._lease = lease
        self._in_flight = asyncio.Semaphore(parts.settings.relay_in_flight_max)
        self._settling = asyncio.Lock()
        self._unsettled: list[Settled] = []
        self._stopped = False
        self._tried = 0

    async def run(self) -> int:
        """Deliver what is due and give the lease back; return the number of rows tried."""
        lines: dict[str, list[Due]] = {}
        for due in await self._parts.run_blocking(self._due):
            lines.setdefault(due.aggregate_id, []).append(due)
        await _all(self._deliver_line(line) for line in lines.values())
        if not self._stopped:
            await self._parts.run_blocking(self._release)
        return self._tried

    async def _deliver_line(self, line: list[Due]) -> None:
        """Deliver the rows of one aggregate one after the other; where order counts, until one fails."""
        for due in line:
            async with self._in_flight:
                if self._stopped:
                    return
                self._tried += 1
                attempt = await self._carrier.deliver(self._lease.subscription, due)
            settled = self._judge(due, attempt)
            await self._settle(settled)
            if settled.status == PENDING and self._carrier.in_order:
                return

    def _judge(self, due: Due, attempt: Attempt) -> Settled:
        settings = self._parts.settings
        number = due.attempts + 1
        wait = 0.0
        status: RowStatus
        if attempt.delivered:
            status = DELIVERED
        elif attempt.gone or number % settings.webhook_attempts_max == 0:
            # A row that was driven again has a whole new run of attempts.
            status = DEAD
        else:
            status = PENDING
            in_run = due.attempts % settings.webhook_attempts_max + 1
            wait = backoff_seconds(
                in_run, attempt.retry_after_seconds, settings, self._parts.entropy
            )
        return Settled(
            due=due,
            status=status,
            at=self._parts.instant(),
            next_attempt_at=self._parts.instant(wait),
            status_code=attempt.status_code,
            response=attempt.response,
            error=attempt.error,
            deactivates=attempt.gone,
        )

    async def _settle(self, settled: Settled) -> None:
        """Record an attempt; those that gather while one transaction runs share the next."""
        self._unsettled.append(settled)
        async with self._settling:
            together, self._unsettled = self._unsettled, []
            if not together or self._stopped:
                return
            try:
                held = await self._parts.run_blocking(self._record, together)
            except BaseException:
                # Going on would deliver later rows of an aggregate before this one comes again.
                self._stopped = True
                raise
            if not held:
                LOG.warning("lost the lease of %s", self._lease.subscription.subscription_id)
            self._stopped = not held or any(one.deactivates for one in together)

    def _due(self) -> list[Due]:
        with self._parts.database.read() as connection:
            return deliveries.due_rows(
                connection,
                self._lease,
                self._parts.instant(),
                self._parts.settings.relay_claim_max,
                in_order=self._carrier.in_order,
            )

    def _record(self, together: list[Settled]) -> bool:
        until = self._parts.instant(self._parts.settings.relay_lease_seconds)
        with self._parts.database.write() as connection:
            return deliveries.settle(
                connection, self._lease, until, together, in_order=self._carrier.in_order
            )

    def _release(self) -> None:
        with self._parts.database.write() as connection:
            deliveries.renew(connection, self._lease, None)


def _reap(running: dict[str, asyncio.Task[int]]) -> bool:
    """Take out the tasks that have ended; log those that failed, and return whether any did."""
    failed = False
    for name, task in list(running.items()):
        if not task.done():
            continue
        del running[name]
        error = task.exception()
        if error is not None:
            failed = True
            LOG.error("the work for subscription %s ended early", name, exc_info=error)
    return failed


async def _all(works: Iterable[Awaitable[object]]) -> list[int]:
    """Let all end, then raise the first exception, if any, or return the results."""
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, int)]
