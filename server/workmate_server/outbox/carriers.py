"""What the relay asks of those who deliver: webhooks and rules alike."""

from typing import Protocol

from msgspec import Struct

from workmate_server.store.deliveries import Due
from workmate_server.store.outbox import Subscription


class Attempt(Struct, frozen=True, kw_only=True):
    """How one try ended: delivered, or why not, and what the other side asked for.

    `gone` says that the other side wants nothing more; `response` is kept with the attempt.
    """

    delivered: bool
    status_code: int | None = None
    response: str | None = None
    error: str | None = None
    retry_after_seconds: float | None = None
    gone: bool = False


class Carrier(Protocol):
    """Delivers the rows of one kind of subscription."""

    @property
    def in_order(self) -> bool:
        """Whether the rows of an aggregate wait while an older one is still to be tried again."""
        ...

    async def deliver(self, subscription: Subscription, due: Due) -> Attempt:
        """Try once. What fails on the other side is an answer, not an exception.

        Raises DatabaseAwayError where the own database fails; the row stays as it is.
        """
        ...
