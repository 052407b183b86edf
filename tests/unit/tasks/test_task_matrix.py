"""Every role, command, state and relation gives the answer that the literal table states."""

from pathlib import Path
from typing import Any

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
from support.contexts import HANDED_OVER_ID, decide, events_of, walk_to
from support.matrices import Cell, Matrix, Section
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
NO_CASE = ("assignee", "unassigned")
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
MATRIX = Matrix(Path(__file__).parent / "task_matrix.txt", STATES, list(RELATIONS))
WAYS = [section.way for section in MATRIX.sections]
TASKS: dict[str, Task | None] = {
    state: None if state == "none" else walk_to(state, hand_over=True) for state in STATES
}
NO_ASSIGNEE_RULE = [row.command for row in TASK_TABLE.rows if not row.overridable]


def fields_of(section: Section) -> dict[str, Any]:
    way, _, person = section.way.partition(", override for ")
    return FIELDS.get(way, {}) | {"override": OVERRIDES[person]}


def answer_of(section: Section, cell: Cell) -> tuple[str, str | None]:
    task = TASKS[cell.state]
    command = make_command(
        section.command,
        actor=make_actor(cell.role, RELATIONS[cell.relation]),
        expected_version=task.version if task else 0,
        **fields_of(section),
    )
    decision = decide(task, command)
    written = [event.type for event in events_of(decision)]
    assert len(written) <= 1
    if isinstance(decision, Committed | Unchanged):
        return decision.status, written[0] if written else None
    return decision.code, written[0] if written else None


@pytest.mark.parametrize("section", MATRIX.sections, ids=WAYS)
def test_every_actor_in_every_state_gets_the_answer_that_the_table_states(
    section: Section,
) -> None:
    cells = [cell for cell in section.cells if (cell.relation, cell.state) != NO_CASE]
    found = {cell: answer_of(section, cell) for cell in cells}
    assert found == {cell: MATRIX.expected(section, cell) for cell in cells}


@pytest.mark.parametrize("section", MATRIX.sections, ids=WAYS)
def test_the_table_states_every_case_once(section: Section) -> None:
    cases = sorted((cell.role, cell.relation, cell.state) for cell in section.cells)
    assert [case for case in cases if case[1:] != NO_CASE] == sorted(
        (role.value, relation, state)
        for role in Role
        for relation in RELATIONS
        for state in STATES
        if (relation, state) != NO_CASE
    )


def test_the_table_has_every_command_and_every_override() -> None:
    assert {section.command for section in MATRIX.sections} == {
        row.command for row in TASK_TABLE.rows
    }
    with_override = {s.command for s in MATRIX.sections if fields_of(s)["override"]}
    assert with_override == {row.command for row in TASK_TABLE.rows if row.overridable}


@pytest.mark.parametrize("kind", NO_ASSIGNEE_RULE)
@pytest.mark.parametrize("role", Role)
def test_an_override_opens_nothing_that_has_no_assignee_rule(kind: str, role: Role) -> None:
    task = walk_to("in_progress")
    actor = make_actor(role)
    command = make_command(kind, actor=actor, override=ASSIGNEE, expected_version=task.version)
    decision = decide(task, command)
    assert not isinstance(decision, Committed | Unchanged)
    assert decision.code in {"role_not_allowed", "not_found", "creation_not_allowed"}
