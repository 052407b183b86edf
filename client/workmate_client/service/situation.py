"""A task as its worker stands to it: what the server said, with the worker's own acts applied.

The order is the server's state, then events it answered with that were not pulled yet, then pending
commands, decided and applied by the very functions that the server commits by. Nothing here does I/O.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from workmate_client.journal.rows import Profile, QueuedCommand
from workmate_client.replica.store import ReplicaTask
from workmate_client.service.device import ServiceError
from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import Committed, Decision
from workmate_shared.kernel.lifecycle import Blob, Context, EventRef, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.commands import StoreEvidence
from workmate_shared.tasks.lifecycle import TASK_LIFECYCLE
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.tasks.task import Task, decode_manifest, evolve
from workmate_shared.wire.commitment import Disclosure, DisclosureError, open_disclosure
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import decode_event
from workmate_shared.wire.messages import WireEvent
from workmate_shared.wire.registry import is_annotation

_SOMEBODY_ELSE = "(somebody else)"


class OwnAct(Struct, frozen=True):
    """One of the worker's commands on the task; `expected` is what a pending one would become."""

    command: QueuedCommand
    expected: Decision | None = None

    @property
    def status(self) -> str:
        """How it ended, or, while it is pending, how it would end."""
        if self.command.outcome is not None:
            return self.command.outcome.status
        return self.expected.status if self.expected else "pending"


class Situation(Struct, frozen=True, kw_only=True):
    """What is known of one task here, and where it would stand with everything applied.

    `pulled` is what the server said last, `state` the same with the worker's acts applied;
    `base_version` is the last version pulled or answered. `refs` are the worker's own events by
    version, `removed` says why the task left the worker's sight. `heard` is whether the server's list
    was ever heard to its end.
    """

    task_id: str
    profile: Profile
    pulled: Task | None
    state: Task | None
    base_version: int
    removed: str | None = None
    acts: tuple[OwnAct, ...] = ()
    refs: Mapping[int, EventRef] = {}
    disclosures: Mapping[str, Disclosure] = {}
    heard: bool = True

    @property
    def task(self) -> Task:
        """The task with everything applied. Raises ServiceError: `not_found` if none was heard of,
        `jobs_not_fetched` where the server's list of jobs is not here.
        """
        if self.state is None and not self.heard:
            detail = "the list of jobs has to be fetched first; your own work is safe"
            raise ServiceError("jobs_not_fetched", detail)
        if self.state is None:
            raise ServiceError("not_found", f"no task {self.task_id} is known on this device")
        return self.state

    @property
    def after(self) -> str | None:
        """The worker's last unanswered command that moves the task: what the next one builds on."""
        waiting = [
            act.command.command_id
            for act in self.acts
            if act.command.outcome is None and not _annotates(act.command.name)
        ]
        return waiting[-1] if waiting else None

    def opened(self, commitment: str) -> Mapping[str, Any] | None:
        """Return the value behind a commitment, proven to be that value, or None."""
        disclosure = self.disclosures.get(commitment)
        if disclosure is None:
            return None
        try:
            value = msgspec.json.decode(open_disclosure(commitment, disclosure))
        except (DisclosureError, msgspec.DecodeError):
            return None
        return value if isinstance(value, dict) else None

    def decide(self, command: Command, payload: bytes = b"") -> Decision:
        """Return what the server would decide, if it knew no more than is known here."""
        text = getattr(command, "manifest", None)
        expected = command.expected_version
        context = Context(
            now=command.occurred_at,
            lineage=self.profile.lineage,
            fingerprint=signed_fingerprint(payload),
            actor=PrincipalFacts(active=True, roles=frozenset({Role.WORKER})),
            after_outcome=self._status_of(command.after),
            ancestors=frozenset(self._ancestors(command.after)),
            since=self._since(expected) if expected is not None else (),
            manifest=decode_manifest(text) if text else None,
            blobs=_believed(command),
        )
        return TASK_LIFECYCLE.decide(self.state, command, context)

    def with_act(self, act: QueuedCommand) -> "Situation":
        """Return the situation after one more command of the worker, pending or answered."""
        if act.outcome is not None:
            return replace(self, acts=(*self.acts, OwnAct(act)))
        command = act.command()
        decision = self.decide(command, act.parts.payload)
        events = decision.events if isinstance(decision, Committed) else ()
        state, refs = self.state, dict(self.refs)
        for event in events:
            state = evolve(state, event)
            refs[event.aggregate_version] = _ref(event)
        acts = (*self.acts, OwnAct(act, decision))
        values = {**self.disclosures, **act.parts.disclosures}
        return replace(self, state=state, refs=refs, acts=acts, disclosures=values)

    def _status_of(self, command_id: str | None) -> str | None:
        """Return how the command that another builds on ended, or would; None if nobody knows it."""
        found = [act.status for act in self.acts if act.command.command_id == command_id]
        if not found:
            return None
        # A command that only waits is judged as if it had gone through: it will be sent first.
        return "committed" if found[0] in ("retry", "pending") else found[0]

    def _ancestors(self, command_id: str | None) -> Iterable[str]:
        after = {act.command.command_id: act.command.after for act in self.acts}
        while command_id is not None:
            yield command_id
            command_id = after.get(command_id)

    def _since(self, expected: int) -> tuple[EventRef, ...]:
        """Return the events above a version; those not known here one by one count as others'."""
        own = tuple(ref for version, ref in self.refs.items() if version > expected)
        changed = self.state.changed_version if self.state else 0
        if changed <= expected or changed in self.refs:
            return own
        return (*own, EventRef(changed, False, _SOMEBODY_ELSE, ""))


def situation_of(
    profile: Profile,
    task_id: str,
    replica: ReplicaTask | None,
    commands: Sequence[QueuedCommand],
) -> Situation:
    """Return where a task stands; `commands` are the worker's own on it, in local order."""
    pulled = replica.task if replica else None
    if replica is not None and replica.removed is not None:
        # The last state that was seen still names this worker, who holds the task no more.
        pulled = replace(replica.task, assignee_id=None, visited=())
    values = dict(replica.disclosures) if replica else {}
    state, refs = pulled, {}
    for event in _answered_events(commands):
        refs[event.aggregate_version] = _ref(event)
        if state is not None and event.aggregate_version > state.version:
            state = _evolved(state, event)
    answered = [act.outcome.version or 0 for act in commands if act.outcome is not None]
    base_version = max([pulled.version if pulled else 0, *answered])
    if state is not None and state.version < base_version:
        # An answer told of a later version without showing what was done to get there.
        state = replace(state, version=base_version)
    for act in commands:
        values |= act.parts.disclosures
        for wire_event in _told(act):
            values |= wire_event.disclosures
    situation = Situation(
        task_id=task_id,
        profile=profile,
        pulled=pulled,
        state=state,
        base_version=base_version,
        removed=replica.removed if replica else None,
        refs=refs,
        disclosures=values,
    )
    for act in commands:
        situation = situation.with_act(act)
    return situation


def _told(act: QueuedCommand) -> tuple[WireEvent, ...]:
    return (*act.outcome.events, *act.outcome.events_since) if act.outcome else ()


def _answered_events(commands: Sequence[QueuedCommand]) -> list[Event]:
    """Return the events of all answers, in the order of the task's versions."""
    events = []
    for act in commands:
        for told in act.outcome.events if act.outcome else ():
            try:
                events.append(decode_event(told.type, told.payload.encode()))
            except (KeyError, msgspec.DecodeError):
                # Of a later version of the program: the next pull brings what it did.
                continue
    return sorted(events, key=lambda event: event.aggregate_version)


def _evolved(state: Task, event: Event) -> Task:
    try:
        return evolve(state, event)
    except (KeyError, ValueError):
        # It builds on an event that was never seen here; the next pull brings the whole state.
        return state


def _ref(event: Event) -> EventRef:
    version, annotates = event.aggregate_version, is_annotation(event.type)
    return EventRef(version, annotates, event.actor.id, event.command_id)


def _annotates(name: str) -> bool:
    return TASK_TABLE.row(name).annotates


def _believed(command: Command) -> Mapping[str, Blob]:
    """Return the files that a command says are stored: whether they are, only the server knows."""
    if not isinstance(command, StoreEvidence):
        return {}
    return {name: Blob(verified=True, uploaded_by_actor=True) for name in command.hashes}
