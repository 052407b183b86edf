import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.documentation import (
    DOCS,
    ROOT,
    codes,
    fields,
    generate,
    lifecycles,
    markdown,
    settings,
)
from workmate_shared.kernel.catalogue import CATALOGUE
from workmate_shared.kernel.table import Relation, Repeat, Role, Row, Table
from workmate_shared.wire.registry import COMMAND_TYPES, EVENT_TYPES, KINDS, AggregateKind

STATES = ("begun", "waiting", "ended")
SMALL = Table(
    aggregate="parcel",
    states=STATES,
    rows=(
        Row(
            command="begin",
            event="parcel.begun",
            roles=frozenset({Role.INTEGRATION}),
            allowed_from=frozenset(),
            result="begun",
            creates=True,
        ),
        Row(
            command="wait",
            event="parcel.waited",
            roles=frozenset({Role.WORKER}),
            allowed_from=frozenset({"begun"}),
            result="waiting",
            relation=Relation.ASSIGNEE,
            repeat=Repeat.BEEN_THERE,
            note="Otherwise version_conflict | and no_such_code.",
        ),
        Row(
            command="end",
            event="parcel.ended",
            roles=frozenset({Role.WORKER, Role.ADMIN}),
            allowed_from=frozenset({"waiting", "begun"}),
            result="ended",
        ),
        Row(
            command="look",
            event="parcel.seen",
            roles=frozenset({Role.WORKER}),
            allowed_from=frozenset(STATES),
            annotates=True,
        ),
    ),
)


def test_the_reference_in_the_tree_is_what_the_code_says() -> None:
    assert generate.stale(ROOT) == []


def test_pages_are_written_once_and_stay(tmp_path: Path) -> None:
    assert generate.write(tmp_path) == [f"docs/reference/{n}" for n in sorted(generate.pages())]
    assert generate.write(tmp_path) == []


def test_a_stale_page_is_named_and_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate.write(tmp_path)
    page = tmp_path / "docs/reference/codes.md"
    page.write_text(f"{markdown.MARKER}\nold")
    assert generate.main(["--check", "--root", str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith("docs/reference/codes.md: ")
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert generate.main(["--check", "--root", str(tmp_path)]) == 0


def test_a_page_that_is_no_longer_made_goes_and_a_written_one_stays(tmp_path: Path) -> None:
    generate.write(tmp_path)
    folder = tmp_path / "docs/reference"
    (folder / "gone-lifecycle.md").write_text(f"{markdown.MARKER}\n")
    (folder / "by-hand.md").write_text("# By hand\n")
    assert generate.write(tmp_path) == ["docs/reference/gone-lifecycle.md"]
    assert not (folder / "gone-lifecycle.md").exists()
    assert (folder / "by-hand.md").exists()


def test_a_page_written_by_hand_is_never_overwritten(tmp_path: Path) -> None:
    page = tmp_path / "docs/reference/codes.md"
    page.parent.mkdir(parents=True)
    page.write_text("# By hand\n")
    with pytest.raises(FileExistsError):
        generate.write(tmp_path)
    assert page.read_text() == "# By hand\n"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_pages_do_not_depend_on_the_order_of_sets(tmp_path: Path, seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, str(DOCS / "generate.py"), "--root", str(tmp_path)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    assert generate.stale(tmp_path) == []


def test_a_lifecycle_that_is_registered_gets_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    parcel = replace(KINDS[0], name="parcel", lifecycle=replace(KINDS[0].lifecycle, table=SMALL))
    monkeypatch.setattr(generate, "KINDS", (*KINDS, parcel))
    pages = generate.pages()
    assert pages["parcel-lifecycle.md"].splitlines()[2] == "# Lifecycle of a parcel"
    assert "## Commands on a parcel" in pages["authorisation.md"]
    assert "[parcel](parcel-lifecycle.md)" in pages["messages.md"]


def test_a_lifecycle_is_drawn_with_every_way_in_and_out() -> None:
    page = lifecycles.lifecycle_page(SMALL)
    diagram = page.split("```mermaid\n")[1].split("\n```")[0]
    assert diagram.splitlines() == [
        "stateDiagram-v2",
        "    [*] --> begun: begin",
        "    begun --> waiting: wait",
        "    begun --> ended: end",
        "    waiting --> ended: end",
        "    ended --> [*]",
    ]


def test_a_row_says_who_when_and_by_which_codes() -> None:
    page = lifecycles.lifecycle_page(SMALL)
    assert (
        "| [`wait`](messages.md#wait) | worker (assignee) | `begun` | `waiting` "
        "| [`parcel.waited`](messages.md#parcelwaited) | required "
        "| Otherwise [`version_conflict`](codes.md#version_conflict) \\| and no_such_code. |"
    ) in page
    assert "| any but `ended` | `ended` |" in page
    assert "| any | annotation |" in page
    assert "| `wait` | the assignee has already been in the resulting state |" in page
    assert page.endswith("both:\n\n- `wait`\n")


def test_the_matrix_tells_roles_from_overrides() -> None:
    page = lifecycles.authorisation_page([SMALL])
    row = next(line for line in page.splitlines() if line.startswith("| [`wait`]"))
    cells = dict(zip(Role, (cell.strip() for cell in row.split("|")[2:]), strict=False))
    assert {role: cell for role, cell in cells.items() if cell} == {
        Role.WORKER: "yes",
        Role.SUPERVISOR: "override",
    }
    assert "No command is open to `dispatcher`, `supervisor`, `editor`" in page


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_row_of_every_lifecycle_is_on_its_page_and_in_the_matrix(kind: AggregateKind) -> None:
    pages = generate.pages()
    for row in kind.lifecycle.table.rows:
        for name in (f"{kind.name}-lifecycle.md", "authorisation.md"):
            assert f"| [`{row.command}`](messages.md#{row.command}) |" in pages[name]


def test_every_command_and_event_has_a_section() -> None:
    headings = generate.pages()["messages.md"].splitlines()
    for name in (*COMMAND_TYPES, *EVENT_TYPES):
        assert f"### {name}" in headings


def test_every_code_has_a_section_and_a_sentence_without_gaps() -> None:
    page = codes.codes_page(CATALOGUE.values())
    for code in CATALOGUE:
        assert f"\n### {code}\n" in page
    assert "not stated" not in page


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("request_bytes_max", 1024**2, "1 MiB"),
        ("piece_bytes", 1500, "1,500 B"),
        ("life_seconds", 900.0, "900 s (15 min)"),
        ("poll_seconds", 0.25, "0.25 s"),
        ("token_life_seconds", 7_776_000.0, "7,776,000 s (90 d)"),
        ("commands_max", 5000, "5,000"),
    ],
)
def test_a_limit_is_shown_in_the_unit_that_its_name_says(
    name: str, value: float, shown: str
) -> None:
    assert settings.readable(name, value) == shown


def test_the_meaning_of_a_limit_is_the_string_below_it_or_nothing() -> None:
    source = (
        "class Other:\n    size: int = 1\n    '''not this'''\n"
        "class Settings:\n    '''All.'''\n"
        "    first: int = 1\n    '''One,\n    and more.'''\n"
        "    second: int = 2\n    third: int = 3\n    '''Three.'''\n"
        "    def check(self): ...\n"
    )
    assert settings.read_meanings(source) == {"first": "One,\nand more.", "third": "Three."}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#/$defs/Window"}, "[Window](#window)"),
        ({"enum": ["a", "b"]}, "`a`, `b`"),
        ({"type": "string", "maxLength": 5}, "text (at most 5 characters)"),
        (
            {"type": "string", "pattern": "^[0-9a-f]{64}$(?!\\n)"},
            "[32 bytes in hex](#kinds-of-text)",
        ),
        ({"type": "integer", "minimum": 1, "maximum": 2**53 - 1}, "integer (at least 1)"),
        ({"type": "integer", "minimum": 1, "maximum": 1}, "`1`"),
        (
            {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 9},
            "list (1 to 9) of boolean",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            "map from text to boolean",
        ),
        (
            {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}]},
            "null or list of any value",
        ),
    ],
)
def test_a_schema_is_put_into_words(schema: dict[str, Any], words: str) -> None:
    assert fields.describe(schema) == words
