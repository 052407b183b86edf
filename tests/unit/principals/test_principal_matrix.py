"""Every role, command and state of a principal gives the answer that the literal table states."""

from pathlib import Path
from typing import Any

import pytest

from support.commands import ASSIGNEE, make_actor, make_command
from support.contexts import CODE_HASH, decide, events_of, principal_in
from support.matrices import Cell, Matrix, Section
from workmate_shared.kernel.decision import Committed, Unchanged
from workmate_shared.kernel.lifecycle import PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import AccessToken, DeviceKey, LogKey
from workmate_shared.principals.table import PRINCIPAL_TABLE

STATES = ("none", "active", "deactivated")
RELATIONS = {"self": ASSIGNEE, "other": "usr_other"}
FIELDS: dict[str, dict[str, Any]] = {
    "add_credential of a token": {
        "credential": AccessToken(credential_id="token-1", token_hash="0e" * 32, roles=())
    },
    "add_credential of a device": {
        "credential": DeviceKey(credential_id="device-2", public_key="0e" * 32)
    },
    "add_credential of a log key": {
        "credential": LogKey(credential_id="log-2", public_key="0e" * 32)
    },
    "enrol": {"command_id": CODE_HASH},
}
MATRIX = Matrix(Path(__file__).parent / "principal_matrix.txt", STATES, list(RELATIONS))
WAYS = [section.way for section in MATRIX.sections]
PRINCIPALS = {state: None if state == "none" else principal_in(state) for state in STATES}


def answer_of(section: Section, cell: Cell) -> tuple[str, str | None]:
    principal = PRINCIPALS[cell.state]
    actor = make_actor(cell.role, RELATIONS[cell.relation], device_id="device-new")
    command = make_command(
        section.command,
        actor=actor,
        expected_version=principal.version if principal else 0,
        **FIELDS.get(section.way, {}),
    )
    active = (cell.relation, cell.state) != ("self", "deactivated")
    facts = PrincipalFacts(active, frozenset({actor.role}))
    decision = decide(principal, command, actor=facts)
    written = [event.type for event in events_of(decision)]
    if isinstance(decision, Committed | Unchanged):
        return decision.status, written[0] if written else None
    return decision.code, written[0] if written else None


@pytest.mark.parametrize("section", MATRIX.sections, ids=WAYS)
def test_every_actor_in_every_state_gets_the_answer_that_the_table_of_principals_states(
    section: Section,
) -> None:
    found = {cell: answer_of(section, cell) for cell in section.cells}
    assert found == {cell: MATRIX.expected(section, cell) for cell in section.cells}


@pytest.mark.parametrize("section", MATRIX.sections, ids=WAYS)
def test_the_table_of_principals_states_every_case_once(section: Section) -> None:
    cases = sorted((cell.role, cell.relation, cell.state) for cell in section.cells)
    assert cases == sorted(
        (role.value, relation, state) for role in Role for relation in RELATIONS for state in STATES
    )


def test_the_table_of_principals_has_every_command() -> None:
    commands = {section.command for section in MATRIX.sections}
    assert commands == {row.command for row in PRINCIPAL_TABLE.rows}
