"""The benchmarks in their short form: every figure is still measured. What they say is not judged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
RUN = TESTS / "benchmarks" / "run.py"

SYNC = (
    "",
    "_bare_database",
    "_of_bare_database",
    "_bare_http",
    "_of_bare_http",
    "_processor",
    "_bare_database_processor",
    "_latency",
    "_bare_http_latency",
)
STAGES = ("look_up", "decide", "encode_hash_sign", "insert", "begin_and_commit", "rest")
METRICS = {
    *(f"sync_{way}{figure}" for way in ("batched", "alone", "crowded") for figure in SYNC),
    "sync_alone_bare_database_latency",
    *(f"enqueue{figure}" for figure in ("", "_bare_disk", "_of_bare_disk")),
    *(f"hashing{figure}" for figure in ("", "_bare", "_of_bare")),
    *(f"commit{figure}" for figure in ("", "_bare_database", "_of_bare_database")),
    *(f"commit_share_{stage}" for stage in STAGES),
    "verify",
    "rebuild",
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    folder = tmp_path_factory.mktemp("benchmarks")
    return subprocess.run(
        [sys.executable, str(RUN), "--short", "--folder", str(folder)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def figures(printed: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert printed.returncode == 0, printed.stderr
    return [json.loads(line) for line in printed.stdout.splitlines()]


def test_every_figure_is_printed_as_one_line_of_json(
    printed: subprocess.CompletedProcess[str],
) -> None:
    found = figures(printed)
    assert {figure["metric"] for figure in found} == METRICS
    for figure in found:
        assert list(figure) == ["metric", "value", "unit", "n", "conditions"]
        assert isinstance(figure["value"], int | float)
        assert figure["n"] >= 1
        assert figure["conditions"]["python"]


def test_the_functions_that_take_the_most_time_are_listed_beside_them(
    printed: subprocess.CompletedProcess[str],
) -> None:
    figures(printed)
    assert "Ordered by: internal time" in printed.stderr


def test_every_stage_of_the_commit_path_is_found_in_the_profile(
    printed: subprocess.CompletedProcess[str],
) -> None:
    shares = {
        figure["metric"]: figure["value"]
        for figure in figures(printed)
        if figure["metric"].startswith("commit_share_")
    }
    assert all(share > 0 for share in shares.values()), shares
