"""Whether the transition table allows an event: for the role of its actor, in the state it met."""

from typing import Any

from workmate_shared.kernel.command import Event
from workmate_shared.kernel.table import Relation, Role, Row
from workmate_shared.tasks.events import ProofSubmitted
from workmate_shared.tasks.task import Task
from workmate_shared.wire.registry import kind_of_event

_SUPERVISOR = frozenset({Role.SUPERVISOR})
_NOBODY: frozenset[Role] = frozenset()


def why_forbidden(before: Any, event: Event, after: Any) -> str | None:
    """Return why no row of the table allows an event that led from `before` to `after`, or None."""
    table = kind_of_event(event.type).lifecycle.table
    rows = [row for row in table.rows if row.event == event.type]
    reasons = []
    for row in rows:
        reason = _why_not(row, before, event, after)
        if reason is None:
            return None
        reasons.append(reason)
    return "; ".join(reasons)


def role_allowed(row: Row, event: Event) -> bool:
    """Whether the row is for the role of the event's actor; only supervisors act for others."""
    roles = row.roles
    if event.on_behalf_of is not None:
        roles = _SUPERVISOR if row.overridable else _NOBODY
    return event.actor.role in roles


def _why_not(row: Row, before: Any, event: Event, after: Any) -> str | None:
    if not role_allowed(row, event):
        return f"{row.command} is not for the role {event.actor.role}"
    if row.creates or before is None:
        return None if row.creates and before is None else f"{row.command} cannot be done here"
    if before.state not in row.allowed_from:
        return f"{row.command} is not allowed in state {before.state}"
    if after.state != (row.result or before.state):
        return f"{row.command} does not lead to state {after.state}"
    if isinstance(before, Task):
        return None if _relates(row, before, event) else f"{event.actor.id} is not {row.relation}"
    if event.actor.role is Role.WORKER and event.actor.id != event.aggregate_id:
        return f"{row.command} is not for {event.actor.id}"
    return None


def _relates(row: Row, before: Task, event: Event) -> bool:
    actor = event.actor
    match row.relation:
        case Relation.ASSIGNEE:
            acting = event.on_behalf_of or actor.id
            if isinstance(event, ProofSubmitted) and event.on_behalf_of is not None:
                known = before.manifest(event.manifest_id)
                if known is not None and known.author_id == acting:
                    return True
            return acting == before.assignee_id
        case Relation.HOLDER:
            return actor.role is not Role.WORKER or before.holds_or_held(actor.id)
        case _:
            return True
