"""The published schemas say what the structs say: the same messages pass, the same are refused."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commands import ASSIGNEE, make_actor, make_command, make_reading
from support.contexts import Story, story_to
from workmate_shared.kernel.command import Event
from workmate_shared.kernel.table import Role
from workmate_shared.wire.codec import encode
from workmate_shared.wire.registry import COMMAND_TYPES, EVENT_TYPES
from workmate_shared.wire.schemas import (
    DIALECT,
    SchemaError,
    schema_names,
    schema_of,
    validate_payload,
)


def tell_all() -> Iterator[Event]:
    """Tell stories in which every event happens."""
    story = story_to("completed", hand_over=True)
    yield from story.events
    story = story_to("proof_pending", hand_over=True)
    for kind, fields in (
        ("reject_proof", {}),
        ("dismiss_handover", {"manifest_id": "manifest-handed-over"}),
        ("observe", {}),
        ("store_evidence", {}),
        ("amend", {"due_at": None}),
        ("decline", {"actor": make_actor(Role.SUPERVISOR), "override": ASSIGNEE}),
        ("cancel", {}),
    ):
        story.tell(kind, **fields)
    yield from story.events
    story = Story()
    for kind in (
        "create_principal",
        "change_principal",
        "add_credential",
        "revoke_credential",
        "deactivate_principal",
    ):
        actor = make_actor(Role.SYSTEM) if kind == "add_credential" else make_actor(Role.ADMIN)
        story.tell(kind, actor=actor)
    yield from story.events


EXAMPLES: dict[str, dict[str, Any]] = {
    **{event.type: json.loads(encode(event)) for event in tell_all()},
    **{
        kind: json.loads(encode(make_command(kind, device=make_reading(), supersedes="key-0")))
        for kind in COMMAND_TYPES
    },
}
TYPES: dict[str, Any] = {**COMMAND_TYPES, **EVENT_TYPES}


VALIDATORS = {name: jsonschema_rs.validator_for(schema_of(name)) for name in EXAMPLES}


def passes_schema(name: str, message: dict[str, Any]) -> bool:
    return VALIDATORS[name].is_valid(message)


def passes_struct(name: str, message: dict[str, Any]) -> bool | None:
    """Whether the struct takes the message; None where a rule between fields refuses it.

    Whoever decodes a message has looked at its type before.
    """
    if "type" not in message:
        return False
    try:
        msgspec.json.decode(json.dumps(message), type=TYPES[name])
    except msgspec.ValidationError as error:
        return None if isinstance(error.__cause__, ValueError) else False
    return True


def objects_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value, the value itself first."""
    if isinstance(value, dict):
        yield value
    children = value.values() if isinstance(value, dict) else value
    for child in children if isinstance(value, dict | list) else ():
        yield from objects_of(child)


def test_there_is_a_schema_and_an_example_of_every_command_and_event() -> None:
    assert set(schema_names()) == {*COMMAND_TYPES, *EVENT_TYPES} == set(EXAMPLES)
    assert list(schema_names()) == sorted(schema_names())
    with pytest.raises(KeyError):
        schema_of("teleport")


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_one_of_draft_2020_12_under_its_own_name(name: str) -> None:
    schema = schema_of(name)
    assert jsonschema_rs.meta.is_valid(schema)
    assert schema["$schema"] == DIALECT
    assert schema["$id"] == f"urn:workmate:schema:{name}"
    assert schema["properties"]["type"] == {"enum": [name]}


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_leaves_no_object_open(name: str) -> None:
    for part in objects_of(schema_of(name)):
        if "properties" in part and part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert set(part["required"]) <= set(part["properties"])


@pytest.mark.parametrize("name", schema_names())
def test_every_reference_of_a_schema_leads_somewhere(name: str) -> None:
    schema = schema_of(name)
    references = {part["$ref"] for part in objects_of(schema) if "$ref" in part}
    assert references <= {f"#/$defs/{own}" for own in schema.get("$defs", {})}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_passes_its_schema_and_no_other(name: str) -> None:
    validate_payload(name, json.dumps(EXAMPLES[name]).encode())
    passing = [other for other in schema_names() if passes_schema(other, EXAMPLES[name])]
    assert passing == [name]


@pytest.mark.parametrize("name", EXAMPLES)
def test_schema_and_struct_refuse_an_unknown_member_wherever_it_stands(name: str) -> None:
    for number in range(len(list(objects_of(EXAMPLES[name])))):
        message = json.loads(json.dumps(EXAMPLES[name]))
        list(objects_of(message))[number]["surprise"] = 1
        assert (passes_schema(name, message), passes_struct(name, message)) == (False, False)


WRONG: tuple[Any, ...] = (None, True, -1, 2**53, 1.5, "", "x\n", "é", [], [1], {}, {"a": 1})


@pytest.mark.parametrize("name", EXAMPLES)
def test_schema_and_struct_agree_on_every_member_of_a_wrong_kind(name: str) -> None:
    for number, part in enumerate(objects_of(EXAMPLES[name])):
        for member in part:
            for wrong in WRONG:
                message = json.loads(json.dumps(EXAMPLES[name]))
                list(objects_of(message))[number][member] = wrong
                found = passes_struct(name, message)
                assert found is None or found == passes_schema(name, message), (member, wrong)


@pytest.mark.parametrize("name", EXAMPLES)
def test_schema_and_struct_agree_on_every_member_that_is_missing(name: str) -> None:
    for number, part in enumerate(objects_of(EXAMPLES[name])):
        for member in part:
            message = json.loads(json.dumps(EXAMPLES[name]))
            del list(objects_of(message))[number][member]
            found = passes_struct(name, message)
            assert found is None or found == passes_schema(name, message), member


@given(st.text(max_size=6), st.sampled_from(["actor_id", "command_id", "occurred_at", "personal"]))
def test_schema_and_struct_agree_on_any_text(text: str, member: str) -> None:
    message = json.loads(json.dumps(EXAMPLES["release"]))
    if member == "actor_id":
        message["actor"]["id"] = text
    else:
        message[member] = text
    found = passes_struct("release", message)
    assert found is None or found == passes_schema("release", message)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("2026-03-01T09:00:00Z", True),
        ("2026-03-01T09:00:00Z\n", False),
        ("2026-03-01T09:00:00", False),
        ("2026-13-01T09:00:00Z", False),
        ("\u0662026-03-01T09:00:00Z", False),
    ],
)
def test_schema_and_struct_read_the_same_instants(text: str, good: bool) -> None:
    message = EXAMPLES["accept"] | {"occurred_at": text}
    assert (passes_schema("accept", message), passes_struct("accept", message)) == (good, good)


def test_a_payload_that_its_schema_refuses_is_named_with_path_and_reason() -> None:
    message = json.loads(json.dumps(EXAMPLES["task.accepted"]))
    message["actor"]["role"] = "king"
    with pytest.raises(SchemaError) as caught:
        validate_payload("task.accepted", json.dumps(message).encode())
    assert (caught.value.name, caught.value.path) == ("task.accepted", "$/actor/role")
    assert "king" in caught.value.detail


def test_a_payload_of_another_event_is_refused() -> None:
    payload = json.dumps(EXAMPLES["task.accepted"]).encode()
    with pytest.raises(SchemaError):
        validate_payload("task.en_route", payload)
