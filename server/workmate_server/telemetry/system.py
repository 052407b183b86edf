"""The real clock, the real entropy, and hooks that do nothing.

These are the only places where the server reads the host's clock, waits, or draws random bytes.
"""

import asyncio
import secrets
import time
from datetime import UTC, datetime

import uuid_utils


class SystemClock:
    """The host's clock. Wall time may jump when the host corrects it; `monotonic` never does."""

    def now(self) -> datetime:
        """Return the present moment as an aware datetime in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the adapter

    def monotonic(self) -> float:
        """Return seconds since some fixed moment of this boot."""
        return time.monotonic()

    async def sleep(self, delay_seconds: float) -> None:
        """Let others run for so many seconds."""
        await asyncio.sleep(delay_seconds)  # noqa: TID251 - this is the adapter


class SystemEntropy:
    """The operating system's random source."""

    def token_bytes(self, size: int) -> bytes:
        """Return so many random bytes, fit for keys."""
        return secrets.token_bytes(size)

    def uuid7(self) -> str:
        """Return a new UUIDv7 (RFC 9562); those of one process sort by the time they were made."""
        return str(uuid_utils.uuid7())  # noqa: TID251 - this is the adapter


class NoHooks:
    """Kill points that kill nobody."""

    def reach(self, point: str) -> None:
        """Pass the point."""
