"""What each of two server processes on one database does; started with `multiprocessing` (spawn)."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import select

from support import commands as build
from support.eventful import Story, worker
from support.log import Log, open_log
from workmate_server.engine.model import Decided
from workmate_server.store.loads import EVENTS
from workmate_shared.kernel.table import Role

POSTS = 10
STORM = 40
NAMES = ("one", "two")
BARRIER_SECONDS = 120.0


class KillOnce:
    """Hooks that end the process at a point, once they are armed."""

    def __init__(self, point: str | None) -> None:
        self._point = point
        self.armed = False

    def reach(self, point: str) -> None:
        """End here, or pass."""
        if self.armed and point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


def both(act: Callable[..., None], folder: Path, *rest: Any) -> list[int | None]:
    """Run `act(folder, name, barrier, *rest)` in two processes at once; return their exit codes."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(NAMES), timeout=BARRIER_SECONDS)
    processes: list[BaseProcess] = [
        context.Process(target=act, args=(folder, name, barrier, *rest)) for name in NAMES
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def answers_of(folder: Path, name: str) -> list[Decided]:
    """Return the answers that a process got, whatever became of it."""
    lines = (folder / f"answers-{name}").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Decided) for line in lines]


def accept_everywhere(folder: Path, name: str, barrier: Any, kill_at: str | None) -> None:
    """Post one key many times at once; the first process dies where it is told to."""
    hooks = KillOnce(kill_at if name == NAMES[0] else None)
    asyncio.run(_accept(folder, name, barrier, hooks))


async def _accept(folder: Path, name: str, barrier: Any, hooks: KillOnce) -> None:
    with (folder / f"answers-{name}").open("wb", buffering=0) as file:
        async with open_log(folder, hooks=hooks) as log:
            await asyncio.to_thread(barrier.wait)
            hooks.armed = True
            await post_accept(log, lambda answer: file.write(msgspec.json.encode(answer) + b"\n"))


async def post_accept(log: Log, note: Callable[[Decided], Any]) -> None:
    """Post the acceptance of the example task many times at once."""

    async def post() -> None:
        (answer,) = await log.submit(log.make("accept", expected_version=2))
        note(answer)

    await asyncio.gather(*(post() for _ in range(POSTS)))


def storm(folder: Path, name: str, barrier: Any) -> None:
    """Send many commands on one task, and read every event as it comes."""
    asyncio.run(_storm(folder, name, barrier))


async def _storm(folder: Path, name: str, barrier: Any) -> None:
    async with open_log(folder) as log:
        await asyncio.to_thread(barrier.wait)
        seen, answers = await asyncio.gather(_follow(log), _send(log, name))
        (folder / f"seen-{name}").write_bytes(msgspec.json.encode(seen))
        lines = [msgspec.json.encode(answer) + b"\n" for answer in answers]
        (folder / f"answers-{name}").write_bytes(b"".join(lines))


async def _send(log: Log, name: str) -> list[Decided]:
    story = Story(log, "stormy")
    actors = {"observe": worker(), "amend": build.make_actor(Role.DISPATCHER)}

    async def post(number: int) -> Decided:
        kind = "amend" if number % 4 == 0 else "observe"
        command = story.make(kind, command_id=f"{name}-{number}", actor=actors[kind])
        submission = replace(log.submission(command), fill_version=number % 8 == 0)
        (answer,) = await log.engine.submit(log.tenant_id, [submission])
        return answer

    answers = []
    for start in range(0, STORM, 5):
        answers += await asyncio.gather(*(post(start + index) for index in range(5)))
    return [*answers, await post(STORM + 1)]


async def _follow(log: Log) -> list[int]:
    """Return the seqs of all events in the order in which a cursor met them."""
    seen: list[int] = []
    last = {f"{name}-{STORM + 1}" for name in NAMES}
    while last:
        cursor = seen[-1] if seen else 0
        await log.engine.wait_for_change(log.tenant_id, cursor, 10.0)
        with log.database.read() as connection:
            rows = connection.execute(
                select(EVENTS.c.seq, EVENTS.c.command_id)
                .where(EVENTS.c.tenant_id == log.tenant_id, EVENTS.c.seq > cursor)
                .order_by(EVENTS.c.seq)
                .limit(7)
            ).all()
        seen += [row.seq for row in rows]
        last -= {row.command_id for row in rows}
    return seen
