"""What a caller may see: of tasks, of events, of the values behind commitments.

A value is opened only where a rule here says so. Positions need a purpose, except one's own fixes;
reading another person's fix is something to be recorded (`subject_id`), a site's place is not.
"""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from workmate_server.identity.authenticate import Caller
from workmate_shared.kernel.command import Event
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.events import TaskAmended, TaskCreated
from workmate_shared.tasks.table import OFFICE_ROLES
from workmate_shared.tasks.task import Task, decode_manifest

OPENING_ROLES = frozenset({Role.SUPERVISOR, Role.DISPATCHER, Role.AUDITOR})
"""Roles that may open personal values of every event."""

TASK_LOG_ROLES = (OFFICE_ROLES - {Role.SYSTEM}) | {Role.ADMIN}
"""Roles that may read the events of tasks in the log."""

ADMINISTRATION_ROLES = frozenset({Role.ADMIN, Role.AUDITOR})
"""Roles that may read the events of principals, which show the hashes of credentials."""

BATCH_ROLES = frozenset({Role.AUDITOR, Role.ADMIN, Role.SUPERVISOR})
"""Roles that may read batch headers and leaves."""

_OPEN_TO_READERS = frozenset(
    {
        "task.created",
        "task.amended",
        "task.proof_rejected",
        "task.cancelled",
        "evidence.dismissed",
    }
)


class Sight(StrEnum):
    """How much of a task somebody sees."""

    FULL = "full"
    FORMER = "former"
    NONE = "none"


class Openable(Struct, frozen=True):
    """A commitment that a caller may open; `subject_id` is the person whose fix it is, if any."""

    commitment: str
    object_id: str
    subject_id: str | None = None


def sight_of(caller: Caller, task: Task) -> Sight:
    """Return how much of a task the caller sees: the office all, workers what they hold or held."""
    if caller.roles & OFFICE_ROLES:
        return Sight.FULL
    if Role.WORKER in caller.roles and task.holds_or_held(caller.principal_id):
        return Sight.FULL if task.assignee_id == caller.principal_id else Sight.FORMER
    return Sight.NONE


def open_task(caller: Caller, task: Task) -> Iterator[Openable]:
    """Yield the commitments of a task that somebody who sees it all may open."""
    for commitment in task.personal:
        yield Openable(commitment, task.task_id)
    if task.position is not None and caller.purpose is not None:
        yield Openable(task.position, task.task_id)


def open_event(caller: Caller, event: Event, *, own_answer: bool = False) -> Iterator[Openable]:
    """Yield the commitments of an event that the caller may open.

    `own_answer`: the event answers the caller's own command, which brought the values.
    """
    name, me = event.aggregate_id, caller.principal_id
    subject = event.on_behalf_of or event.actor.id
    personal, position = event.personal, event.position
    if personal and (own_answer or event.actor.id == me or _reads(caller, event)):
        yield Openable(personal, name)
    if position and isinstance(event, TaskCreated | TaskAmended):
        if own_answer or caller.purpose is not None:
            yield Openable(position, name)
    elif position and (own_answer or subject == me or _may_locate(caller)):
        yield Openable(position, name, _other(subject, me, own_answer=own_answer))
    text = getattr(event, "manifest", None)
    if text is None:
        return
    manifest, author = decode_manifest(text), str(getattr(event, "author_id", subject))
    mine = own_answer or author == me
    if manifest.personal and (mine or caller.roles & OPENING_ROLES):
        yield Openable(manifest.personal, name)
    if manifest.position and (mine or _may_locate(caller)):
        yield Openable(manifest.position, name, _other(author, me, own_answer=own_answer))


def _reads(caller: Caller, event: Event) -> bool:
    if caller.roles & OPENING_ROLES:
        return True
    holds = caller.roles & {Role.INTEGRATION, Role.WORKER}
    return bool(holds) and event.type in _OPEN_TO_READERS


def _may_locate(caller: Caller) -> bool:
    return caller.purpose is not None and bool(caller.roles & OPENING_ROLES)


def _other(subject: str, me: str, *, own_answer: bool) -> str | None:
    return None if own_answer or subject == me else subject
