"""What `verify` reports: the place, the kind of fault, and one line about it."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Fault = Literal["changed", "missing", "inserted", "reordered", "damaged", "differs", "forbidden"]


class Finding(Struct, frozen=True):
    """One fault: where it is (table, row, perhaps column), of which kind, and what was seen."""

    place: str
    fault: Fault
    detail: str


class Findings:
    """The faults found so far, in the order of the walk, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self.found: list[Finding] = []
        self._limit = limit

    def add(self, place: str, fault: Fault, detail: str) -> None:
        """Report a fault; what is no text in it is shown as escapes."""
        if len(self.found) < self._limit:
            self.found.append(Finding(_shown(place), fault, _shown(detail)))

    def compare(self, place: str, fault: Fault, pairs: Mapping[str, tuple[object, object]]) -> None:
        """Report every column whose stored value is not the one that the signed bytes say."""
        for column, (stored, signed) in pairs.items():
            if stored != signed:
                self.add(f"{place} {column}", fault, "it is not what was signed")

    def misfits(self, place: str, columns: list[str]) -> bool:
        """Report columns that hold what their table forbids; return whether there are any."""
        for column in columns:
            self.add(f"{place} {column}", "changed", "its table allows no such value")
        return bool(columns)


def _shown(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
