"""Builders for the facts that a decision reads, and legal histories of tasks.

A context of these builders is one in which everything is as it should be: the actor is active and
has the role, the worker is eligible, every file is held. A test changes the one fact it is about.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from support.commands import (
    ANSWERS,
    ASSIGNEE,
    DISCLOSURES,
    FIXES,
    FORMER,
    LINEAGE,
    NOW,
    SITE,
    STRANGER,
    disclose,
    make_actor,
    make_command,
    make_manifest,
    manifest_fields,
)
from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import Committed, Conflict, Decision, Rejection
from workmate_shared.kernel.lifecycle import Blob, Context, EventRef, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import EnrolmentCode
from workmate_shared.principals.enrolment import code_check
from workmate_shared.principals.principal import Principal
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.task import Task, decode_manifest
from workmate_shared.tasks.values import Fixes, ManifestPersonal, SitePosition
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.registry import is_annotation, kind_of_command

CODE_HASH = "0d" * 32
HANDED_OVER_ID = "manifest-handed-over"
ELIGIBLE = PrincipalFacts(True, frozenset({Role.WORKER}), frozenset({"electrical"}))
OPENED: Mapping[str, Any] = {
    disclose(SITE)[0]: SitePosition(**SITE),
    disclose(ANSWERS)[0]: ManifestPersonal(**ANSWERS),
    disclose(FIXES)[0]: msgspec.json.decode(DISCLOSURES[disclose(FIXES)[0]].value, type=Fixes),
}
"""The values that the example manifest and the example site open to."""


def fingerprint_of(command: Command) -> str:
    """Return the fingerprint that a device's command has."""
    return signed_fingerprint(msgspec.json.encode(command))


def make_context(command: Command, **changes: Any) -> Context:
    """Return a context in which nothing stands in the way of the command."""
    carried = getattr(command, "manifest", None)
    manifest: Manifest = changes.get("manifest") or (
        decode_manifest(carried) if carried else make_manifest()
    )
    named = (*manifest.hashes(), *getattr(command, "hashes", ()))
    given: dict[str, Any] = {
        "now": NOW,
        "lineage": LINEAGE,
        "fingerprint": fingerprint_of(command),
        "actor": PrincipalFacts(True, frozenset({command.actor.role})),
        "principals": dict.fromkeys((ASSIGNEE, FORMER, STRANGER), ELIGIBLE),
        "manifest": manifest,
        "opened": OPENED,
        "blobs": {name: Blob(verified=True, uploaded_by_actor=True) for name in named},
    }
    return Context(**(given | changes))


def refer_to(events: tuple[Event, ...]) -> tuple[EventRef, ...]:
    """Return events as the version check needs them."""
    return tuple(
        EventRef(e.aggregate_version, is_annotation(e.type), e.actor.id, e.command_id)
        for e in events
    )


def decide(state: Any, command: Command, **changes: Any) -> Decision:
    """Decide a command of any kind in the context made for it."""
    lifecycle = kind_of_command(command.name).lifecycle
    return lifecycle.decide(state, command, make_context(command, **changes))


def events_of(decision: Decision) -> tuple[Event, ...]:
    """Return everything that a decision writes: its events or its annotations."""
    match decision:
        case Committed():
            return decision.events
        case Conflict() | Rejection():
            return decision.annotations
        case _:
            return ()


class Story:
    """An aggregate and its history, told one command after the other; each must be accepted."""

    def __init__(self) -> None:
        self.events: tuple[Event, ...] = ()
        self.state: Any = None

    def tell(self, kind: str, /, *, facts: Mapping[str, Any] | None = None, **fields: Any) -> Any:
        """Let the next command happen; it expects the present version and has a key of its own.

        `facts` change the context, `fields` the command. Returns the state after it.
        """
        fields.setdefault("command_id", f"story-{len(self.events) + 1}")
        fields.setdefault("expected_version", self.state.version if self.state else 0)
        command = make_command(kind, **fields)
        decision = decide(self.state, command, **(facts or {}))
        assert isinstance(decision, Committed), decision
        for event in decision.events:
            self.state = kind_of_command(kind).evolve(self.state, event)
        self.events += decision.events
        return self.state


_WAY = (
    "unassigned",
    "assigned",
    "accepted",
    "en_route",
    "in_progress",
    "proof_pending",
    "completed",
)


def story_to(state: str, *, hand_over: bool = False, **creation: Any) -> Story:
    """Return a legal history that ends in the state; a cancelled task was in progress.

    The task was held by FORMER before it came to ASSIGNEE; with `hand_over` FORMER has given the
    manifest HANDED_OVER_ID to the office. Further fields are those of the creation.
    """
    former = make_actor(Role.WORKER, FORMER)
    story = Story()
    story.tell("create_task", **creation)
    story.tell("assign", worker_id=FORMER)
    story.tell("accept", actor=former)
    story.tell("release")
    if hand_over:
        manifest = manifest_fields(make_manifest(manifest_id=HANDED_OVER_ID))
        story.tell("hand_over", actor=former, **manifest)
    steps = ("assign", "accept", "start_travel", "arrive", "submit_proof", "approve_proof")
    reached = "in_progress" if state == "cancelled" else state
    for kind in steps[: _WAY.index(reached)]:
        story.tell(kind)
    if state == "cancelled":
        story.tell("cancel")
    return story


def walk_to(state: str, *, hand_over: bool = False, **creation: Any) -> Task:
    """Return the task after a legal history to the state; see `story_to`."""
    task: Task = story_to(state, hand_over=hand_over, **creation).state
    return task


def principal_in(state: str) -> Principal:
    """Return ASSIGNEE's principal, active or deactivated, with a device and an enrolment code.

    The code's hash is CODE_HASH; it can be used until a minute after NOW.
    """
    story = Story()
    story.tell("create_principal")
    story.tell("add_credential", actor=make_actor(Role.SYSTEM))
    code = EnrolmentCode(
        credential_id="code-1",
        code_check=code_check(CODE_HASH),
        expires_at="2026-03-01T09:01:00.000Z",
    )
    story.tell("add_credential", credential=code)
    if state == "deactivated":
        story.tell("deactivate_principal")
    principal: Principal = story.state
    return principal
