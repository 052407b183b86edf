"""Bodies of the JSON API, made from the commands that they ask for.

A body has the command's own fields, the personal value and the position in the clear, and what any
command may have beside them. The server fills in what every command carries; a body that names such
a field is refused like any other unknown one.
"""

from functools import cache
from typing import Any

from msgspec import NODEFAULT, UNSET, Struct, UnsetType, defstruct
from msgspec.structs import fields

from workmate_shared.kernel.command import Command
from workmate_shared.kernel.ids import CommandId, HashHex, Identifier
from workmate_shared.kernel.instants import Instant
from workmate_shared.tasks.values import OverridePersonal, Reason
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.registry import COMMAND_TYPES, kind_of_command

OVERRIDE_REASON = "override_reason"

_STAMPED = frozenset(field.name for field in fields(Command))
_VALUES = ("personal", "position")
_FILLED_IN = {"create_task": frozenset({"source"})}
"""Fields that a command must have and that the server fills in where a body leaves them out."""


class OverrideWhy(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a supervisor acts for somebody."""

    reason: Reason


class OverrideBody(Struct, frozen=True, forbid_unknown_fields=True):
    """For whom a supervisor acts, and why."""

    on_behalf_of: Identifier
    personal: OverrideWhy


@cache
def own_fields(command: str) -> tuple[str, ...]:
    """Return the names of a command's own public fields."""
    kind = COMMAND_TYPES[command]
    return tuple(field.name for field in fields(kind) if field.name not in _STAMPED)


@cache
def body_type(command: str) -> type[Struct]:
    """Return the struct of the body that asks for a command; it refuses unknown fields."""
    kind = COMMAND_TYPES[command]
    filled_in = _FILLED_IN.get(command, frozenset())
    own: list[Any] = [
        _given(field.name, field.type)
        if field.required and field.name not in filled_in
        else _optional(field.name, field.type)
        for field in fields(kind)
        if field.name not in _STAMPED
    ]
    required = {field.name for field in fields(kind) if field.required}
    values = {"personal": personal_type(command), "position": _position_type(command)}
    own += [
        _given(name, value) if name in required else _optional(name, value)
        for name, value in values.items()
        if value is not None
    ]
    if "manifest" in own_fields(command):
        own.append(_optional("disclosures", dict[HashHex, Disclosure]))
    if takes_override(command):
        own.append(_optional("override", OverrideBody))
    own += [_optional("occurred_at", Instant), _optional("idempotency_key", CommandId)]
    name = "".join(part.capitalize() for part in command.split("_")) + "Body"
    return defstruct(
        name, own, frozen=True, kw_only=True, forbid_unknown_fields=True, module=__name__
    )


@cache
def personal_type(command: str) -> Any:
    """Return the struct of a body's personal value, or None for a command that has none.

    The reason for an override has its own place in a body, and only the same place in the message.
    """
    whole = kind_of_command(command).personal_kinds.get(command)
    if whole is None:
        return None
    own: list[Any] = [
        _given(field.name, field.type) if field.required else _optional(field.name, field.type)
        for field in fields(whole)
        if field.name != OVERRIDE_REASON
    ]
    if not own:
        return None
    return defstruct(
        f"{whole.__name__}Body",
        own,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        module=__name__,
    )


def takes_override(command: str) -> bool:
    """Whether a body may ask for an override: the reason needs a place in the personal value."""
    whole = kind_of_command(command).personal_kinds.get(command)
    return isinstance(whole, type) and issubclass(whole, OverridePersonal)


def _position_type(command: str) -> Any:
    return kind_of_command(command).position_kinds.get(command)


def _given(name: str, kind: Any) -> tuple[Any, ...]:
    return (name, kind, NODEFAULT)


def _optional(name: str, kind: Any) -> tuple[Any, ...]:
    return (name, kind | UnsetType, UNSET)
