"""Ends a process at each point where it touches the disk, one folder for each point.

Run as a program: `python -m support.kill_points SCENARIO FOLDER`. FOLDER/start holds the state to
begin from; FOLDER/<n> is what the n-th point left behind. Prints the points' names as JSON.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from support.device import KEY, quick_settings, sealed_folder, unsent_log
from support.endings import end_at_each_point, ended_by
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


def killed_at_each_point(scenario: str, folder: Path) -> list[tuple[str, Path]]:
    """Return each point's name with the folder that a process killed there left behind."""
    return ended_by("support.kill_points", scenario, folder)


if __name__ == "__main__":
    chosen = SCENARIOS[sys.argv[1]]
    end_at_each_point(lambda case, hook: chosen(case, PosixFiles(hook)), Path(sys.argv[2]))
