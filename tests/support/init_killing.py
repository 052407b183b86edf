"""Ends `init` at each of its kill points, then runs it again, one folder for each point.

Run as a program: `python -m support.init_killing FOLDER` prints a JSON list with, for each point,
its name, what the first run told before it was killed, and what the second run told.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from workmate_server.commands.init import init
from workmate_server.commands.result import Result
from workmate_server.config import Locations
from workmate_server.ports import Hooks
from workmate_server.telemetry.system import NoHooks

NAME = "Stadtwerke"


class _Killing:
    """Hooks that note the point of a number and end the process there."""

    def __init__(self, number: int, note: Path) -> None:
        self._counter = itertools.count()
        self._number = number
        self._note = note

    def reach(self, point: str) -> None:
        if next(self._counter) == self._number:
            self._note.write_text(point)
            os.kill(os.getpid(), signal.SIGKILL)


def locations_in(folder: Path) -> Locations:
    """Return where everything lies for one point."""
    database = f"sqlite:///{folder / 'office.db'}"
    return Locations(database, (folder / "blobs").as_uri(), folder / "keys")


def _in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]


def _begin(folder: Path, told: Path, hooks: Hooks) -> None:
    def tell(result: Result) -> None:
        told.write_bytes(msgspec.json.encode(result.value))

    init(locations_in(folder), NAME, tell, hooks)


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else None


def main(folder: Path) -> None:
    found = []
    for number in itertools.count():
        case = folder / str(number)
        case.mkdir()
        note, first, second = (case / name for name in ("point", "first", "second"))
        killed = _Killing(number, note)
        _in_child(lambda case=case, first=first, killed=killed: _begin(case, first, killed))  # type: ignore[misc]
        if not note.exists():
            break
        _in_child(lambda case=case, second=second: _begin(case, second, NoHooks()))  # type: ignore[misc]
        found.append({"point": note.read_text(), "first": _read(first), "second": _read(second)})
    print(json.dumps(found))


def killed_at_each_point(folder: Path) -> list[dict[str, Any]]:
    """Return, for each point, its name and what both runs told; its number names its folder."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    finished = subprocess.run(
        [sys.executable, "-m", "support.init_killing", str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(finished.stdout)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
