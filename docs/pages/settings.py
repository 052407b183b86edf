"""The pages of all limits: names and values from a settings struct, meanings from its source.

The meaning of a setting is the string that stands under it in the class; it is read from the source
because no program keeps it.
"""

import ast
import inspect
from itertools import pairwise
from types import ModuleType

from msgspec import Struct

from pages.markdown import code, page, table

CLASS_NAME = "Settings"

_BYTE_STEPS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_TIME_STEPS = (("d", 86_400), ("h", 3_600), ("min", 60))


def settings_page(title: str, module: ModuleType, *notes: str) -> str:
    """Return the page of a module's `Settings`: name, value and meaning of each, then notes."""
    settings: Struct = getattr(module, CLASS_NAME)()
    meanings = read_meanings(inspect.getsource(module))
    return page(
        title,
        f"The fields of `{module.__name__}.{CLASS_NAME}`, each with the value that it has unless "
        "another is handed in. Names end in their unit, or hold it: bytes or seconds.",
        table(
            ("Name", "Value", "Meaning"),
            (
                (code(name), readable(name, getattr(settings, name)), meanings.get(name, ""))
                for name in settings.__struct_fields__
            ),
        ),
        *notes,
    )


def read_meanings(source: str) -> dict[str, str]:
    """Return the string that stands under each field of `Settings` in a module's source."""
    body = next(
        (
            node.body
            for node in ast.parse(source).body
            if isinstance(node, ast.ClassDef) and node.name == CLASS_NAME
        ),
        [],
    )
    found: dict[str, str] = {}
    for field, below in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            found[field.target.id] = inspect.cleandoc(below.value.value)
    return found


def readable(name: str, value: object) -> str:
    """Return a value in the unit that its name says, with a rounder one beside large numbers.

    A `…_bytes` of 8388608 is `8 MiB`, a `…_seconds` of 900 is `900 s (15 min)`.
    """
    parts = name.split("_")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return code(value)
    if "bytes" in parts:
        return _rounder(value, _BYTE_STEPS) or f"{value:,} B"
    if "seconds" in parts:
        larger = _rounder(value, _TIME_STEPS)
        return f"{_plain(value)} s ({larger})" if larger else f"{_plain(value)} s"
    return f"{value:,}"


def _rounder(value: float, steps: tuple[tuple[str, int], ...]) -> str:
    for unit, size in steps:
        if value >= size and value % size == 0:
            return f"{_plain(value / size)} {unit}"
    return ""


def _plain(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else str(value)
