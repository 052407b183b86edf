"""The kinds of aggregate and what each adds to the wire: types, lifecycle, values.

Whatever handles "a command" or "an event" without caring of which kind asks here.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_args

from msgspec import Struct

from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.lifecycle import Lifecycle
from workmate_shared.principals import commands as principal_commands
from workmate_shared.principals import principal
from workmate_shared.principals.events import PrincipalEvent
from workmate_shared.tasks import task
from workmate_shared.tasks.commands import TaskCommand
from workmate_shared.tasks.events import TaskEvent
from workmate_shared.tasks.lifecycle import TASK_LIFECYCLE
from workmate_shared.tasks.values import PERSONAL_KINDS, POSITION_KINDS


class AggregateKind(Struct, frozen=True):
    """One kind of aggregate: its lifecycle, `evolve`, the type of its state and its values."""

    name: str
    lifecycle: Lifecycle
    evolve: Callable[[Any, Event], Any]
    state_type: type[Any]
    command_types: tuple[type[Command], ...]
    event_types: tuple[type[Event], ...]
    personal_kinds: Mapping[str, Any]
    position_kinds: Mapping[str, Any]


TASKS = AggregateKind(
    "task",
    TASK_LIFECYCLE,
    task.evolve,
    task.Task,
    get_args(TaskCommand),
    get_args(TaskEvent),
    PERSONAL_KINDS,
    POSITION_KINDS,
)
PRINCIPALS = AggregateKind(
    "principal",
    principal.PRINCIPAL_LIFECYCLE,
    principal.evolve,
    principal.Principal,
    get_args(principal_commands.PrincipalCommand),
    get_args(PrincipalEvent),
    principal_commands.PERSONAL_KINDS,
    {},
)
KINDS: tuple[AggregateKind, ...] = (TASKS, PRINCIPALS)

_BY_COMMAND = {str(t.__struct_config__.tag): k for k in KINDS for t in k.command_types}
_BY_EVENT = {str(t.__struct_config__.tag): k for k in KINDS for t in k.event_types}
COMMAND_TYPES: dict[str, type[Command]] = {
    str(t.__struct_config__.tag): t for k in KINDS for t in k.command_types
}
"""Every command struct by its wire name."""
EVENT_TYPES: dict[str, type[Event]] = {
    str(t.__struct_config__.tag): t for k in KINDS for t in k.event_types
}
"""Every event struct by its wire name."""


def kind_of_command(name: str) -> AggregateKind:
    """Return the kind of aggregate that a command acts on; raises KeyError for an unknown name."""
    return _BY_COMMAND[name]


def kind_of_event(name: str) -> AggregateKind:
    """Return the kind of aggregate that an event belongs to; raises KeyError for another name."""
    return _BY_EVENT[name]


@cache
def is_annotation(event_type: str) -> bool:
    """Whether an event of this wire name moves nothing."""
    return event_type in kind_of_event(event_type).lifecycle.table.annotation_events()
