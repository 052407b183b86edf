"""The relay: takes what waits for each subscription and hands it to whoever delivers it.

Each event is delivered at least once, in order per aggregate; an aggregate that fails holds up only
itself, and a rule's row holds up nothing. A relay works under a lease: rows that it cannot settle
any more, because another took over, are the other's. Delivery never touches a task.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from workmate_server.config import Settings
from workmate_server.engine.blocking import RunBlocking
from workmate_server.outbox.retries import backoff_seconds
from workmate_server.ports import Clock, Entropy
from workmate_server.store import outbox
from workmate_server.store.database import Database, DatabaseAwayError
from workmate_server.store.outbox import Due, Lease, Settled, Subscription
from workmate_shared.kernel.instants import format_instant

LOG = logging.getLogger(__name__)


class Attempt(Struct, frozen=True, kw_only=True):
    """How one try ended: delivered, or why not, and what the other side asked for.

    `gone` says that the other side wants nothing more.
    """

    delivered: bool
    status_code: int | None = None
    response: str | None = None
    error: str | None = None
    retry_after_seconds: float | None = None
    gone: bool = False


class Carrier(Protocol):
    """Delivers the rows of one kind of subscription; `in_order` says whether order matters."""

    @property
    def in_order(self) -> bool:
        """Whether the rows of one aggregate wait for each other."""
        ...

    async def deliver(self, subscription: Subscription, due: Due) -> Attempt:
        """Try once. What fails is an answer, never an exception."""
        ...


class _LeaseLostError(Exception):
    """Another relay works for the subscription now."""


class Relay:
    """One worker over all subscriptions of a database; any number of them may run.

    `carriers` are those who deliver, by kind of subscription; rows of other kinds wait. `owner`
    names this relay among others.
    """

    def __init__(
        self,
        database: Database,
        carriers: Mapping[str, Carrier],
        settings: Settings,
        *,
        owner: str,
        clock: Clock,
        entropy: Entropy,
        run_blocking: RunBlocking,
    ) -> None:
        self._database = database
        self._carriers = carriers
        self._settings = settings
        self._owner = owner
        self._clock = clock
        self._entropy = entropy
        self._run_blocking = run_blocking

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; what is under way is finished."""
        while not stop.is_set():
            try:
                handled = await self.run_once()
            except DatabaseAwayError:
                LOG.warning("the relay cannot reach the database", exc_info=True)
                handled = 0
            if not handled:
                await self._idle(stop)

    async def run_once(self) -> int:
        """Try everything that is due now, once; return the number of rows that were tried.

        Raises DatabaseAwayError; what was delivered and not settled is delivered again.
        """
        work = await self._run_blocking(self._find_work)
        known = [found for found in work if found[0].kind in self._carriers]
        results = await asyncio.gather(
            *(self._work_for(subscription, fencing) for subscription, fencing in known),
            return_exceptions=True,
        )
        failed = [result for result in results if isinstance(result, BaseException)]
        if failed:
            raise failed[0]
        return sum(result for result in results if isinstance(result, int))

    async def _work_for(self, subscription: Subscription, fencing: int) -> int:
        lease = await self._run_blocking(self._claim, subscription, fencing)
        if lease is None:
            return 0
        pass_ = _Pass(self, lease)
        try:
            return await pass_.run()
        except* _LeaseLostError:
            LOG.warning("lost the lease of subscription %s", subscription.subscription_id)
        return pass_.tried
