"""Verifying a whole log, and projecting it again, at two sizes: the time an event takes must not grow."""

import asyncio
from pathlib import Path

from benchmarks.figures import Pace, Tell, seconds_of, summed_up
from benchmarks.prepared import Prepared, prepare_office
from workmate_server.bootstrap import open_parts
from workmate_server.engine.rebuild import rebuild
from workmate_server.engine.verify import verify
from workmate_server.identity.headcopies import log_public_keys

_WORKERS = 10
_EVENTS_A_TASK = 2


def measure_replay(folder: Path, pace: Pace, tell: Tell) -> None:
    """Measure a small log and a large one."""
    for size in (pace.of(2_000, 100), pace.of(16_000, 400)):
        tasks_each = size // _EVENTS_A_TASK // _WORKERS
        prepared = asyncio.run(prepare_office(folder / str(size), _WORKERS, tasks_each))
        _measure(prepared, pace.of(5, 1), tell)


def _measure(prepared: Prepared, rounds: int, tell: Tell) -> None:
    verified, rebuilt = list[float](), list[float]()
    with open_parts(prepared.locations) as parts:
        trusted = log_public_keys(parts.keys)
        report = verify(parts.database, parts.keys, trusted)
        assert report.clean, report.findings
        for _ in range(rounds):
            verified.append(seconds_of(lambda: verify(parts.database, parts.keys, trusted)))
            rebuilt.append(seconds_of(lambda: rebuild(parts.database)))
    given = {"events": report.events, "commands": report.commands, "batches": report.batches}
    for name, seconds in (("verify", verified), ("rebuild", rebuilt)):
        tell(summed_up(name, [report.events / one for one in seconds], "events/s", **given))
