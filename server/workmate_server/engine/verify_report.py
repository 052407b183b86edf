"""What `verify` reports: the place, the kind of fault, and one line about it."""

from typing import Literal

from msgspec import Struct

Fault = Literal["changed", "missing", "inserted", "reordered", "damaged", "differs"]


class Finding(Struct, frozen=True):
    """One fault: where it is, of which kind, and what was seen."""

    place: str
    fault: Fault
    detail: str


class Findings:
    """The faults found so far, in the order of the walk, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self.found: list[Finding] = []
        self._limit = limit

    def add(self, place: str, fault: Fault, detail: str) -> None:
        """Report a fault."""
        if len(self.found) < self._limit:
            self.found.append(Finding(place, fault, detail))

    def compare(self, place: str, fault: Fault, pairs: dict[str, tuple[object, object]]) -> None:
        """Report every column whose stored value is not the one that the signed bytes say."""
        for column, (stored, signed) in pairs.items():
            if stored != signed:
                self.add(f"{place} {column}", fault, "it is not what was signed")
