"""Begin a server so that a beginning cut short can be done again and ends the same.

Before anything is founded, a record beside the keys keeps what the new tenant is made from: a seed
and a time. Ids and the administrator's token follow from it, so that a second run finishes what the
first one began and tells the same token. The record is removed once the token has been told.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec
from blake3 import blake3
from msgspec import Struct

from workmate_server.bootstrap import StartError
from workmate_server.ports import Clock, Entropy
from workmate_server.telemetry.files import make_folder, remove_file, write_file
from workmate_shared.kernel.hashing import derive_uuid8, length_prefixed
from workmate_shared.kernel.instants import format_instant, parse_instant

SEED_BYTES = 32

_CONTEXT = "workmate 2026 founding"
_RECORD = "founding.json"


class Founding(Struct, frozen=True, kw_only=True):
    """What a tenant is founded from; `seed` is hex, and as secret as the token made from it."""

    database: str
    tenant: str
    seed: str
    begun_at: str


class SeededEntropy:
    """Bytes and ids that always come in the same order from one seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._drawn = 0

    def token_bytes(self, size: int) -> bytes:
        """Return the next so many bytes of the seed's stream."""
        self._drawn += 1
        drawn = length_prefixed(str(self._drawn).encode())
        return blake3(self._seed + drawn, derive_key_context=_CONTEXT).digest(size)

    def uuid7(self) -> str:
        """Return the next id; it is derived (UUIDv8) and carries no time."""
        return derive_uuid8(_CONTEXT, self.token_bytes(SEED_BYTES).hex())


class FixedClock:
    """A clock that stands at the moment when the founding was begun; nothing waits for it."""

    def __init__(self, text: str) -> None:
        self._moment = parse_instant(text)

    def now(self) -> datetime:
        """Return that moment."""
        return self._moment

    def monotonic(self) -> float:
        """Return nothing but zero."""
        return 0.0

    async def sleep(self, delay_seconds: float) -> None:
        """Return at once."""


@contextmanager
def only_founder(keys: Path) -> Iterator[None]:
    """Hold the key folder, which is made if need be, for the only process that founds in it.

    Raises StartError, `init_running`, where another one does.
    """
    make_folder(keys)
    descriptor = os.open(keys, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise StartError("init_running", f"another init is at work with {keys}") from error
    finally:
        os.close(descriptor)


def read_founding(keys: Path) -> Founding | None:
    """Return the record of a founding that was begun and not told yet, or None."""
    try:
        return msgspec.json.decode((keys / _RECORD).read_bytes(), type=Founding)
    except FileNotFoundError:
        return None


def begin_founding(
    keys: Path, database: str, tenant: str, clock: Clock, entropy: Entropy
) -> Founding:
    """Return the record of this founding: the one begun before, or a new one, durably kept.

    Raises StartError, `init_unfinished`, where one was begun for another database or tenant.
    """
    begun = read_founding(keys)
    if begun is None:
        begun = Founding(
            database=database,
            tenant=tenant,
            seed=entropy.token_bytes(SEED_BYTES).hex(),
            begun_at=format_instant(clock.now()),
        )
        write_file(keys / _RECORD, msgspec.json.encode(begun))
    if (begun.database, begun.tenant) != (database, tenant):
        detail = (
            f"init was begun for tenant {begun.tenant!r} at {begun.database} and not finished; "
            "run it again with these, or name another folder with --keys"
        )
        raise StartError("init_unfinished", detail)
    return begun


def end_founding(keys: Path) -> None:
    """Forget the record: the token has been told."""
    remove_file(keys / _RECORD)
