"""Bodies are made from commands: each command has one, and none has what the server fills in."""

import msgspec
import pytest

from workmate_server.http.bodies import body_type, own_fields, takes_override
from workmate_shared.kernel.command import Command
from workmate_shared.kernel.table import Relation
from workmate_shared.tasks.table import TASK_TABLE

NAMES = [row.command for row in TASK_TABLE.rows]
STAMPED = {field.name for field in msgspec.structs.fields(Command)}


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_a_body_with_its_own_fields_and_no_stamped_one(name: str) -> None:
    names = {field.name for field in msgspec.structs.fields(body_type(name))}
    assert set(own_fields(name)) <= names
    assert names & STAMPED <= {"personal", "position", "occurred_at", "override"}
    assert {"occurred_at", "idempotency_key"} <= names
    assert ("disclosures" in names) == ("manifest" in names)


@pytest.mark.parametrize("name", NAMES)
def test_each_body_has_a_schema_that_refuses_unknown_fields(name: str) -> None:
    schema = msgspec.json.schema(body_type(name))
    own = schema["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    assert own["additionalProperties"] is False


def test_whatever_may_be_overridden_takes_an_override() -> None:
    for row in TASK_TABLE.rows:
        if row.relation is Relation.ASSIGNEE:
            assert takes_override(row.command)
