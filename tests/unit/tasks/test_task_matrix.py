"""Every role, command, state and relation gives the answer that the literal table states."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.commands import (
    ASSIGNEE,
    FORMER,
    STRANGER,
    make_actor,
    make_command,
    make_manifest,
    make_policy,
    manifest_fields,
)
from support.contexts import HANDED_OVER_ID, decide_task, events_of, walk_to
from workmate_shared.kernel.decision import Committed, Unchanged
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.tasks.task import Task

STATES = (
    "none",
    "unassigned",
    "assigned",
    "accepted",
    "en_route",
    "in_progress",
    "proof_pending",
    "completed",
    "cancelled",
)
RELATIONS = {"assignee": ASSIGNEE, "former": FORMER, "stranger": STRANGER}
NEW_MANIFEST = manifest_fields(make_manifest(manifest_id="manifest-new"))
BY_ID = {"manifest": None, "content_hash": None, "manifest_id": HANDED_OVER_ID}
FIELDS: dict[str, dict[str, Any]] = {
    "submit_proof": NEW_MANIFEST,
    "submit_proof of what was handed over": BY_ID,
    "hand_over": NEW_MANIFEST,
    "dismiss_handover": {"manifest_id": HANDED_OVER_ID},
    "amend of the proof policy": {"proof_policy": make_policy(geofence_m=500)},
}
OVERRIDES = {"": None, "the assignee": ASSIGNEE, "the former holder": FORMER}


class Cell(NamedTuple):
    role: str
    relation: str
    state: str
    answer: str


class Section(NamedTuple):
    way: str
    event: str
    cells: tuple[Cell, ...]

    @property
    def command(self) -> str:
        return self.way.partition(",")[0].split()[0]

    @property
    def fields(self) -> dict[str, Any]:
        way, _, person = self.way.partition(", override for ")
        return FIELDS.get(way, {}) | {"override": OVERRIDES[person]}


def read_table() -> tuple[dict[str, tuple[str, str | None]], list[Section]]:
    words: dict[str, tuple[str, str | None]] = {}
    groups: dict[str, list[str]] = {}
    sections: list[Section] = []
    for line in (Path(__file__).parent / "task_matrix.txt").read_text().splitlines():
        match line.split():
            case [] | ["#", *_]:
                continue
            case ["=", word, code, *annotation]:
                words[word] = (code, annotation[0] if annotation else None)
            case ["@", group, *roles]:
                groups[group] = roles
            case [*way, "->", event]:
                sections.append(Section(" ".join(way), event, ()))
            case parts if sections:
                last = sections[-1]
                sections[-1] = last._replace(cells=(*last.cells, *read_row(parts, groups)))
    return words | {"same": ("unchanged", None), "-": ("", None)}, sections


def read_row(parts: list[str], groups: dict[str, list[str]]) -> Iterator[Cell]:
    at = next(index for index, part in enumerate(parts) if part in {*RELATIONS, "any"})
    roles = [role for part in parts[:at] for role in groups.get(part, [part])]
    relations = [part for part in parts[at:] if part in RELATIONS] or list(RELATIONS)
    answers = [part for part in parts[at:] if part not in {*RELATIONS, "any"}]
    if len(answers) == 1:
        answers = ["unseen", *answers * 8]
    assert len(answers) == len(STATES), parts
    for role in roles:
        for relation in relations:
            for state, answer in zip(STATES, answers, strict=True):
                if (relation, state) != ("assignee", "unassigned"):
                    yield Cell(role, relation, state, answer)


WORDS, SECTIONS = read_table()
TASKS: dict[str, Task | None] = {
    state: None if state == "none" else walk_to(state, hand_over=True) for state in STATES
}


def answer_of(section: Section, cell: Cell) -> tuple[str, str | None]:
    task = TASKS[cell.state]
    command = make_command(
        section.command,
        actor=make_actor(cell.role, RELATIONS[cell.relation]),
        expected_version=task.version if task else 0,
        **section.fields,
    )
    decision = decide_task(task, command)
    written = [event.type for event in events_of(decision)]
    assert len(written) <= 1
    if isinstance(decision, Committed | Unchanged):
        return decision.status, written[0] if written else None
    return decision.code, written[0] if written else None


@pytest.mark.parametrize("section", SECTIONS, ids=[section.way for section in SECTIONS])
def test_every_actor_in_every_state_gets_the_answer_that_the_table_states(
    section: Section,
) -> None:
    wrong = []
    for cell in section.cells:
        code, annotation = WORDS[cell.answer]
        expected = (code, section.event if code == "committed" else annotation)
        found = answer_of(section, cell)
        if found != expected:
            wrong.append((cell, found))
    assert not wrong


@pytest.mark.parametrize("section", SECTIONS, ids=[section.way for section in SECTIONS])
def test_the_table_states_every_case_once(section: Section) -> None:
    cases = sorted((cell.role, cell.relation, cell.state) for cell in section.cells)
    assert cases == sorted(
        (role.value, relation, state)
        for role in Role
        for relation in RELATIONS
        for state in STATES
        if (relation, state) != ("assignee", "unassigned")
    )


def test_the_table_has_every_command_and_every_override() -> None:
    assert {section.command for section in SECTIONS} == {row.command for row in TASK_TABLE.rows}
    with_override = {section.command for section in SECTIONS if section.fields["override"]}
    assert with_override == {row.command for row in TASK_TABLE.rows if row.overridable}


@pytest.mark.parametrize("row", TASK_TABLE.rows, ids=lambda row: row.command)
def test_an_override_opens_nothing_that_has_no_assignee_rule(row: Any) -> None:
    if row.overridable:
        return
    task = TASKS["in_progress"]
    assert task is not None
    for role in Role:
        command = make_command(
            row.command,
            actor=make_actor(role),
            override=ASSIGNEE,
            expected_version=task.version,
        )
        decision = decide_task(task, command)
        assert not isinstance(decision, Committed | Unchanged)
        assert decision.code in {"role_not_allowed", "not_found", "creation_not_allowed"}
