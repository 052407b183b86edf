"""The small Markdown vocabulary of the generated pages.

Cells and lists are escaped here, and order is made here: whatever comes out of a set is sorted, so
that a page never changes by chance.
"""

import re
from collections.abc import Iterable, Sequence

from workmate_shared.kernel.catalogue import CATALOGUE

MARKER = "<!-- Written by docs/generate.py from the code: change the code, then run make docs. -->"
"""First line of every generated page; a file without it is never overwritten or removed."""

_WORD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def page(title: str, *parts: str) -> str:
    """Return a whole page: marker, title and parts, parted by empty lines."""
    return "\n\n".join([MARKER, f"# {title}", *(part for part in parts if part)]) + "\n"


def code(text: object) -> str:
    """Return text as code."""
    return f"`{text}`"


def codes(names: Iterable[object]) -> str:
    """Return names as a list in one line, each as code, in the order given."""
    return ", ".join(code(name) for name in names)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars inside cells are escaped and line breaks become spaces."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def bullets(items: Iterable[str]) -> str:
    """Return a list of points."""
    return "\n".join(f"- {item}" for item in items)


def linked_codes(text: str) -> str:
    """Return text in which every code of the catalogue leads to its entry."""

    def link(match: re.Match[str]) -> str:
        name = match[0]
        return f"[`{name}`](codes.md#{name})" if name in CATALOGUE else name

    return _WORD.sub(link, text)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
