"""Decide one command against one aggregate: the checks, in their order, once for all lifecycles.

Check 1 (the message) and check 2 (the key) belong to whoever holds the message and the log; from
check 3 on everything is here. The first check that fails answers. Facts from outside the aggregate
come in the context, read in the same transaction.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import (
    Committed,
    Decision,
    Details,
    Refusal,
    Unchanged,
    refuse,
)
from workmate_shared.kernel.ids import event_id_for
from workmate_shared.kernel.table import Role, Row, Table


class PrincipalFacts(Struct, frozen=True):
    """What is known of a principal now; an unknown one is inactive and has nothing."""

    active: bool
    roles: frozenset[Role] = frozenset()
    skills: frozenset[str] = frozenset()


class EventRef(Struct, frozen=True):
    """One event above the expected version, as far as the version check needs it."""

    version: int
    annotates: bool
    principal_id: str
    command_id: str


class Blob(Struct, frozen=True):
    """What is known of one file: is it held and verified, did this actor upload it, its size.

    For a decision on a proof a file counts as verified only if one of its makers uploaded it. `size`
    is in bytes, None where it is not known.
    """

    verified: bool
    uploaded_by_actor: bool = False
    media_type: str | None = None
    size: int | None = None


class Context(Struct, frozen=True, kw_only=True):
    """Every fact from outside the aggregate that a decision reads.

    `after_outcome` is None for an `after` that has not arrived, else how it ended. `ancestors` are
    the actor's own commands that can be reached by following `after` back from this one, and `since`
    every event above the expected version. `manifest` is the decoded manifest that the command
    carries or names, `opened` the opened value of each commitment, `principals` everybody whom the
    command names.
    """

    now: str
    lineage: str
    fingerprint: str
    actor: PrincipalFacts
    device_revoked: bool = False
    after_outcome: str | None = None
    ancestors: frozenset[str] = frozenset()
    since: tuple[EventRef, ...] = ()
    principals: Mapping[str, PrincipalFacts] = {}
    manifest: Any = None
    opened: Mapping[str, Any] = {}
    blobs: Mapping[str, Blob] = {}


class State(Protocol):
    """What the kernel must know of an aggregate's state."""

    @property
    def state(self) -> str:
        """The name of the lifecycle state."""

    @property
    def version(self) -> int:
        """The version of the last event."""

    @property
    def changed_version(self) -> int:
        """The version of the last event that was no annotation."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the command that created the aggregate."""


S = TypeVar("S", bound=State)
C = TypeVar("C", bound=Command)


class Lifecycle(Struct, frozen=True):
    """What one kind of aggregate adds to the kernel: its table and its own questions.

    `sees(state, command, facts)`: may this actor, of whom the facts are known, see it, or did he
    once hold it. `been_there(state, command, row)`: the semantic repeat of the row. `authority`:
    check 8. `guard`: check 10. `make_events`: the events of an accepted command. `salvage(state,
    command, context, code)`: the annotations that a refusal with this code carries, or the refusal
    that answers in its place. `exists_code` and `exists_details`: a creation that meets other
    content.
    """

    table: Table
    sees: Callable[[Any, Any, PrincipalFacts], bool]
    been_there: Callable[[Any, Any, Row], bool]
    authority: Callable[[Any, Any, Row], Refusal | None]
    guard: Callable[[Any, Any, Context], Refusal | None]
    make_events: Callable[[Any, Any, Context], tuple[Event, ...]]
    salvage: Callable[[Any, Any, Context, str], tuple[Event, ...] | Refusal]
    exists_code: str
    exists_details: Callable[[Any, Any], Details]

    def decide(self, state: Any, command: Command, context: Context) -> Decision:
        """Return what the command does to the aggregate in `state` (None: there is none).

        Pure and total: every command that decodes gets a decision.
        """
        row = self.table.row(command.name)
        if row.creates:
            return self._decide_creation(state, command, context, row)
        if state is None or not self.sees(state, command, context.actor):
            return refuse(Refusal("not_found"))
        refusal = _check_role(command, context, row)
        if refusal is None:
            if self.been_there(state, command, row):
                return Unchanged({"state": state.state, "version": state.version})
            refusal = next(self._later_checks(state, command, context, row), None)
        if refusal is None:
            return Committed(self.make_events(state, command, context))
        return refuse_with(refusal, self.salvage(state, command, context, refusal.code))

    def _decide_creation(
        self, state: Any, command: Command, context: Context, row: Row
    ) -> Decision:
        if _check_role(command, context, row) is not None:
            return refuse(Refusal("creation_not_allowed", {"role": command.actor.role.value}))
        if state is not None:
            if state.fingerprint == context.fingerprint:
                return Unchanged({"state": state.state, "version": state.version})
            return refuse(Refusal(self.exists_code, self.exists_details(state, command)))
        refusal = self.guard(None, command, context)
        if refusal is not None:
            return refuse(refusal)
        return Committed(self.make_events(None, command, context))

    def _later_checks(
        self, state: Any, command: Command, context: Context, row: Row
    ) -> Iterator[Refusal]:
        checks: tuple[Callable[[], Refusal | None], ...] = (
            lambda: _check_chain(command, context),
            lambda: _check_version(state, command, context, row),
            lambda: self.authority(state, command, row),
            lambda: _check_state(state, command, row),
            lambda: self.guard(state, command, context),
        )
        for check in checks:
            refusal = check()
            if refusal is not None:
                yield refusal

    def possible(self, state: Any, command: Command, context: Context) -> Refusal | None:
        """Return why the command cannot be done now, or None: what a screen greys out."""
        decision = self.decide(state, command, context)
        if isinstance(decision, Committed | Unchanged):
            return None
        return Refusal(decision.code, decision.details)


def refuse_with(refusal: Refusal, annotations: tuple[Event, ...] | Refusal) -> Decision:
    """Return the refusal with its annotations; `salvage` may itself answer with a refusal."""
    if isinstance(annotations, Refusal):
        return refuse(annotations)
    return refuse(refusal, annotations)


def _check_role(command: Command, context: Context, row: Row) -> Refusal | None:
    actor = command.actor
    if not context.actor.active:
        return Refusal("actor_deactivated", {"actor": actor.id})
    if context.device_revoked:
        return Refusal("device_revoked", {"device_id": actor.device_id or ""})
    allowed = row.roles
    if command.override is not None:
        allowed = frozenset({Role.SUPERVISOR}) if row.overridable else frozenset()
    if actor.role not in allowed or actor.role not in context.actor.roles:
        return Refusal("role_not_allowed", {"role": actor.role.value, "command": command.name})
    return None


def _check_chain(command: Command, context: Context) -> Refusal | None:
    if command.after is None or context.after_outcome in ("committed", "unchanged"):
        return None
    if context.after_outcome is None:
        return Refusal("blocked_by", {"after": command.after}, blocked_by=command.after)
    return Refusal("chain_broken", {"after": command.after, "after_outcome": context.after_outcome})


def _check_version(state: State, command: Command, context: Context, row: Row) -> Refusal | None:
    expected = command.expected_version
    if row.annotates:
        return None
    if expected is None:
        return Refusal("expected_version_required") if row.expects_version else None
    facts = {
        "expected_version": expected,
        "version": state.version,
        "changed_version": state.changed_version,
        "state": state.state,
    }
    if expected > state.version:
        older = command.lineage != context.lineage
        return Refusal("history_lost" if older else "version_ahead", facts)
    if expected >= state.changed_version:
        return None
    changes = [e for e in context.since if e.version > expected and not e.annotates]
    if any(e.version == state.changed_version for e in changes) and all(
        e.principal_id == command.actor.id and e.command_id in context.ancestors for e in changes
    ):
        return None
    return Refusal("version_conflict", facts)


def _check_state(state: State, command: Command, row: Row) -> Refusal | None:
    if state.state in row.allowed_from:
        return None
    return Refusal(
        "state_not_allowed",
        {"command": command.name, "state": state.state, "allowed": sorted(row.allowed_from)},
    )


def stamp(command: Command, context: Context, version: int, index: int = 0) -> dict[str, Any]:
    """Return the fields that every event takes from its command and the server's clock.

    `version` is the aggregate's version before the command, `index` counts its events from 0.
    """
    return {
        "schema_version": 1,
        "event_id": event_id_for(command.tenant_id, command.actor.id, command.command_id, index),
        "tenant_id": command.tenant_id,
        "aggregate_id": command.aggregate_id,
        "aggregate_version": version + 1 + index,
        "actor": command.actor,
        "command_id": command.command_id,
        "occurred_at": command.occurred_at,
        "recorded_at": context.now,
        "clock_doubtful": command.clock_doubtful(context.now),
        "on_behalf_of": command.override.on_behalf_of if command.override else None,
    }
