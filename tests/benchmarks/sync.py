"""Commands through `POST /v1/sync` of a real server process, beside the two limits under it.

One limit is the bare database writing the very same rows in the same batches, the other a bare HTTP
server that gives the same bodies back. Rounds of the three take turns. The client runs in a process
of its own, packs as devices do, and shares the machine with the server.
"""

import asyncio
import os
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path

import aiohttp
from msgspec import Struct

from benchmarks.bare_database import BareDatabase, Written
from benchmarks.echo_server import echoing
from benchmarks.figures import Figure, Pace, Tell, percentile, ratio_of, rounded, summed_up
from benchmarks.load import Mode, Sent, echo, open_client, send
from benchmarks.prepared import prepare_office
from benchmarks.recorded import Recorder
from benchmarks.signed_work import CHAIN, Device
from support.server_process import serving
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.store.sqlite import SqliteDatabase

_PROCESS_FILE = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


class Plan(Struct, frozen=True):
    """One way of sending under the name of its figures, and how often it is measured."""

    name: str
    mode: Mode
    rounds: int

    def requests(self) -> int:
        """Return how many requests it sends in all, with one round to warm up."""
        return self.mode.requests * (self.rounds + 1)


class Round(Struct, frozen=True):
    """The three measurements of one round; `processor_seconds` are the server's."""

    sent: Sent
    written: Written
    echoed: Sent
    processor_seconds: float
    batches: int


def measure_sync(folder: Path, pace: Pace, tell: Tell) -> None:
    """Measure a hundred commands a request, then one a request, alone and many at once."""
    workers = pace.of(100, 8)
    plans = (
        Plan("batched", Mode(commands=100, in_flight=4, requests=pace.of(40, 4)), pace.of(7, 1)),
        Plan("alone", Mode(commands=1, in_flight=1, requests=pace.of(100, 5)), pace.of(7, 1)),
        Plan(
            "crowded", Mode(commands=1, in_flight=workers, requests=pace.of(500, 16)), pace.of(7, 1)
        ),
    )
    asyncio.run(_measure(folder, workers, plans, tell))


async def _measure(folder: Path, workers: int, plans: Sequence[Plan], tell: Tell) -> None:
    each = sum(_requests_each(plan, workers) * plan.mode.commands for plan in plans)
    prepared = await prepare_office(folder / "office", workers, -(-each // len(CHAIN)))
    devices = deque(Device(crew, prepared.office) for crew in prepared.crews)
    place = prepared.office.place
    shutil.copy(place.database, folder / "bare.db")
    async with AsyncExitStack() as stack:
        server = stack.enter_context(serving(prepared.office))
        key = KeyFolder.open(place.keys).database_key
        database = stack.enter_context(closing(SqliteDatabase(place.database, key)))
        field = Field(
            client=await stack.enter_async_context(open_client()),
            server_url=server.url,
            server_id=server.process.pid,
            echo_url=stack.enter_context(echoing()),
            recorder=Recorder(database, prepared.office.tenant_id),
            bare=stack.enter_context(closing(BareDatabase(folder / "bare.db", key))),
            devices=devices,
        )
        await send(field.client, field.server_url, devices, Mode(0, 1, len(devices)))
        for plan in plans:
            rounds = [await field.round(plan.mode) for _ in range(plan.rounds + 1)][1:]
            for figure in _figures(plan, rounds):
                tell(figure)


def _requests_each(plan: Plan, workers: int) -> int:
    """Return how many requests a device may have to send; of a crowd some are quicker than others."""
    fair = -(-plan.requests() // workers) + 1
    return fair if 2 * plan.mode.in_flight < workers else 2 * fair


class Field(Struct, frozen=True):
    """Everything that a round needs."""

    client: aiohttp.ClientSession
    server_url: str
    server_id: int
    echo_url: str
    recorder: Recorder
    bare: BareDatabase
    devices: deque[Device]

    async def round(self, mode: Mode) -> Round:
        """Send commands, write what came of them again, and echo their bodies."""
        used = _processor_seconds(self.server_id)
        sent = await send(self.client, self.server_url, self.devices, mode)
        used = _processor_seconds(self.server_id) - used
        batches = self.recorder.read_new()
        written = self.bare.replay(batches)
        assert written.commands == sent.commands, "another number was recorded than was sent"
        echoed = await echo(self.client, self.echo_url, sent, mode.in_flight)
        return Round(sent, written, echoed, used, len(batches))


def _figures(plan: Plan, rounds: Sequence[Round]) -> Iterator[Figure]:
    mode, name = plan.mode, f"sync_{plan.name}"
    given = {
        "commands_per_request": mode.commands,
        "requests_in_flight": mode.in_flight,
        "commands_per_round": mode.commands * mode.requests,
        "batches_per_round": sum(one.batches for one in rounds) / len(rounds),
    }
    ours = [one.sent.per_second for one in rounds]
    database = [one.written.per_second for one in rounds]
    http = [one.echoed.per_second for one in rounds]
    yield summed_up(name, ours, "commands/s", **given)
    yield summed_up(f"{name}_bare_database", database, "commands/s", **given)
    yield ratio_of(f"{name}_of_bare_database", ours, database, **given)
    yield summed_up(f"{name}_bare_http", http, "commands/s", **given)
    yield ratio_of(f"{name}_of_bare_http", ours, http, **given)
    count = mode.commands * mode.requests
    used = [one.processor_seconds / count * 1e6 for one in rounds]
    least = [one.written.processor_seconds / count * 1e6 for one in rounds]
    yield summed_up(f"{name}_processor", used, "us/command", **given)
    yield summed_up(f"{name}_bare_database_processor", least, "us/command", **given)
    yield from _latencies(plan, rounds, given)


def _latencies(plan: Plan, rounds: Sequence[Round], given: dict[str, float]) -> Iterator[Figure]:
    name = f"sync_{plan.name}"
    measured = {
        name: [seconds for one in rounds for seconds in one.sent.latencies],
        f"{name}_bare_http": [seconds for one in rounds for seconds in one.echoed.latencies],
    }
    if plan.mode.in_flight == 1:
        # Only then is a transaction what one request waits for.
        measured[f"{name}_bare_database"] = [
            seconds for one in rounds for seconds in one.written.latencies
        ]
    for subject, samples in measured.items():
        milliseconds = [seconds * 1e3 for seconds in samples]
        yield summed_up(
            f"{subject}_latency",
            milliseconds,
            "ms",
            **given,
            p99=rounded(percentile(milliseconds, 99)),
        )


def _processor_seconds(process_id: int) -> float:
    """Return the processor time that a process has used, all of its threads; 0 where unknown."""
    try:
        fields = (_PROCESS_FILE / str(process_id) / "stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    user, system = fields[11:13]
    return (int(user) + int(system)) / _TICKS
