"""What the sync engine is made of: the device's stores and ports, put together once."""

from datetime import timedelta

from msgspec import Struct

from workmate_client.config import ProfilePaths, Settings
from workmate_client.journal.authoring import Author
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.sealed import SealedFolder
from workmate_client.journal.store import Journal
from workmate_client.ports import Clock, Files, Random
from workmate_client.replica.store import Replica
from workmate_client.sync.blocking import RunBlocking, run_in_thread
from workmate_client.sync.transport import Transport
from workmate_shared.kernel.instants import format_instant, parse_instant

_FRACTION_BYTES = 8


class SyncParts(Struct, frozen=True, kw_only=True):
    """The parts of one profile's sync engine. `build` is the program's version, for the server."""

    journal: Journal
    replica: Replica
    folder: SealedFolder
    transport: Transport
    author: Author
    keys: ProfileKeys
    files: Files
    paths: ProfilePaths
    clock: Clock
    random: Random
    settings: Settings
    run_blocking: RunBlocking = run_in_thread
    build: str = ""

    def now_seconds(self) -> float:
        """Return this clock's time in seconds since the epoch."""
        return self.clock.now().timestamp()

    def fraction(self) -> float:
        """Return a random number from 0 to 1, for jitter."""
        drawn = int.from_bytes(self.random.token_bytes(_FRACTION_BYTES), "big")
        return drawn / (1 << (8 * _FRACTION_BYTES))

    def instant_in(self, seconds: float) -> str:
        """Return the instant of this clock that lies so many seconds ahead."""
        return format_instant(self.clock.now() + timedelta(seconds=seconds))


def seconds_of(instant: str | None) -> float | None:
    """Return an instant as seconds since the epoch, None as None."""
    return parse_instant(instant).timestamp() if instant is not None else None
