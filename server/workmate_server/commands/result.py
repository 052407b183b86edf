"""What a command gives back to the command line: a value for programs, lines for people."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

DONE = 0
FOUND = 1
"""The command ran, and found what should not be; or it could not do its work."""


class Result(Struct, frozen=True, kw_only=True):
    """How a command ended.

    `value` is printed as JSON where that was asked for, `lines` otherwise; `notes` go to standard
    error in both cases.
    """

    value: Any
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    exit_code: int = DONE
