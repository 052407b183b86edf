"""Measure, and print one JSON line for each figure.

    python run.py                  everything, a few minutes
    python run.py --short          everything, as little of it as shows that it still works
    python run.py --only sync      one benchmark: sync, enqueue, hashing, commit or replay
    python run.py --folder DIR     on the disk that holds DIR

Nothing here passes or fails. What each figure is measured beside, its module says.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.commit_profile import measure_commit
from benchmarks.enqueue import measure_enqueue
from benchmarks.figures import Pace, Tell, print_figure
from benchmarks.hashing import measure_hashing
from benchmarks.replay import measure_replay
from benchmarks.sync import measure_sync

BENCHMARKS: dict[str, Callable[[Path, Pace, Tell], None]] = {
    "sync": measure_sync,
    "enqueue": measure_enqueue,
    "hashing": measure_hashing,
    "commit": measure_commit,
    "replay": measure_replay,
}


def main() -> None:
    """Run the benchmarks that were asked for, each in a folder of its own."""
    parser = argparse.ArgumentParser(description="Measure Workmate.")
    parser.add_argument("--short", action="store_true", help="as little as shows that it works")
    parser.add_argument("--only", choices=sorted(BENCHMARKS), help="one benchmark alone")
    parser.add_argument("--folder", type=Path, help="measure on the disk of this folder")
    options = parser.parse_args()
    for name, measure in BENCHMARKS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="workmate-", dir=options.folder) as folder:
                measure(Path(folder), Pace(options.short), print_figure)


if __name__ == "__main__":
    main()
