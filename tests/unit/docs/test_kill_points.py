"""The page of kill points names every point that the code has."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "kill-points.md").read_text(encoding="utf-8")


def _in_code(pattern: str) -> set[str]:
    sources = [*(ROOT / "client").rglob("*.py"), *(ROOT / "server").rglob("*.py")]
    found: set[str] = set()
    for source in sources:
        found |= set(re.findall(pattern, source.read_text(encoding="utf-8")))
    return found


def test_every_named_point_is_on_the_page() -> None:
    points = _in_code(r'reach\("([a-z_.]+)"\)')
    assert points
    assert [point for point in sorted(points) if f"`{point}`" not in PAGE] == []


def test_every_label_of_a_file_operation_is_on_the_page() -> None:
    labels = _in_code(r'label="([a-z_]+)"')
    assert labels
    assert [label for label in sorted(labels) if f"`{label}`" not in PAGE] == []
