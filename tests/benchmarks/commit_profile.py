"""Where a commit spends its time: batches committed in this very process under the profiler.

The commands are those of the other benchmarks, verified beforehand. The profiler makes Python's own
work look larger than it is beside the database's, so that shares compare runs and are no clock. The
tables go to standard error, one JSON line for each stage to standard output.
"""

import asyncio
import cProfile
import pstats
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from benchmarks.figures import Figure, Pace, Tell, machine, rounded, summed_up
from benchmarks.prepared import Prepared, prepare_office
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
    batches, workers = pace.of(60, 2), pace.of(10, 1)
    tasks_each = -(-2 * batches * COMMANDS // len(CHAIN) // workers) + 1
    prepared = asyncio.run(prepare_office(folder / "office", workers, tasks_each))
    submissions = _verified(prepared)
    profile = cProfile.Profile()
    with open_parts(prepared.locations) as parts:
        plain = asyncio.run(_commit(parts, prepared, submissions[:batches]))
        profile.enable()
        asyncio.run(_commit(parts, prepared, submissions[batches : 2 * batches]))
        profile.disable()
    given = {"commands_per_batch": COMMANDS, "batches": batches, "intake": "not included"}
    tell(summed_up("commit_in_process", [COMMANDS / one for one in plain], "commands/s", **given))
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


async def _commit(
    parts: Parts, prepared: Prepared, batches: Sequence[Sequence[Submission]]
) -> list[float]:
    """Commit batches one after the other; return how long each took, in seconds."""
    engine = Engine(parts.database, parts.keys, parts.settings, parts.clock, parts.hooks, _run_here)
    await engine.start()
    seconds = []
    for batch in batches:
        begun = parts.clock.monotonic()
        decided = await engine.submit(prepared.office.tenant_id, batch)
        seconds.append(parts.clock.monotonic() - begun)
        assert all(one.status == "committed" for one in decided)
    await engine.stop()
    return seconds


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
