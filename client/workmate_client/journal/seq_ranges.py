"""Sets of `device_seq` numbers as ranges with both ends, which is how they are kept."""

from collections.abc import Iterable, Sequence

Ranges = tuple[tuple[int, int], ...]


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Return the fewest ranges that hold exactly these numbers, in order."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def numbers_in(ranges: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Return the numbers in ranges."""
    return frozenset(number for low, high in ranges for number in range(low, high + 1))
