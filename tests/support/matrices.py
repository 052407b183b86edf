"""Reader of the literal tables that state who may do what in which state.

A file has lines `= word code annotation`, `@ group role role …`, section heads `way -> event` and,
below a head, rows `roles relations answers`. A row gives one answer for each state, or one word for
every state but the first, in which there is no aggregate yet and the answer is `unseen`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Cell(NamedTuple):
    """One case: who, what he is to the aggregate, its state, and the word for the answer."""

    role: str
    relation: str
    state: str
    answer: str


class Section(NamedTuple):
    """One way of issuing a command, the event that it writes, and its cases."""

    way: str
    event: str
    cells: tuple[Cell, ...]

    @property
    def command(self) -> str:
        """The command's wire name: the first word of the way."""
        return self.way.replace(",", " ").split()[0]


class Matrix:
    """A table as it was read: its sections, and what its words mean."""

    def __init__(self, path: Path, states: Sequence[str], relations: Sequence[str]) -> None:
        self.states = states
        self.relations = relations
        self.sections: list[Section] = []
        self._words: dict[str, tuple[str, str | None]] = {}
        self._groups: dict[str, list[str]] = {}
        for line in path.read_text().splitlines():
            self._read(line.split())

    def expected(self, section: Section, cell: Cell) -> tuple[str, str | None]:
        """Return the code or status that the cell states, and the event that comes with it."""
        code, annotation = self._words[cell.answer]
        return code, section.event if code == "committed" else annotation

    def _read(self, parts: list[str]) -> None:
        match parts:
            case [] | ["#", *_]:
                return
            case ["=", word, code]:
                self._words[word] = (code, None)
            case ["=", word, code, annotation]:
                self._words[word] = (code, annotation)
            case ["@", group, *roles]:
                self._groups[group] = roles
            case [*way, "->", event]:
                self.sections.append(Section(" ".join(way), event, ()))
            case _:
                last = self.sections[-1]
                self.sections[-1] = last._replace(cells=(*last.cells, *self._row(parts)))

    def _row(self, parts: list[str]) -> Iterator[Cell]:
        known = {*self.relations, "any"}
        at = next(index for index, part in enumerate(parts) if part in known)
        roles = [role for part in parts[:at] for role in self._groups.get(part, [part])]
        relations = [part for part in parts[at:] if part in self.relations] or self.relations
        answers = [part for part in parts[at:] if part not in known]
        if len(answers) == 1:
            answers = ["unseen", *answers * (len(self.states) - 1)]
        for role in roles:
            for relation in relations:
                for state, answer in zip(self.states, answers, strict=True):
                    if answer != "-":
                        yield Cell(role, relation, state, answer)
