"""Where a commit spends its time: batches committed in this very process, alone and profiled.

The commands are those of the other benchmarks, verified beforehand; the bare database writes the
same rows in turn. The profiler makes Python's own work look larger than it is beside the database's,
so that shares compare runs and are no clock. The table of functions goes to standard error.
"""

import asyncio
import cProfile
import pstats
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from benchmarks.bare_database import BareDatabase
from benchmarks.figures import (
    Figure,
    Pace,
    Stopwatch,
    Tell,
    machine,
    ratio_of,
    rounded,
    summed_up,
)
from benchmarks.prepared import Prepared, prepare_office
from benchmarks.recorded import Recorder
from benchmarks.signed_work import CHAIN, Device
from workmate_server.bootstrap import Parts, open_parts
from workmate_server.engine.engine import Engine
from workmate_server.engine.model import Submission
from workmate_server.identity.devices import intake_signed
from workmate_shared.wire.messages import SignedCommand

P = ParamSpec("P")
T = TypeVar("T")

COMMANDS = 100
"""Commands in a batch, as a device's request has them."""
SHOWN = 30
"""Lines of the table of functions."""


class Stage(Struct, frozen=True):
    """A part of the commit path: what it calls (`callee`, from `caller`), less what is in others."""

    name: str
    calls: Sequence[tuple[str, str]]
    less: Sequence[tuple[str, str]] = ()


_INSERTS = ("append_log", "write_projections", "write_disclosures", "write_outbox", "move_head")
STAGES = (
    Stage(
        "look_up",
        [
            ("load_head", "run"),
            ("load_commands", "run"),
            ("replay_stored", "run"),
            ("__init__", "run"),
        ],
    ),
    Stage(
        "decide",
        [("_decide_fresh", "run")],
        [("encode", "_draft"), ("validate_payload", "_draft")],
    ),
    Stage(
        "encode_hash_sign",
        [("_append", "run"), ("encode", "_draft"), ("validate_payload", "_draft")],
        [(name, "_append") for name in _INSERTS] + [(name, "_write_beside") for name in _INSERTS],
    ),
    Stage(
        "insert",
        [(name, "_append") for name in _INSERTS] + [(name, "_write_beside") for name in _INSERTS],
    ),
    Stage("begin_and_commit", [("exec_driver_sql", "write")]),
)


def measure_commit(folder: Path, pace: Pace, tell: Tell) -> None:
    """Commit batches of a hundred commands, with and without the profiler."""
    batches, rounds, workers = pace.of(60, 2), pace.of(6, 1), pace.of(10, 1)
    tasks_each = -(-2 * batches * COMMANDS // len(CHAIN) // workers) + 1
    prepared = asyncio.run(prepare_office(folder / "office", workers, tasks_each))
    submissions = _verified(prepared)
    shutil.copy(prepared.office.place.database, folder / "bare.db")
    profile = cProfile.Profile()
    with open_parts(prepared.locations) as parts:
        tenant_id, size = prepared.office.tenant_id, batches // rounds
        recorder = Recorder(parts.database, tenant_id)
        ours, least = list[float](), list[float]()
        with closing(BareDatabase(folder / "bare.db", parts.keys.database_key)) as bare:
            for start in range(0, batches, size):
                part = submissions[start : start + size]
                ours.append(asyncio.run(_commit(parts, tenant_id, part)))
                least.append(bare.replay(recorder.read_new()).per_second)
        profile.enable()
        asyncio.run(_commit(parts, tenant_id, submissions[batches : 2 * batches]))
        profile.disable()
    given = {"commands_per_batch": COMMANDS, "batches": batches, "intake": "not included"}
    tell(summed_up("commit", ours, "commands/s", **given))
    tell(summed_up("commit_bare_database", least, "commands/s", **given))
    tell(ratio_of("commit_of_bare_database", ours, least, **given))
    stats = pstats.Stats(profile, stream=sys.stderr)
    for figure in _stages(stats, batches):
        tell(figure)
    stats.sort_stats("tottime").print_stats(SHOWN)


def _verified(prepared: Prepared) -> list[list[Submission]]:
    """Return batches of commands that passed check 1, devices in turn."""
    devices = [Device(crew, prepared.office) for crew in prepared.crews]
    batches = []
    with open_parts(prepared.locations) as parts, parts.database.read() as connection:
        while all(len(device.waiting) >= COMMANDS for device in devices):
            for device in devices:
                taken, device.waiting = device.waiting[:COMMANDS], device.waiting[COMMANDS:]
                signed = [msgspec.json.decode(one, type=SignedCommand) for one in taken]
                found = intake_signed(connection, prepared.office.tenant_id, signed)
                batches.append([one for one in found if isinstance(one, Submission)])
    return batches


async def _run_here(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return function(*args, **kwargs)


async def _commit(parts: Parts, tenant_id: str, batches: Sequence[Sequence[Submission]]) -> float:
    """Commit batches one after the other; return how many commands a second that were."""
    engine = Engine(parts.database, parts.keys, parts.settings, parts.clock, parts.hooks, _run_here)
    await engine.start()
    watch = Stopwatch()
    for batch in batches:
        with watch.running():
            decided = await engine.submit(tenant_id, batch)
        assert all(one.status == "committed" for one in decided)
    await engine.stop()
    return sum(map(len, batches)) / watch.seconds


def _stages(stats: pstats.Stats, batches: int) -> list[Figure]:
    edges = _edges(stats)

    def spent(calls: Sequence[tuple[str, str]]) -> float:
        return sum(edges.get(call, 0.0) for call in calls)

    seconds = {stage.name: spent(stage.calls) - spent(stage.less) for stage in STAGES}
    whole = edges.get(("_settle", "_run_here"), 0.0)
    seconds["rest"] = whole - sum(seconds.values())
    return [
        Figure(
            metric=f"commit_share_{name}",
            value=rounded(part / whole),
            unit="of the commit",
            n=batches,
            conditions={
                "us_per_command": rounded(part / batches / COMMANDS * 1e6),
                "by": "cProfile",
                **machine(),
            },
        )
        for name, part in seconds.items()
    ]


def _edges(stats: pstats.Stats) -> dict[tuple[str, str], float]:
    """Return the seconds spent in each function on behalf of each caller, by their names."""
    edges: dict[tuple[str, str], float] = {}
    found: dict[Any, Any] = stats.stats  # type: ignore[attr-defined]
    for (_, _, callee), (_, _, _, _, callers) in found.items():
        for (_, _, caller), (_, _, _, cumulative) in callers.items():
            key = (callee, caller)
            edges[key] = edges.get(key, 0.0) + cumulative
    return edges
