"""Ends a process by SIGKILL at each point that a scenario passes, one folder for each point.

FOLDER/start holds the state to begin from; FOLDER/<n> is what the n-th point left behind. A module
with scenarios calls `end_at_each_point` as a program of its own, because it forks.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Hook = Callable[[str, Path], None]
Scenario = Callable[[Path, Hook], None]


def _every_point(_point: str) -> bool:
    return True


def _run_until(
    number: int, scenario: Scenario, folder: Path, counts: Callable[[str], bool]
) -> str | None:
    """Run a scenario in a child that dies at the point of this number; None if it came through."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        counter = itertools.count()

        def hook(point: str, _path: Path) -> None:
            if counts(point) and next(counter) == number:
                os.write(write_end, point.encode())
                os.kill(os.getpid(), signal.SIGKILL)

        scenario(folder, hook)
        os._exit(0)
    os.close(write_end)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as pipe:
        point = pipe.read().decode()
    if os.WIFSIGNALED(status) and point:
        return point
    if status != 0:
        raise SystemExit(f"the scenario failed by itself in {folder}")
    return None


def end_at_each_point(
    scenario: Scenario, folder: Path, counts: Callable[[str], bool] = _every_point
) -> None:
    """Run the scenario once for each point that counts, and print the points' names as JSON."""
    points = []
    for number in itertools.count():
        case = folder / str(number)
        shutil.copytree(folder / "start", case)
        point = _run_until(number, scenario, case, counts)
        if point is None:
            shutil.rmtree(case)
            break
        points.append(point)
    print(json.dumps(points))


def ended_by(module: str, scenario: str, folder: Path) -> list[tuple[str, Path]]:
    """Let a module end a scenario at each point; return the points with what they left behind."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    finished = subprocess.run(
        [sys.executable, "-m", module, scenario, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    points: list[str] = json.loads(finished.stdout)
    return [(point, folder / str(number)) for number, point in enumerate(points)]
