"""What a mapping declares: which column of a job file becomes which field of a task, and how.

A mapping is pure data, a JSON file of one object. Two come with the program: `nyc311` for the
export of that city's open-data portal, `workmate` for files whose columns bear our own names.
Columns are named as the file's header names them. A text is made of templates, in which `{Column}`
stands for the cell.
"""

import re
from collections.abc import Iterator
from collections.abc import Mapping as Cells
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct

from workmate_shared.kernel.ids import Identifier
from workmate_shared.tasks.commands import Priority, Skills
from workmate_shared.tasks.policy import ProofPolicy
from workmate_shared.wire.codec import MalformedError, decode

BUILTIN_MAPPINGS = ("nyc311", "workmate")
"""The mappings that come with the program, by name."""

MAPPING_BYTES_MAX = 256 * 1024
"""Largest file of a mapping or a policy, in bytes."""

RFC3339 = "rfc3339"
"""The time format of instants that carry their offset and are kept letter for letter."""

Column = Annotated[str, Meta(min_length=1, max_length=200)]
Columns = Annotated[tuple[Column, ...], Meta(max_length=500)]
Values = Annotated[tuple[str, ...], Meta(min_length=1, max_length=500)]
Hours = Annotated[int, Meta(ge=1, le=100_000)]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$(?!\n)")]

T = TypeVar("T")

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class MappingError(Exception):
    """A mapping or policy that cannot be used: where it is wrong, and how."""


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Phrase(_Part, frozen=True, kw_only=True):
    """A text made of `parts`, joined; of each part the first template whose cells are all there.

    A part none of whose templates can be filled is left out; a text without parts is absent.
    """

    parts: Annotated[
        tuple[Annotated[tuple[str, ...], Meta(min_length=1, max_length=20)], ...],
        Meta(min_length=1, max_length=50),
    ]
    join: str = ", "

    def __post_init__(self) -> None:
        """Refuse a template with a brace that belongs to no column."""
        for template in self.templates():
            if set("{}") & set(_PLACEHOLDER.sub("", template)):
                raise ValueError(f"a brace without its column in {template!r}")

    def templates(self) -> Iterator[str]:
        """Yield every template."""
        for part in self.parts:
            yield from part

    def columns(self) -> Iterator[str]:
        """Yield every column that a template names."""
        for template in self.templates():
            yield from placeholders(template)


def placeholders(template: str) -> list[str]:
    """Return the columns that a template names, in order."""
    return _PLACEHOLDER.findall(template)


def fill(template: str, cells: Cells[str, str]) -> str:
    """Return the template with every `{Column}` replaced by its cell."""
    return _PLACEHOLDER.sub(lambda found: cells[found[1]], template)


class Times(_Part, frozen=True, kw_only=True):
    """How cells write times: formats tried in order, and the IANA zone of local times.

    A format is `rfc3339` or a pattern of Python's `strptime`; local times need a zone.
    """

    formats: Annotated[tuple[str, ...], Meta(min_length=1, max_length=20)]
    zone: Annotated[str, Meta(max_length=64)] | None = None

    def __post_init__(self) -> None:
        """Refuse local times that nothing says the zone of."""
        if self.zone is None and set(self.formats) != {RFC3339}:
            raise ValueError("times without an offset need a zone")


class _Rule(_Part, frozen=True, kw_only=True):
    column: Column
    values: Values


class PriorityRule(_Rule, frozen=True, kw_only=True):
    """Rows whose cell is one of the values have this priority."""

    priority: Priority


class PriorityChoice(_Part, frozen=True, kw_only=True):
    """The priority: of the cell, else of the first rule that applies, else the default, if any."""

    column: Column | None = None
    rules: Annotated[tuple[PriorityRule, ...], Meta(max_length=200)] = ()
    default: Priority | None = None


class SkillRule(_Rule, frozen=True, kw_only=True):
    """Rows whose cell is one of the values require these skills."""

    skills: Skills


class SkillChoice(_Part, frozen=True, kw_only=True):
    """The required skills: those of the cell (a list), of every rule that applies, the default."""

    column: Column | None = None
    rules: Annotated[tuple[SkillRule, ...], Meta(max_length=200)] = ()
    default: Skills = ()


class TermRule(_Rule, frozen=True, kw_only=True):
    """Rows whose cell is one of the values are due so many hours after their creation."""

    hours: Hours


class Term(_Part, frozen=True, kw_only=True):
    """When a row without a due date is due: hours that pass after its creation."""

    hours: Hours
    rules: Annotated[tuple[TermRule, ...], Meta(max_length=200)] = ()


class WindowColumns(_Part, frozen=True, kw_only=True):
    """The columns of the service window."""

    start: Column
    end: Column


class PlaceColumns(_Part, frozen=True, kw_only=True):
    """The columns of the site's position: coordinates in `unit`, a Mappls Pin, or both.

    `degrees` are decimal degrees (WGS 84), `e7` integers of 1e-7 degree.
    """

    latitude: Column | None = None
    longitude: Column | None = None
    unit: Literal["degrees", "e7"] = "degrees"
    mappls_pin: Column | None = None

    def __post_init__(self) -> None:
        """Refuse half a coordinate."""
        if (self.latitude is None) != (self.longitude is None):
            raise ValueError("latitude and longitude come together")


class Mapping(_Part, frozen=True, kw_only=True):
    """One kind of job file. Everything but its name, source and id column may be left out.

    What neither the row nor the mapping says is left out of the job, so that the API's defaults
    apply to it as to any other.
    `optional` columns may be missing from the file; all others that the mapping names must be
    there. A cell that is empty or one of `absent` (whatever its case) counts as not said. With
    `unknown_columns` set to `refuse` a column that the mapping does not name is an error.
    """

    name: Name
    source: Identifier
    external_id: Column
    source_column: Column | None = None
    times: Times = Times(formats=(RFC3339,))
    created_at: Column | None = None
    due_at: Column | None = None
    due_after: Term | None = None
    window: WindowColumns | None = None
    client: Phrase | None = None
    site_name: Phrase | None = None
    address: Phrase | None = None
    instructions: Phrase | None = None
    position: PlaceColumns = PlaceColumns()
    priority: PriorityChoice = PriorityChoice()
    skills: SkillChoice = SkillChoice()
    pinned_articles: Column | None = None
    proof_policy_column: Column | None = None
    proof_policy: ProofPolicy | None = None
    absent: Annotated[tuple[str, ...], Meta(max_length=50)] = ("N/A",)
    optional: Columns = ()
    unknown_columns: Literal["ignore", "refuse"] = "ignore"

    def __post_init__(self) -> None:
        """Refuse a term that counts from a time which no column says."""
        if self.due_after is not None and self.created_at is None:
            raise ValueError("due_after counts from created_at, which is missing")

    def phrases(self) -> dict[str, Phrase]:
        """Return the texts that the mapping makes, by the name of their field."""
        names = ("client", "site_name", "address", "instructions")
        found = {name: getattr(self, name) for name in names}
        return {name: phrase for name, phrase in found.items() if phrase is not None}

    def columns(self) -> set[str]:
        """Return every column that the mapping names."""
        named: set[str | None] = {
            self.external_id,
            self.source_column,
            self.created_at,
            self.due_at,
            self.position.latitude,
            self.position.longitude,
            self.position.mappls_pin,
            self.priority.column,
            self.skills.column,
            self.pinned_articles,
            self.proof_policy_column,
        }
        if self.window is not None:
            named |= {self.window.start, self.window.end}
        for phrase in self.phrases().values():
            named |= set(phrase.columns())
        rules: list[_Rule] = [*self.priority.rules, *self.skills.rules]
        if self.due_after is not None:
            rules += self.due_after.rules
        named |= {rule.column for rule in rules}
        return {column for column in named if column is not None}

    def required_columns(self) -> set[str]:
        """Return the columns without which a file is not of this kind."""
        return self.columns() - set(self.optional)


def load_mapping(name: str) -> Mapping:
    """Return the built-in mapping of a name, or the one in the file that the name leads to.

    Raises MappingError for an unknown name, a file that cannot be read, or one that is no mapping.
    """
    if name in BUILTIN_MAPPINGS:
        data = files(__package__).joinpath("mappings", f"{name}.json").read_bytes()
    else:
        data = _read(Path(name), f"no mapping is called {name!r}; built in: nyc311, workmate")
    return _decode(data, Mapping, name)


def load_policy(path: Path) -> ProofPolicy:
    """Return the proof policy in a JSON file; raises MappingError."""
    return _decode(_read(path, f"there is no file {path}"), ProofPolicy, str(path))


def _read(path: Path, missing: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise MappingError(missing) from error
    except OSError as error:
        raise MappingError(f"{path} cannot be read: {error.strerror}") from error


def _decode(data: bytes, kind: type[T], name: str) -> T:
    try:
        return decode(data, kind, max_bytes=MAPPING_BYTES_MAX)
    except MalformedError as error:
        raise MappingError(f"{name}: {error.detail} (at {error.path})") from error
