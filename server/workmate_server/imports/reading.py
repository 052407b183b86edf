"""Read a job file, CSV (RFC 4180) or JSON, into records: cells by column, all of them text.

A fault of the whole file (encoding, header, a quotation that never ends) is an error, and nothing
of the file is taken; a fault of one row is kept with that row. Numbers of a JSON file stay the text
that they were, so that no coordinate passes through a float.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from workmate_server.config import Settings
from workmate_server.imports.mapping import Mapping
from workmate_server.imports.report import RowError
from workmate_shared.wire.codec import MalformedError, decode

FIRST_CSV_ROW = 2
FIRST_JSON_ROW = 1

_JSON = msgspec.json.Decoder(list[Any], float_hook=str)
_SHOWN = 10
"""How many column names an error lists."""

FileFault = Literal[
    "file_missing",
    "file_unreadable",
    "file_empty",
    "file_too_large",
    "file_encoding",
    "file_syntax",
    "duplicate_column",
    "missing_column",
    "unknown_column",
]


class FileError(Exception):
    """A job file of which nothing can be taken; `code` says why."""

    def __init__(self, code: FileFault, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: FileFault = code
        self.detail = detail


class Record(Struct, frozen=True):
    """One row: its number, its cells by column, and why it cannot be used, if it cannot."""

    row: int
    cells: dict[str, str]
    fault: RowError | None = None


def read_records(path: Path, mapping: Mapping, settings: Settings) -> list[Record]:
    """Return the rows of a file, which is JSON if its name ends in `.json` and CSV otherwise.

    Raises FileError.
    """
    text = _read_text(path, settings.import_file_bytes_max)
    if path.suffix.lower() == ".json":
        return list(_json_records(text, mapping, settings))
    return list(_csv_records(text, mapping))


def fitting_mapping(path: Path, mappings: Sequence[Mapping], settings: Settings) -> Mapping:
    """Return the first mapping all of whose needed columns a file has, or the last one.

    Raises FileError for a file that cannot be read.
    """
    text = _read_text(path, settings.import_file_bytes_max)
    if path.suffix.lower() == ".json":
        items = _decode_items(text, settings)
        first = items[0] if items and isinstance(items[0], dict) else {}
        named = {name for name, value in first.items() if value is not None}
    else:
        named = set(_named(_csv_reader(text)))
    fitting = (one for one in mappings if one.required_columns() <= named)
    return next(fitting, mappings[-1])


def _read_text(path: Path, max_bytes: int) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise FileError("file_missing", f"there is no file {path}") from error
    except OSError as error:
        raise FileError("file_unreadable", f"{path}: {error.strerror}") from error
    if len(data) > max_bytes:
        raise FileError("file_too_large", f"more than {max_bytes} bytes; split the file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        detail = f"not UTF-8 at byte {error.start}, in line {line}; save the file as UTF-8"
        raise FileError("file_encoding", detail) from error
    if not text.strip():
        raise FileError("file_empty", "there is nothing in the file")
    return text


def _csv_reader(text: str) -> Any:
    # Cells are measured one by one later; the module's own limit would end the whole file.
    csv.field_size_limit(len(text) + 1)
    return csv.reader(StringIO(text, newline=""), strict=True)


def _csv_records(text: str, mapping: Mapping) -> Iterator[Record]:
    reader = _csv_reader(text)
    header = _read_header(reader, mapping)
    row = FIRST_CSV_ROW - 1
    while True:
        first_line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            if "unexpected end" in str(error):
                detail = f"the quotation that begins in line {first_line} never ends"
                raise FileError("file_syntax", detail) from error
            row += 1
            place = f"lines {first_line} to {reader.line_num}"
            yield Record(row, {}, RowError("row_syntax", f"{place}: {error}"))
            continue
        if cells is None:
            return
        if cells:
            row += 1
            yield _csv_record(row, header, cells)


def _read_header(reader: Iterator[list[str]], mapping: Mapping) -> list[str]:
    header = _named(reader)
    named = [name for name in header if name]
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise FileError("duplicate_column", f"more than one column is called {_list(twice)}")
    missing = mapping.required_columns() - set(named)
    if missing:
        detail = f"the mapping {mapping.name} needs {_list(sorted(missing))}"
        raise FileError("missing_column", detail)
    unknown = set(named) - mapping.columns()
    if unknown and mapping.unknown_columns == "refuse":
        detail = f"the mapping {mapping.name} does not know {_list(sorted(unknown))}"
        raise FileError("unknown_column", detail)
    return header


def _named(reader: Iterator[list[str]]) -> list[str]:
    try:
        return [name.strip() for name in next(reader)]
    except csv.Error as error:
        raise FileError("file_syntax", f"the header: {error}") from error


def _list(names: list[str]) -> str:
    shown = ", ".join(repr(name[:80]) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _csv_record(row: int, header: list[str], cells: list[str]) -> Record:
    found = dict(zip(header, cells, strict=False))
    if len(cells) == len(header):
        return Record(row, found)
    detail = f"{len(cells)} cells where the header has {len(header)}"
    return Record(row, found, RowError("row_ragged", detail))


def _json_records(text: str, mapping: Mapping, settings: Settings) -> Iterator[Record]:
    for row, item in enumerate(_decode_items(text, settings), start=FIRST_JSON_ROW):
        if not isinstance(item, dict):
            yield Record(row, {}, RowError("row_syntax", "a job is an object"))
            continue
        yield _json_record(row, item, mapping)


def _decode_items(text: str, settings: Settings) -> list[Any]:
    data = text.encode()
    try:
        # Twice: first for what makes a text ambiguous, then with numbers as they are written.
        decode(data, list[Any], max_bytes=settings.import_file_bytes_max, floats=True)
    except MalformedError as error:
        raise FileError("file_syntax", f"{error.detail} (at {error.path})") from error
    return _JSON.decode(data)


def _json_record(row: int, item: dict[str, Any], mapping: Mapping) -> Record:
    columns = mapping.columns()
    cells = dict(
        chain.from_iterable(_flatten(name, value, columns) for name, value in item.items())
    )
    unknown = sorted(set(cells) - columns)
    if unknown and mapping.unknown_columns == "refuse":
        return Record(row, cells, RowError("unknown_field", f"not a field: {_list(unknown)}"))
    return Record(row, cells)


def _flatten(path: str, value: Any, columns: set[str]) -> Iterator[tuple[str, str]]:
    """Yield (column, text) of a member; what lies in objects has dotted names."""
    match value:
        case None:
            return
        case str():
            yield path, value
        case dict() if path not in columns:
            for name, member in value.items():
                yield from _flatten(f"{path}.{name}", member, columns)
        case _:
            yield path, msgspec.json.encode(value).decode()
