"""The page of every command and event, its fields taken from the JSON Schemas of the structs.

What all messages share is listed once, and a message lists its own fields only. Structs that are
used inside messages stand at the end, each once, under the name by which the fields refer to them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from pages.fields import Schema, describe, field_table, text_types
from pages.markdown import bullets, codes, page
from workmate_shared.kernel.command import Command, Event
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.values import Fixes, ManifestPersonal
from workmate_shared.wire.registry import AggregateKind

_TAG = "type"


class _Schemas:
    """The schema of every type of the page, with all definitions under names of one space."""

    def __init__(self, types: Sequence[Any]) -> None:
        unique = list(dict.fromkeys(types))
        references, definitions = msgspec.json.schema_components(unique)
        self._by_type: dict[Any, Schema] = dict(zip(unique, references, strict=True))
        self.definitions: dict[str, Schema] = definitions

    def reference(self, kind: Any) -> Schema:
        """Return the schema of a type, a reference where it is a struct."""
        return self._by_type[kind]

    def whole(self, kind: Any) -> Schema:
        """Return the schema of a struct itself."""
        return self.definitions[_name(self.reference(kind))]


def messages_page(kinds: Iterable[AggregateKind]) -> str:
    """Return the page: fields that all share, every command and event by kind, shared values."""
    every = tuple(kinds)
    messages = [t for kind in every for t in (*kind.command_types, *kind.event_types)]
    values = [
        value
        for kind in every
        for value in (*kind.personal_kinds.values(), *kind.position_kinds.values())
    ]
    schemas = _Schemas([Command, Event, *messages, *values, Manifest, ManifestPersonal, Fixes])
    shown = {_name(schemas.reference(kind)) for kind in (Command, Event, *messages)}
    inner = sorted(set(schemas.definitions) - shown)
    return page(
        "Commands and events",
        "Commands and events are JSON objects that refuse unknown fields. The server gives their "
        "JSON Schemas (draft 2020-12) under `/v1/schemas/{name}`. `personal` and `position` hold "
        "only commitments; the values that are committed to travel beside the message, as "
        "[signed and hashed formats](formats.md#commitments-and-disclosures-commitmentjson) says. Which command "
        "is allowed when is in the lifecycles: "
        + ", ".join(f"[{kind.name}]({kind.name}-lifecycle.md)" for kind in every)
        + ".",
        "## Kinds of text",
        bullets(f"**{name}**: {rule}" for name, rule in text_types()),
        "## Every command",
        "`type` is the name that heads a command's section here.",
        _shared_fields(schemas.whole(Command)),
        "## Every event",
        "`type` is the name that heads an event's section here.",
        _shared_fields(schemas.whole(Event)),
        *(part for kind in every for part in _kind_parts(kind, schemas)),
        "## Evidence manifest",
        "A proof's manifest is one JSON text, made once; commands and events carry its bytes in "
        f"base64. {_said(schemas.whole(Manifest))}",
        field_table(schemas.whole(Manifest)),
        f"Its personal value is {describe(schemas.reference(ManifestPersonal))}, its position a "
        f"{describe(schemas.reference(Fixes))}.",
        "## Values inside messages",
        *(_value(name, schemas.definitions[name]) for name in inner if name != "Manifest"),
    )


def _shared_fields(schema: Schema) -> str:
    return field_table(schema, {_TAG: schema["properties"][_TAG]})


def _kind_parts(kind: AggregateKind, schemas: _Schemas) -> list[str]:
    parts = [f"## Commands on a {kind.name}"]
    for command in kind.command_types:
        parts += _message(command, Command, schemas)
        for field, values in (("Personal", kind.personal_kinds), ("Position", kind.position_kinds)):
            value = values.get(str(command.__struct_config__.tag))
            if value is not None:
                parts.append(f"{field} value: {describe(schemas.reference(value))}.")
    parts.append(f"## Events of a {kind.name}")
    for event in kind.event_types:
        parts += _message(event, Event, schemas)
    return parts


def _message(kind: type[Command | Event], base: type, schemas: _Schemas) -> list[str]:
    schema = schemas.whole(kind)
    shared = dict(schemas.whole(base)["properties"])
    # The tag differs everywhere and says the same everywhere: the heading.
    shared[_TAG] = schema["properties"][_TAG]
    own = field_table(schema, shared)
    parts = [f"### {kind.__struct_config__.tag}", _said(schema)]
    return [*parts, own] if own else [*parts, "No fields of its own."]


def _value(name: str, schema: Schema) -> str:
    allowed = f"One of {codes(schema['enum'])}." if "enum" in schema else field_table(schema)
    return "\n\n".join(part for part in (f"### {name}", _said(schema), allowed) if part)


def _said(schema: Schema) -> str:
    return str(schema.get("description", ""))


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rsplit("/", 1)[1]
