"""The machine itself behind the ports for time and randomness.

The only place on the device that reads a clock, sleeps, or draws a random number.
"""

import asyncio
import functools
import time
import uuid
from datetime import datetime
from pathlib import Path

from nacl.utils import random as random_bytes
from uuid_utils.compat import uuid7

LINUX_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def _boot_id() -> str:
    try:
        return LINUX_BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        # Systems that give no boot id: each process counts as a boot of its own, so that monotonic
        # readings of two processes are never compared though they might be.
        return str(uuid.UUID(bytes=random_bytes(16), version=4))


class SystemClock:
    """The machine's clocks, as the `Clock` port."""

    def now(self) -> datetime:
        """Return the machine's time with the offset of its zone."""
        return datetime.now().astimezone()  # noqa: TID251 - the adapter that reads it

    def monotonic(self) -> float:
        """Return the machine's monotonic clock in seconds."""
        return time.monotonic()

    def boot_id(self) -> str:
        """Return the kernel's boot id; where there is none, an id of this process."""
        return _boot_id()

    def sleep(self, seconds: float) -> None:
        """Block the calling thread."""
        time.sleep(seconds)  # noqa: TID251 - the adapter that waits

    async def pause(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)  # noqa: TID251 - the adapter that waits


class SystemRandom:
    """The operating system's random numbers, as the `Random` port."""

    def token_bytes(self, size: int) -> bytes:
        """Return `size` bytes from the operating system."""
        return random_bytes(size)

    def uuid7(self) -> str:
        """Return a fresh UUIDv7 (RFC 9562) in lower-case text form."""
        return str(uuid7())
