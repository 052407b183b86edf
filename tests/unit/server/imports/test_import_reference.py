"""The reference page of mappings names every field, every fault and every rule that the code has."""

import re
from pathlib import Path
from typing import get_args

import pytest

from workmate_server import imports
from workmate_server.imports.handing_in import CONFLICT, NOT_SENT
from workmate_server.imports.mapping import Mapping, load_mapping
from workmate_server.imports.reading import FileFault

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "reference" / "import-mapping.md").read_text()
CODE = "\n".join(path.read_text() for path in Path(imports.__path__[0]).glob("*.py"))
RULES = {
    *re.findall(r'RowError\(\s*"(\w+)"', CODE),
    *re.findall(r'"(\w+_invalid)"', CODE),
    CONFLICT,
    NOT_SENT,
}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_is_on_the_page(rule: str) -> None:
    assert f"`{rule}`" in PAGE


@pytest.mark.parametrize("fault", get_args(FileFault))
def test_every_fault_of_a_file_is_on_the_page(fault: str) -> None:
    assert f"`{fault}`" in PAGE


@pytest.mark.parametrize("field", Mapping.__struct_fields__)
def test_every_field_of_a_mapping_is_on_the_page(field: str) -> None:
    assert f"`{field}`" in PAGE


def test_every_column_of_our_own_names_is_on_the_page() -> None:
    assert [name for name in load_mapping("workmate").columns() if f"`{name}`" not in PAGE] == []


def test_the_page_names_no_rule_that_the_code_lacks() -> None:
    rules = PAGE.partition("## The rules for a row")[2].partition("\n## ")[0]
    named = {
        name
        for line in rules.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert named == RULES
