"""Ends a server at each point of a commit, one folder for each point.

Run as a program: `python -m support.commit_killing FOLDER`. FOLDER/start holds the log to begin
from; FOLDER/<n> is what the n-th point left behind, and FOLDER/whole what nobody disturbed.
ACKNOWLEDGED in each holds what had been answered, a line each. Prints the points' names as JSON.
"""

import asyncio
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import event

from support.eventful import Story, worker
from support.log import Log, open_log
from workmate_server.config import Settings
from workmate_server.engine.model import Decided
from workmate_shared.kernel.command import Command

ACKNOWLEDGED = "acknowledged"
SOME = 25
SETTINGS = replace(Settings(), batch_commands_max=3, head_copy_interval_seconds=1e-9)


class Killing:
    """Hooks that end the process at the point of a number, from 0, once they are armed.

    Each point passed is told on the pipe, so that its reader knows the name of the last.
    """

    def __init__(self, number: int | None, pipe: int) -> None:
        self._number = number
        self._pipe = pipe
        self._count = itertools.count()
        self.armed = False

    def reach(self, point: str) -> None:
        """End here, or pass."""
        if self.armed:
            os.write(self._pipe, f"{point}\n".encode())
            if next(self._count) == self._number:
                os.kill(os.getpid(), signal.SIGKILL)


def load(log: Log) -> list[list[list[Command]]]:
    """Return rounds of requests that are sent at once; each request is a list of commands.

    A chain, one key in two requests, a refusal, an effect that was there already.
    """
    one, two = Story(log, "task-1"), Story(log, "task-2")
    one.version = two.version = 2
    chain = []
    after = None
    for kind in ("accept", "start_travel", "arrive", "submit_proof"):
        chain.append(one.make(kind, after=after))
        after = chain[-1].command_id
    note = two.make("observe", actor=worker())
    refused = two.make("cancel", actor=worker(), expected_version=3)
    accepted = two.make("accept")
    again = two.make("accept", command_id="again", expected_version=4)
    return [[chain], [[note, refused], [note]], [[accepted], [again]]]


async def start(folder: Path) -> None:
    """Make the log to begin from: two tasks that are assigned."""
    async with open_log(folder) as log:
        for name in ("task-1", "task-2"):
            await Story(log, name).reach("assigned")
        log.database.checkpoint()


async def send(log: Log, *, note: Any = None) -> dict[str, Decided]:
    """Send the whole load and return the answers by command; `note` hears of each at once."""
    answers: dict[str, Decided] = {}

    async def post(commands: list[Command]) -> None:
        for answer in await log.submit(*commands):
            answers[answer.command_id] = replace(answer, replayed=False)
            if note is not None:
                note(answer)

    for requests in load(log):
        await asyncio.gather(*(post(commands) for commands in requests))
    return answers


async def _live(folder: Path, hooks: Killing) -> None:
    with (folder / ACKNOWLEDGED).open("wb", buffering=0) as file:
        async with open_log(folder, hooks=hooks, settings=SETTINGS) as log:

            def passing(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
                hooks.reach(f"sql {' '.join(statement.split()[:3])}")

            event.listen(log.database._writer, "before_cursor_execute", passing)
            event.listen(log.database._writer, "after_cursor_execute", passing)
            hooks.armed = True
            await send(log, note=lambda answer: file.write(msgspec.json.encode(answer) + b"\n"))


def _run_until(number: int | None, folder: Path) -> list[str]:
    """Live in a child that dies at the point of this number; return the points that it passed."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        asyncio.run(_live(folder, Killing(number, write_end)))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        points = pipe.read().decode().splitlines()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) is (number is None) or (number is None and status != 0):
        raise SystemExit(f"the load ended with status {status} at point {number}")
    return points


def _chosen(points: list[str]) -> list[int]:
    """Return the numbers of all the engine's own points, of all commits, and of some statements."""
    return [
        number
        for number, point in enumerate(points)
        if point.startswith("engine.") or point == "sql COMMIT" or number % SOME == 0
    ]


def main(folder: Path) -> None:
    shutil.copytree(folder / "start", folder / "whole")
    points = _run_until(None, folder / "whole")
    killed = []
    for number in _chosen(points):
        case = folder / str(number)
        shutil.copytree(folder / "start", case)
        passed = _run_until(number, case)
        killed.append((passed[-1], number))
    print(json.dumps(killed))


def killed_at_points(folder: Path) -> list[tuple[str, Path]]:
    """Return the name of each point with the folder that a process killed there left behind."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    finished = subprocess.run(
        [sys.executable, "-m", "support.commit_killing", str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return [(point, folder / str(number)) for point, number in json.loads(finished.stdout)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
