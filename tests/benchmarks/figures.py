"""Figures: what was measured, printed as one JSON line each.

The machine is shared and noisy, so that a figure is the median of several rounds and says how far
they lay apart. A limit is measured in the same run, round by round in turn with what it limits; the
ratio is the median of the rounds' own ratios, because noise that hits both hardly moves it.
"""

import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from msgspec import Struct

DIGITS = 4
"""Significant digits of a printed value."""


class Figure(Struct, frozen=True, kw_only=True):
    """One line: `n` counts the samples behind `value`, `conditions` say how they came about."""

    metric: str
    value: float
    unit: str
    n: int
    conditions: dict[str, Any]


Tell = Callable[[Figure], None]
"""Takes a figure as soon as it is known."""


class Pace(Struct, frozen=True):
    """How much is done: short runs only show that every figure is still measured."""

    short: bool

    def of(self, full: int, short: int) -> int:
        """Return a number of rounds, commands or bytes."""
        return short if self.short else full


def print_figure(figure: Figure) -> None:
    """Print a figure as one line of JSON."""
    fields = {name: getattr(figure, name) for name in figure.__struct_fields__}
    print(json.dumps(fields), flush=True)


def machine() -> dict[str, Any]:
    """Return what every reader of the figures has to know of the machine."""
    return {"python": platform.python_version(), "system": f"{sys.platform} {platform.machine()}"}


def summed_up(metric: str, samples: Sequence[float], unit: str, **conditions: Any) -> Figure:
    """Return the median of samples, with the lowest and the highest among the conditions."""
    spread = {"lowest": rounded(min(samples)), "highest": rounded(max(samples))}
    return Figure(
        metric=metric,
        value=rounded(median(samples)),
        unit=unit,
        n=len(samples),
        conditions={**conditions, **spread, **machine()},
    )


def ratio_of(
    metric: str, measured: Sequence[float], limit: Sequence[float], **conditions: Any
) -> Figure:
    """Return measured divided by limit, round by round."""
    ratios = [ours / theirs for ours, theirs in zip(measured, limit, strict=True)]
    return summed_up(metric, ratios, "ratio", **conditions)


def percentile(samples: Sequence[float], rank: int) -> float:
    """Return the value that `rank` in a hundred samples do not exceed."""
    return max(samples) if len(samples) < 2 else quantiles(samples, n=100)[rank - 1]


def rounded(value: float) -> float:
    """Return a value with as many digits as it is worth."""
    return float(f"{value:.{DIGITS}g}")


class Stopwatch:
    """Seconds of a block of work."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the time that the block takes."""
        begun = perf_counter()
        try:
            yield
        finally:
            self.seconds += perf_counter() - begun


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long a call took."""
    watch = Stopwatch()
    with watch.running():
        work()
    return watch.seconds
