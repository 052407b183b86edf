"""Say in words what a JSON Schema allows, and list the fields of an object as a table.

Only what msgspec writes for our structs is understood: references, unions, enumerations, bounded
numbers and text, lists and maps. Text types of the kernel are called by their names.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from pages.markdown import code, codes, table
from workmate_shared.kernel import ids, instants

Schema = Mapping[str, Any]

JSON_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exact (RFC 8259, section 6)."""

TEXT_TYPES: dict[str, Any] = {
    "identifier": ids.Identifier,
    "command id": ids.CommandId,
    "32 bytes in hex": ids.HashHex,
    "instant": instants.Instant,
}
"""The text types that have a name on the page, by that name."""


def _rule(schema: Schema) -> Schema:
    """Return what a schema demands, without what it only says."""
    return {name: value for name, value in schema.items() if name not in ("description", "default")}


_NAMED = [(name, _rule(msgspec.json.schema(kind))) for name, kind in TEXT_TYPES.items()]


def text_types() -> list[tuple[str, str]]:
    """Return each named text type and its rule."""
    return [(name, _text(rule)) for name, rule in _NAMED]


def describe(schema: Schema) -> str:
    """Return what values a schema allows, in one phrase."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        choices = sorted(schema["anyOf"], key=lambda choice: choice.get("type") == "array")
        return " or ".join(describe(choice) for choice in choices)
    if "enum" in schema:
        return codes(schema["enum"])
    if "const" in schema:
        return code(schema["const"])
    match schema.get("type"):
        case "array":
            return f"list{_bounds(schema, 'Items')} of {describe(schema['items'])}"
        case "object":
            keys = describe({"type": "string", **schema.get("propertyNames", {})})
            return f"map from {keys} to {describe(schema.get('additionalProperties', {}))}"
        case "string":
            return _named(schema) or _text(schema)
        case "integer" | "number":
            return _number(schema)
        case None:
            return "any value"
        case other:
            return str(other)


def field_table(schema: Schema, leave_out: Mapping[str, Any] | None = None) -> str:
    """Return the fields of an object schema as a table; empty where none is left to list.

    `leave_out` maps names to schemas: a field that is there with the same schema is not repeated.
    """
    required = schema.get("required", ())
    known = leave_out or {}
    rows = [
        (code(name), describe(field), _presence(field, needed=name in required))
        for name, field in schema.get("properties", {}).items()
        if known.get(name) != field
    ]
    return table(("Field", "Value", "Present"), rows) if rows else ""


def _presence(field: Schema, *, needed: bool) -> str:
    if needed:
        return "always"
    default = field.get("default")
    simple = isinstance(default, str | int) and default not in ("", None)
    return f"may be left out: {code(_json(default))}" if simple else "may be left out"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _named(schema: Schema) -> str:
    rule = _rule(schema)
    return next((f"[{name}](#kinds-of-text)" for name, known in _NAMED if known == rule), "")


def _text(schema: Schema) -> str:
    pattern = schema.get("pattern")
    matching = f" matching {code(pattern)}" if pattern else ""
    return f"text{matching}{_bounds(schema, 'Length', ' characters')}"


def _bounds(schema: Schema, what: str, unit: str = "") -> str:
    return _range(schema.get(f"min{what}"), schema.get(f"max{what}"), unit)


def _number(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and least == most:
        return code(least)
    return f"{schema['type']}{_range(least, None if most == JSON_SAFE_INTEGER else most)}"


def _range(least: int | None, most: int | None, unit: str = "") -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f" (at least {least:,}{unit})"
    return f" (at most {most:,}{unit})" if least is None else f" ({least:,} to {most:,}{unit})"
