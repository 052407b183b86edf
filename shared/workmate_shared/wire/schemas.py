"""JSON Schemas (draft 2020-12) of every command and event, built from the structs.

Every event is validated against its schema before it is committed and again when the log is read.
"""

from functools import cache
from typing import Any

import jsonschema_rs
import msgspec

from workmate_shared.wire.registry import COMMAND_TYPES, EVENT_TYPES

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SchemaError(Exception):
    """An event that its schema refuses: the event's wire name, the path and the reason."""

    def __init__(self, name: str, path: str, detail: str) -> None:
        super().__init__(f"{name} at {path}: {detail}")
        self.name = name
        self.path = path
        self.detail = detail


def schema_names() -> tuple[str, ...]:
    """Return the wire names of all commands and events, sorted."""
    return tuple(sorted((*COMMAND_TYPES, *EVENT_TYPES)))


@cache
def schema_of(name: str) -> dict[str, Any]:
    """Return the schema of a command or event; raises KeyError for an unknown wire name."""
    kind = COMMAND_TYPES.get(name) or EVENT_TYPES[name]
    (reference,), definitions = msgspec.json.schema_components(
        [kind], ref_template="#/$defs/{name}"
    )
    own = reference["$ref"].rsplit("/", 1)[1]
    schema = dict(definitions.pop(own))
    return {
        "$schema": DIALECT,
        "$id": f"urn:workmate:schema:{name}",
        **schema,
        **({"$defs": definitions} if definitions else {}),
    }


@cache
def _validator(name: str) -> Any:
    return jsonschema_rs.validator_for(schema_of(name))


def validate_payload(name: str, payload: bytes) -> None:
    """Raise SchemaError unless the payload's bytes satisfy the schema of the event `name`."""
    validator = _validator(name)
    value = msgspec.json.decode(payload)
    if validator.is_valid(value):
        return
    error = next(iter(validator.iter_errors(value)))
    raise SchemaError(name, "$/" + "/".join(map(str, error.instance_path)), error.message)
