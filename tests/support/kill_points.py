"""Ends a process at each point where it touches the disk, one folder for each point.

Run as a program: `python -m support.kill_points SCENARIO FOLDER`. FOLDER/start holds the state to
begin from; FOLDER/<n> is what the n-th point left behind. Prints the points' names as JSON.
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

from support.device import KEY, quick_settings, sealed_folder, unsent_log
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.vault_safe import VaultSafe
from workmate_client.ports import Files
from workmate_client.system import SystemRandom

KEYS = ProfileKeys(KEY, bytes(32))
OLD_PASSPHRASE = "the old passphrase"
NEW_PASSPHRASE = "the new passphrase"
CONTENT = bytes(range(200))


def vault(folder: Path, files: Files, passphrase: str) -> VaultSafe:
    return VaultSafe(
        folder / "keys.vault",
        lambda: passphrase,
        files,
        random=SystemRandom(),
        settings=quick_settings(),
    )


def _import(folder: Path, files: Files) -> None:
    sealed_folder(folder / "evidence", files).import_file(folder / "photo.jpg")


def _append(folder: Path, files: Files) -> None:
    unsent_log(folder, files).append(b"the new record")


def _rewrite(folder: Path, files: Files) -> None:
    unsent_log(folder, files).rewrite(lambda record: record != b"first")


def _create_vault(folder: Path, files: Files) -> None:
    vault(folder, files, OLD_PASSPHRASE).create(KEYS)


def _change_vault(folder: Path, files: Files) -> None:
    vault(folder, files, OLD_PASSPHRASE).change_passphrase(NEW_PASSPHRASE)


SCENARIOS: dict[str, Callable[[Path, Files], None]] = {
    "import": _import,
    "append": _append,
    "rewrite": _rewrite,
    "create_vault": _create_vault,
    "change_vault": _change_vault,
}


def _run_until(number: int, scenario: str, folder: Path) -> str | None:
    """Run a scenario in a child that dies at the point of this number; None if it came through."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        counter = itertools.count()

        def hook(point: str, _path: Path) -> None:
            if next(counter) == number:
                os.write(write_end, point.encode())
                os.kill(os.getpid(), signal.SIGKILL)

        SCENARIOS[scenario](folder, PosixFiles(hook))
        os._exit(0)
    os.close(write_end)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as pipe:
        point = pipe.read().decode()
    if os.WIFSIGNALED(status):
        return point
    if status != 0:
        raise SystemExit(f"{scenario} failed by itself")
    return None


def main(scenario: str, folder: Path) -> None:
    points = []
    for number in itertools.count():
        case = folder / str(number)
        shutil.copytree(folder / "start", case)
        point = _run_until(number, scenario, case)
        if point is None:
            shutil.rmtree(case)
            break
        points.append(point)
    print(json.dumps(points))


def killed_at_each_point(scenario: str, folder: Path) -> list[tuple[str, Path]]:
    """Return each point's name with the folder that a process killed there left behind."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    finished = subprocess.run(
        [sys.executable, "-m", "support.kill_points", scenario, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    points: list[str] = json.loads(finished.stdout)
    return [(point, folder / str(number)) for number, point in enumerate(points)]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
