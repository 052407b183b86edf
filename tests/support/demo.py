"""Runs the demo as a process, on its own sample and on real input where that is there."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parents[3] / "shared" / "data"


class Input(NamedTuple):
    """What a demo runs on; empty for its own sample."""

    name: str
    arguments: tuple[str, ...] = ()


def _inputs() -> list[Input]:
    jobs, photos = DATA / "nyc311-100.csv", DATA / "photos"
    inputs = [Input("sample")]
    if jobs.is_file() and photos.is_dir():
        inputs.append(Input("real", ("--jobs", str(jobs), "--photos", str(photos))))
    return inputs


INPUTS = _inputs()


def run_demo(folder: Path, chosen: Input) -> subprocess.CompletedProcess[str]:
    """Run the demo to its end and keep its folder."""
    return _demo("--headless", "--keep", str(folder), *chosen.arguments)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Let the checker judge a folder again."""
    return _demo("--check", str(folder))


def _demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workmate_client.cli", "demo", "--json", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
