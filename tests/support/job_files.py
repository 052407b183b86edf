"""Job files and mappings for the tests of imports: small, and with the faults of real ones."""

from pathlib import Path
from typing import Any

import msgspec

from workmate_server.config import Settings
from workmate_server.imports.convert import Converter, Job
from workmate_server.imports.mapping import Mapping, load_mapping
from workmate_server.imports.reading import Record, read_records

PORTAL_ROW = {
    "Unique Key": "10000001",
    "Created Date": "04/18/2019 09:55:45 PM",
    "Agency": "DOT",
    "Agency Name": "Department of Transportation",
    "Complaint Type": "Street Light Condition",
    "Descriptor": "Street Light Out",
    "Location Type": "Street",
    "Incident Zip": "10001",
    "Incident Address": "1 EXAMPLE STREET",
    "Street Name": "EXAMPLE STREET",
    "Cross Street 1": "FIRST AVENUE",
    "Cross Street 2": "SECOND AVENUE",
    "Intersection Street 1": "",
    "Intersection Street 2": "",
    "City": "NEW YORK",
    "Landmark": "",
    "Due Date": "04/19/2019 05:55:45 AM",
    "Borough": "MANHATTAN",
    "Park Facility Name": "Unspecified",
    "Bridge Highway Name": "",
    "Latitude": "40.5863974",
    "Longitude": "-73.9325913",
    "Status": "Closed",
}
"""One row as the portal writes it, with the columns that its mapping reads and one that it does not."""


def make_mapping(**fields: Any) -> Mapping:
    """Return a mapping of the columns `id`, and whatever the fields name."""
    whole = {"name": "test", "source": "src", "external_id": "id"} | fields
    return msgspec.convert(whole, Mapping)


def convert_portal_row(**cells: str) -> Job:
    """Return the job of the portal's row with some cells changed; raises RowError."""
    return convert_row(load_mapping("nyc311"), PORTAL_ROW | cells)


def convert_row(mapping: Mapping, cells: dict[str, str]) -> Job:
    """Return the job of one row; raises RowError."""
    return make_converter(mapping).convert(Record(2, cells))


def make_converter(mapping: Mapping) -> Converter:
    """Return a converter with the server's usual limits."""
    return Converter(mapping, Settings().import_cell_chars_max)


def read_text(folder: Path, text: str, mapping: Mapping, name: str = "jobs.csv") -> list[Record]:
    """Return the records of a file with this text."""
    file = folder / name
    file.write_bytes(text.encode())
    return read_records(file, mapping, Settings())


def faults(records: list[Record]) -> dict[int, str]:
    """Return the rule that each broken record breaks, by row."""
    return {record.row: record.fault.rule for record in records if record.fault is not None}
