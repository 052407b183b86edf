"""Pages of lists: so many items, and no more bytes than a page may have.

Sizes are read before the values, so that a page of large values never fills the memory.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct


class Page(Struct, frozen=True):
    """How much is read at once: at most so many items, and so many bytes of their values."""

    items_max: int
    bytes_max: int

    @property
    def look(self) -> int:
        """How many rows to look at: one more than are shown tells whether others follow."""
        return self.items_max + 1

    def cut(self, rows: Sequence[Any]) -> tuple[Sequence[Any], bool]:
        """Return the rows that fit, at least one, and whether others follow.

        Each row has its value's size as `size`.
        """
        total = 0
        for position, row in enumerate(rows):
            total += row.size
            if position == self.items_max or (position > 0 and total > self.bytes_max):
                return rows[:position], True
        return rows, False
