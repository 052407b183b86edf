"""Turn one record into the job that it stands for: the body of `POST /v1/tasks`, or a refusal.

Nothing is guessed and nothing is cut: a cell that breaks a rule refuses its row by name. What the
job says depends on the row, the mapping and the policy alone, never on the time of the import, so
that importing a file again says the same again.
"""

import re
from collections.abc import Mapping as Cells
from typing import Any

import msgspec
from msgspec import Struct

from workmate_server.imports.mapping import (
    Mapping,
    Phrase,
    fill,
    placeholders,
)
from workmate_server.imports.places import position, read_coordinates, read_pin
from workmate_server.imports.reading import Record
from workmate_server.imports.report import RowError
from workmate_server.imports.times import TimeReader
from workmate_shared.kernel.instants import seconds_between
from workmate_shared.tasks.commands import Articles, ExternalId, Priority, Skills, Source
from workmate_shared.tasks.policy import ProofPolicy
from workmate_shared.tasks.values import TaskPersonal

_BLANKS = re.compile(r"[^\S\n]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LIST_SEPARATOR = re.compile(r"[;,\s]+")


class Job(Struct, frozen=True):
    """What one row asks for: the creation key and the whole body."""

    source: str
    external_id: str
    body: dict[str, Any]


class Converter:
    """Applies one mapping. `source` and `policy` stand in for the mapping's own where given.

    Raises MappingError for a mapping whose zone or time formats are none.
    """

    def __init__(
        self,
        mapping: Mapping,
        cell_chars_max: int,
        source: str | None = None,
        policy: ProofPolicy | None = None,
    ) -> None:
        self._mapping = mapping
        self._cell_chars_max = cell_chars_max
        self._source = source
        usual = policy or mapping.proof_policy
        self._policy = None if usual is None else msgspec.json.decode(msgspec.json.encode(usual))
        self._times = TimeReader(mapping.times)
        self._columns = mapping.columns()
        self._absent = {word.strip().casefold() for word in ("", *mapping.absent)}

    def external_id(self, record: Record) -> str | None:
        """Return the external id of a record as far as it has one, for a refusal to name."""
        text = record.cells.get(self._mapping.external_id, "").strip()
        return text[:200] or None

    def convert(self, record: Record) -> Job:
        """Return the job of a record. Raises RowError with the rule that the row breaks."""
        if record.fault is not None:
            raise record.fault
        cells = self._clean(record.cells)
        mapping = self._mapping
        external_id = cells.get(mapping.external_id)
        if external_id is None:
            raise RowError("external_id_missing", f"{mapping.external_id} is empty")
        external_id = _typed(external_id, ExternalId, "external_id_invalid", mapping.external_id)
        source = self._source or cells.get(mapping.source_column or "") or mapping.source
        source = _typed(source, Source, "source_invalid", "source")
        body = {
            "source": source,
            "external_id": external_id,
            "priority": self._priority(cells),
            "due_at": self._due_at(cells),
            "window": self._window(cells),
            "required_skills": self._skills(cells),
            "pinned_articles": _structured(cells, mapping.pinned_articles, Articles),
            "proof_policy": self._proof_policy(cells),
            "personal": self._personal(cells),
            "position": self._position(cells),
        }
        said = {name: value for name, value in body.items() if value not in (None, {}, [])}
        return Job(source, external_id, said)

    def _clean(self, cells: Cells[str, str]) -> dict[str, str]:
        """Return the cells that say something, by column: of those that the mapping names."""
        found = {}
        for column, cell in cells.items():
            if column not in self._columns:
                continue
            if len(cell) > self._cell_chars_max:
                detail = f"{column}: {len(cell)} characters, at most {self._cell_chars_max}"
                raise RowError("cell_too_large", detail)
            text = cell.replace("\r\n", "\n").replace("\r", "\n")
            if _CONTROL.search(text):
                raise RowError("control_character", f"{column} holds a control character")
            text = _BLANKS.sub(" ", text).strip()
            if text.casefold() not in self._absent:
                found[column] = text
        return found

    def _priority(self, cells: Cells[str, str]) -> int | None:
        choice = self._mapping.priority
        text = cells.get(choice.column or "")
        if text is not None:
            number = int(text) if text.isascii() and text.isdigit() else -1
            return int(_typed(number, Priority, "priority_invalid", choice.column or ""))
        applies = (rule.priority for rule in choice.rules if _applies(rule, cells))
        return next(applies, choice.default)

    def _skills(self, cells: Cells[str, str]) -> list[str]:
        choice = self._mapping.skills
        text = cells.get(choice.column or "")
        if text is None:
            named = [
                skill for rule in choice.rules if _applies(rule, cells) for skill in rule.skills
            ]
            return list(dict.fromkeys((*choice.default, *named)))
        skills = _parsed(text, list) if text.startswith("[") else _LIST_SEPARATOR.split(text)
        return list(_typed(skills, Skills, "skills_invalid", choice.column or ""))

    def _due_at(self, cells: Cells[str, str]) -> str | None:
        mapping = self._mapping
        created = self._time(cells, mapping.created_at)
        due = self._time(cells, mapping.due_at)
        if created is not None and due is not None and seconds_between(created, due) < 0:
            detail = f"{mapping.due_at} {due} lies before {mapping.created_at} {created}"
            raise RowError("due_before_created", detail)
        if due is not None or mapping.due_after is None or created is None:
            return due
        term = mapping.due_after
        hours = next((rule.hours for rule in term.rules if _applies(rule, cells)), term.hours)
        return self._times.later(created, hours)

    def _window(self, cells: Cells[str, str]) -> dict[str, str] | None:
        columns = self._mapping.window
        if columns is None:
            return None
        start, end = self._time(cells, columns.start), self._time(cells, columns.end)
        if start is None and end is None:
            return None
        if start is None or end is None:
            missing = columns.start if start is None else columns.end
            raise RowError("window_incomplete", f"{missing} is empty")
        if seconds_between(start, end) < 0:
            raise RowError("window_reversed", f"{end} lies before {start}")
        return {"start": start, "end": end}

    def _time(self, cells: Cells[str, str], column: str | None) -> str | None:
        text = cells.get(column or "")
        return None if text is None else self._times.read(column or "", text)

    def _proof_policy(self, cells: Cells[str, str]) -> Any:
        own = _structured(cells, self._mapping.proof_policy_column, ProofPolicy)
        return self._policy if own is None else own

    def _personal(self, cells: Cells[str, str]) -> dict[str, str]:
        phrases = self._mapping.phrases()
        texts = {name: _composed(phrase, cells) for name, phrase in phrases.items()}
        found = {name: text for name, text in texts.items() if text is not None}
        try:
            msgspec.convert(found, TaskPersonal)
        except msgspec.ValidationError as error:
            raise RowError("text_too_long", str(error)) from error
        return found

    def _position(self, cells: Cells[str, str]) -> dict[str, Any]:
        columns = self._mapping.position
        coordinates = read_coordinates(
            cells.get(columns.latitude or ""), cells.get(columns.longitude or ""), columns.unit
        )
        pin = cells.get(columns.mappls_pin or "")
        return position(coordinates, None if pin is None else read_pin(pin))


def _applies(rule: Any, cells: Cells[str, str]) -> bool:
    """Whether the rule's column holds one of its values, in whatever case."""
    cell = cells.get(rule.column)
    return cell is not None and cell.casefold() in {value.casefold() for value in rule.values}


def _composed(phrase: Phrase, cells: Cells[str, str]) -> str | None:
    found = []
    for part in phrase.parts:
        usable = (fill(t, cells) for t in part if all(name in cells for name in placeholders(t)))
        text = next(usable, None)
        if text is not None:
            found.append(text)
    return phrase.join.join(found) if found else None


def _structured(cells: Cells[str, str], column: str | None, kind: Any) -> Any:
    """Return the JSON in a cell as it was written, after it has proved to be of the kind."""
    text = cells.get(column or "")
    if text is None:
        return None
    value = _parsed(text, Any)
    _typed(value, kind, "field_invalid", column or "")
    return value


def _parsed(text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise RowError("field_invalid", str(error)) from error


def _typed(value: Any, kind: Any, rule: str, column: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise RowError(rule, f"{column}: {error}") from error
