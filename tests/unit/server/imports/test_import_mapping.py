"""A mapping is declared data; one that cannot mean anything is refused when it is loaded."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.job_files import make_mapping
from workmate_server.imports.mapping import (
    BUILTIN_MAPPINGS,
    MAPPING_BYTES_MAX,
    MappingError,
    load_mapping,
    load_policy,
)
from workmate_server.imports.times import TimeReader


def write(folder: Path, content: object) -> str:
    file = folder / "mapping.json"
    file.write_text(json.dumps(content))
    return str(file)


@pytest.mark.parametrize("name", BUILTIN_MAPPINGS)
def test_a_built_in_mapping_bears_its_name_and_its_times_can_be_read(name: str) -> None:
    mapping = load_mapping(name)
    assert mapping.name == name
    TimeReader(mapping.times)
    assert mapping.external_id in mapping.required_columns()


def test_a_mapping_in_a_file_is_the_mapping_that_it_says(tmp_path: Path) -> None:
    whole = load_mapping("nyc311")
    file = write(tmp_path, msgspec.to_builtins(whole))
    assert load_mapping(file) == whole


@pytest.mark.parametrize(
    "fields",
    [
        {"clients": {"parts": [["{a}"]]}},
        {"source": "no spaces"},
        {"client": {"parts": []}},
        {"client": {"parts": [["{a"]]}},
        {"client": {"parts": [["{}"]]}},
        {"times": {"formats": ["%H:%M"]}},
        {"times": {"formats": []}},
        {"position": {"latitude": "lat"}},
        {"due_after": {"hours": 1}},
        {"due_after": {"hours": 0}, "created_at": "c"},
        {"priority": {"default": 10}},
        {"skills": {"default": ["Not A Skill"]}},
        {"proof_policy": {"photos": [{"slot": "a", "prompt": "p", "min": 3, "max": 2}]}},
        {"unknown_columns": "maybe"},
    ],
)
def test_a_mapping_that_cannot_mean_anything_is_refused(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    whole = {"name": "test", "source": "src", "external_id": "id"} | fields
    with pytest.raises(MappingError):
        load_mapping(write(tmp_path, whole))


def test_a_mapping_or_policy_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="built in: nyc311, workmate"):
        load_mapping("nyc")
    with pytest.raises(MappingError):
        load_policy(tmp_path / "none.json")
    with pytest.raises(MappingError):
        load_mapping(str(tmp_path))


def test_a_mapping_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    whole = {"name": "test", "source": "src", "external_id": "id", "absent": []}
    text = json.dumps(whole)
    file = tmp_path / "mapping.json"
    file.write_text(text + " " * (MAPPING_BYTES_MAX - len(text)))
    assert load_mapping(str(file)).name == "test"
    file.write_text(text + " " * (MAPPING_BYTES_MAX - len(text) + 1))
    with pytest.raises(MappingError):
        load_mapping(str(file))


def test_a_policy_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text('{"signature": ["worker"]}')
    assert load_policy(file).signature == ("worker",)
    file.write_text('{"signatures": ["worker"]}')
    with pytest.raises(MappingError):
        load_policy(file)


def test_every_column_that_is_named_anywhere_is_needed_unless_it_is_optional() -> None:
    mapping = make_mapping(
        client={"parts": [["{a}", "{b} and {c}"]]},
        created_at="d",
        due_at="e",
        due_after={"hours": 1, "rules": [{"column": "f", "values": ["x"], "hours": 2}]},
        window={"start": "g", "end": "h"},
        position={"latitude": "i", "longitude": "j", "mappls_pin": "k"},
        priority={"column": "l", "rules": [{"column": "m", "values": ["x"], "priority": 1}]},
        skills={"column": "n", "rules": [{"column": "o", "values": ["x"], "skills": ["s"]}]},
        pinned_articles="p",
        proof_policy_column="q",
        source_column="r",
        optional=["a", "q"],
    )
    assert mapping.columns() == {"id", *"abcdefghijklmnopqr"}
    assert mapping.required_columns() == {"id", *"bcdefghijklmnopr"}
