"""Show stored things to one caller: everything that is read for an answer, read in one transaction.

What a person's fix was opened for is recorded before the answer leaves: a reading that cannot be
recorded does not happen.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from workmate_server.http.services import Services
from workmate_server.http.sight import Openable, Sight, open_event, open_task, sight_of
from workmate_server.identity.authenticate import Caller
from workmate_server.store import reads_log
from workmate_server.store.database import Connection
from workmate_shared.kernel.command import Event
from workmate_shared.principals.principal import Principal
from workmate_shared.tasks.task import Task
from workmate_shared.tasks.view import FormerView, TaskView, former_view, project_task
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.intake import decode_event
from workmate_shared.wire.messages import WireEvent


class Logged(Protocol):
    """An event as the engine or the store gives it."""

    @property
    def seq(self) -> int:
        """Its place in the log."""

    @property
    def aggregate_version(self) -> int:
        """Its aggregate's version."""

    @property
    def type(self) -> str:
        """Its wire name."""

    @property
    def payload(self) -> bytes:
        """Its exact bytes."""


class Renderer:
    """Renders for one caller; what it opened is kept, so that nothing is read twice."""

    def __init__(self, connection: Connection, caller: Caller) -> None:
        self.connection = connection
        self.caller = caller
        self._opened: dict[str, Disclosure] = {}
        self._seen: dict[tuple[str, str, str], None] = {}

    def open(self, wanted: Iterable[Openable]) -> None:
        """Read the values behind what the caller may open, all at once."""
        listed = list(wanted)
        missing = {one.commitment for one in listed} - set(self._opened)
        if missing:
            self._opened |= reads_log.read_disclosures(
                self.connection, self.caller.tenant_id, missing
            )
        for one in listed:
            opened = self._opened.get(one.commitment)
            if opened is not None and one.subject_id is not None:
                key = (one.subject_id, one.object_id, opened.retention_class)
                self._seen[key] = None

    def value(self, commitment: str) -> Any:
        """Return the plain value behind an opened commitment, or None."""
        disclosure = self._opened.get(commitment)
        return None if disclosure is None else msgspec.json.decode(disclosure.value)

    def tasks(self, tasks: Sequence[Task]) -> list[TaskView | FormerView]:
        """Return tasks as the caller sees them; those he may not see are left out."""
        sights = [(task, sight_of(self.caller, task)) for task in tasks]
        self.open(
            one
            for task, sight in sights
            if sight is Sight.FULL
            for one in open_task(self.caller, task)
        )
        placed = self.caller.purpose is not None
        return [
            project_task(task, self.value, with_position=placed)
            if sight is Sight.FULL
            else former_view(task)
            for task, sight in sights
            if sight is not Sight.NONE
        ]

    def task(self, task: Task) -> TaskView | FormerView | None:
        """Return a task as the caller sees it, or None."""
        return next(iter(self.tasks([task])), None)

    def events(self, logged: Sequence[Logged], *, own_answer: bool = False) -> list[WireEvent]:
        """Return events with the values that the caller may open."""
        return self.event_groups([(logged, own_answer)])[0]

    def event_groups(
        self, groups: Sequence[tuple[Sequence[Logged], bool]]
    ) -> list[list[WireEvent]]:
        """Return groups of events as `events` does, each with its own `own_answer`."""
        opening = [
            [self._opening(one, own_answer=own_answer) for one in logged]
            for logged, own_answer in groups
        ]
        self.open(one for group in opening for wanted in group for one in wanted)
        return [
            [self._wire(one, wanted) for one, wanted in zip(logged, group, strict=True)]
            for (logged, _), group in zip(groups, opening, strict=True)
        ]

    def _opening(self, logged: Logged, *, own_answer: bool) -> list[Openable]:
        event = decode_event(logged.type, logged.payload)
        return list(open_event(self.caller, event, own_answer=own_answer))

    def _wire(self, logged: Logged, wanted: Sequence[Openable]) -> WireEvent:
        return WireEvent(
            seq=logged.seq,
            aggregate_version=logged.aggregate_version,
            type=logged.type,
            payload=logged.payload.decode(),
            disclosures={
                one.commitment: self._opened[one.commitment]
                for one in wanted
                if one.commitment in self._opened
            },
        )

    def observation(self, logged: Logged) -> dict[str, Any]:
        """Return an observation with its readings, its note and its fixes."""
        event: Any = decode_event(logged.type, logged.payload)
        self.open(wanted := list(open_event(self.caller, event)))
        may = {one.commitment for one in wanted}
        named = {"personal": event.personal, "position": event.position}
        opened = {
            name: self.value(commitment) if commitment in may else None
            for name, commitment in named.items()
        }
        withheld = [name for name, value in opened.items() if named[name] and value is None]
        return {
            "seq": logged.seq,
            "aggregate_version": logged.aggregate_version,
            **_attribution(event),
            "readings": event.readings,
            **opened,
            "withheld": withheld,
        }

    def principal(self, principal: Principal) -> dict[str, Any]:
        """Return a principal with its name, without its credentials."""
        self.open(Openable(commitment, "") for commitment in principal.personal)
        named = [value for c in principal.personal if (value := self.value(c)) is not None]
        lost = principal.personal and len(named) < len(principal.personal)
        return {
            "principal_id": principal.principal_id,
            "kind": principal.kind,
            "state": principal.state,
            "version": principal.version,
            "roles": principal.roles,
            "skills": principal.skills,
            "domains": principal.domains,
            "away": principal.away,
            "display_name": named[-1]["display_name"] if named else None,
            "withheld": ["display_name"] if lost and not named else [],
        }

    def accesses(self, services: Services) -> list[dict[str, str]]:
        """Return the rows that record whose fixes were opened for the caller."""
        return [
            {
                "tenant_id": self.caller.tenant_id,
                "access_id": services.entropy.uuid7(),
                "subject_id": subject_id,
                "reader_id": self.caller.principal_id,
                "purpose": self.caller.purpose or "",
                "retention_class": retention_class,
                "object_id": object_id,
                "read_at": services.now(),
            }
            for subject_id, object_id, retention_class in self._seen
        ]


@contextmanager
def rendering(services: Services, caller: Caller) -> Iterator[Renderer]:
    """Open a renderer over one state of the database; readings of fixes are recorded at the end."""
    with services.database.read() as connection:
        renderer = Renderer(connection, caller)
        yield renderer
    rows = renderer.accesses(services)
    if rows:
        with services.database.write() as connection:
            reads_log.record_accesses(connection, rows)


def _attribution(event: Event) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "type": event.type,
        "actor_id": event.actor.id,
        "on_behalf_of": event.on_behalf_of,
        "occurred_at": event.occurred_at,
        "recorded_at": event.recorded_at,
        "clock_doubtful": event.clock_doubtful,
    }
