"""Whatever is sent, in whatever order and however often, the task goes the way of a small model."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from support.commands import (
    DISPATCHER,
    OTHER_SUPERVISOR,
    SUPERVISOR,
    make_actor,
    make_command,
    make_manifest,
    make_policy,
    manifest_fields,
)
from support.contexts import OPENED, Story, events_of, make_context, refer_to
from support.task_model import OPEN, Deed, End, ModelTask
from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import Committed, Decision, Retry
from workmate_shared.kernel.lifecycle import Blob, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.lifecycle import TASK_LIFECYCLE
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.tasks.task import Task, evolve

WORKERS = ("usr_ann", "usr_ben", "usr_cleo")
# Two of the office are also workers, so that the four-eyes rule has something to catch.
PEOPLE: dict[str, tuple[Role, ...]] = {
    **dict.fromkeys(WORKERS, (Role.WORKER,)),
    DISPATCHER: (Role.DISPATCHER,),
    SUPERVISOR: (Role.SUPERVISOR, Role.WORKER),
    OTHER_SUPERVISOR: (Role.SUPERVISOR,),
    "svc_nyc311": (Role.INTEGRATION,),
    "system": (Role.SYSTEM,),
    "usr_edit": (Role.EDITOR,),
}
HANDS = ("assignee", "former")
FITTING = {
    "assign": (DISPATCHER,),
    "release": (DISPATCHER,),
    "amend": (DISPATCHER, "svc_nyc311"),
    "cancel": (DISPATCHER, OTHER_SUPERVISOR),
    "approve_proof": (SUPERVISOR, OTHER_SUPERVISOR, OTHER_SUPERVISOR, "system"),
    "reject_proof": (SUPERVISOR, OTHER_SUPERVISOR),
    "dismiss_handover": (SUPERVISOR, OTHER_SUPERVISOR),
}
KINDS = tuple(row.command for row in TASK_TABLE.rows if not row.creates)
MANIFESTS = {f"m-{number}": make_manifest(manifest_id=f"m-{number}") for number in range(4)}
SAME_ID = {name: msgspec.structs.replace(m, task_version=6) for name, m in MANIFESTS.items()}
POLICIES = (make_policy(), make_policy(geofence_m=500))
ANNOTATIONS = TASK_TABLE.annotation_events()
USUAL = {
    "unassigned": ("assign", DISPATCHER, Role.DISPATCHER),
    "assigned": ("accept", "", Role.WORKER),
    "accepted": ("start_travel", "", Role.WORKER),
    "en_route": ("arrive", "", Role.WORKER),
    "in_progress": ("submit_proof", "", Role.WORKER),
    "proof_pending": ("reject_proof", OTHER_SUPERVISOR, Role.SUPERVISOR),
    "completed": ("observe", DISPATCHER, Role.DISPATCHER),
    "cancelled": ("observe", DISPATCHER, Role.DISPATCHER),
}


@dataclass(frozen=True)
class Sent:
    """A command as it was sent, and the deed that the model takes it for."""

    command: Command
    deed: Deed


class World:
    """One task on a server without a network: keys, chains and facts, as an engine keeps them."""

    def __init__(self) -> None:
        story = Story()
        story.tell("create_task", required_skills=())
        self.task: Task = story.state
        self.events: list[Event] = list(story.events)
        self.model = ModelTask()
        self.sent: list[Sent] = []
        self.stored: dict[tuple[str, str], tuple[Command, Decision]] = {}
        self.retired: set[str] = set()
        self.minted = 0

    def mint(self) -> str:
        self.minted += 1
        return f"key-{self.minted}"

    def send(self, sent: Sent) -> Decision:
        """Answer a command as a server does: a key seen before gets the outcome of then."""
        command, deed = sent.command, sent.deed
        key = (command.actor.id, command.command_id)
        self.sent.append(sent)
        if key in self.stored:
            return self.stored[key][1]
        before = self.task
        deed = replace(deed, able="actor_deactivated" if deed.who in self.retired else "")
        decision = self._decide(command, deed)
        written = events_of(decision)
        for event in written:
            self.task = evolve(self.task, event)
        self.events += written
        if not isinstance(decision, Retry):
            self.stored[key] = (command, decision)
        self._compare(deed, decision, written)
        self._check(before, command, decision, written)
        return decision

    def _decide(self, command: Command, deed: Deed) -> Decision:
        expected = command.expected_version or 0
        named = MANIFESTS.get(deed.manifest, MANIFESTS["m-0"])
        if deed.content == "same id":
            named = SAME_ID[deed.manifest]
        record = self.task.manifest(deed.manifest)
        if deed.content is None and record is not None and record.task_version == 6:
            named = SAME_ID[deed.manifest]
        blobs = dict.fromkeys((*named.hashes(), *getattr(command, "hashes", ())), HELD)
        ancestors = set()
        step = command.after
        while step is not None:
            ancestors.add(step)
            earlier = self.stored.get((command.actor.id, step))
            step = earlier[0].after if earlier else None
        after = self.stored.get((command.actor.id, command.after or ""))
        context = make_context(
            command,
            actor=PrincipalFacts(deed.who not in self.retired, frozenset(PEOPLE[deed.who])),
            after_outcome=after[1].status if after else None,
            ancestors=frozenset(ancestors),
            since=refer_to(tuple(self.events[expected:])),
            principals=dict.fromkeys(PEOPLE, PrincipalFacts(True, frozenset({Role.WORKER}))),
            manifest=named,
            opened=OPENED,
            blobs=blobs if deed.files_held else {},
        )
        return TASK_LIFECYCLE.decide(self.task, command, context)

    def _compare(self, deed: Deed, decision: Decision, written: tuple[Event, ...]) -> None:
        code = None if isinstance(decision, Committed) else decision.code
        found = End(decision.status, code, written[0].type if written else None)
        assert found == self.model.expect(deed)
        note(f"{deed.kind} {code or decision.status}")
        assert (self.task.state, self.task.assignee_id or "") == (
            self.model.state,
            self.model.assignee,
        )
        assert (self.task.version, self.task.changed_version) == (
            self.model.version,
            self.model.changed,
        )
        assert {m.manifest_id: m.status for m in self.task.manifests} == {
            name: proof.status for name, proof in self.model.proofs.items()
        }

    def _check(
        self, before: Task, command: Command, decision: Decision, written: tuple[Event, ...]
    ) -> None:
        """Assert what must hold whatever the model says."""
        again: Task | None = None
        for number, event in enumerate(self.events, start=1):
            assert event.aggregate_version == number
            again = evolve(again, event)
        assert again == self.task
        assert self.task.changed_version == max(
            event.aggregate_version for event in self.events if event.type not in ANNOTATIONS
        )
        if isinstance(decision, Committed):
            row = TASK_TABLE.row(command.name)
            acting = {Role.SUPERVISOR} if command.override else row.roles
            assert [event.type for event in written] == [row.event]
            assert command.actor.role in acting
            assert before.state in row.allowed_from
            assert self.task.state == (row.result or before.state)
        if all(event.type in ANNOTATIONS for event in written):
            quiet = {"version": before.version, "manifests": before.manifests}
            assert msgspec.structs.replace(self.task, **quiet) == before
        self._check_proofs(command, decision)

    def _check_proofs(self, command: Command, decision: Decision) -> None:
        statuses = [record.status for record in self.task.manifests]
        assert (statuses.count("approved") == 1) == (self.task.state == "completed")
        assert statuses.count("submitted") <= 1
        for record in self.task.manifests:
            involved = {record.author_id, record.submitted_by, record.on_behalf_of}
            assert record.status != "approved" or record.decided_by not in involved
        holds = command.actor.id == self.task.assignee_id and self.task.state in OPEN
        held = command.actor.role is Role.WORKER and self.task.holds_or_held(command.actor.id)
        carried = getattr(command, "manifest", None)
        refused = decision.status in {"conflict", "rejected"} and command.override is None
        if command.name == "submit_proof" and carried and refused and held and not holds:
            assert self.task.manifest(self.sent[-1].deed.manifest) is not None


HELD = Blob(verified=True, uploaded_by_actor=True)


def build(world: World, deed: Deed) -> Sent:
    """Make the command that the deed describes."""
    fields: dict[str, Any] = {}
    match deed.kind:
        case "assign":
            fields["worker_id"] = deed.worker
        case "submit_proof" | "hand_over" if deed.content is not None:
            chosen = SAME_ID if deed.content == "same id" else MANIFESTS
            fields = manifest_fields(chosen[deed.manifest])
        case "submit_proof":
            fields = {"manifest": None, "content_hash": None, "manifest_id": deed.manifest}
        case "approve_proof" | "reject_proof" | "dismiss_handover":
            fields["manifest_id"] = deed.manifest
        case "amend" if deed.changes_policy:
            fields["proof_policy"] = POLICIES[0 if world.model.policy_changed else 1]
    command = make_command(
        deed.kind,
        actor=make_actor(deed.role, deed.who),
        command_id=deed.key,
        expected_version=deed.expected,
        after=deed.after,
        override=deed.for_whom,
        lineage="lineage-before" if deed.old_lineage else make_command("accept").lineage,
        **fields,
    )
    return Sent(command, deed)


def renew(world: World, deed: Deed) -> Deed:
    """Return the same deed under a new key."""
    return replace(deed, key=world.mint())


@st.composite
def odd_deeds(draw: st.DrawFn) -> dict[str, Any]:
    """Whatever anybody might send; more often than not it is somebody who could."""
    kind = draw(st.sampled_from(KINDS))
    who = draw(st.sampled_from([*[*FITTING.get(kind, HANDS)] * 6, *sorted(PEOPLE)]))
    return {
        "kind": kind,
        "who": who,
        "role": draw(st.sampled_from(PEOPLE.get(who, (Role.WORKER,)))).value,
        "behind": draw(st.sampled_from([0, 0, 0, 0, 1, 2, 3, -1])),
        "after": draw(st.sampled_from([*[None] * 9, "last", "first", "unknown"])),
        "for_whom": draw(st.sampled_from([*[None] * 20, "assignee", "former", *WORKERS])),
        "worker": draw(st.sampled_from([*WORKERS, SUPERVISOR])),
        "manifest": draw(st.sampled_from(["pending", "handed", *sorted(MANIFESTS)])),
        "content": draw(st.sampled_from(["own", "own", "same id", None])),
        "changes_policy": draw(st.sampled_from([False, False, True])),
        "files_held": draw(st.sampled_from([True, True, True, False])),
        "old_lineage": draw(st.sampled_from([False, False, False, True])),
    }


def find_manifest(world: World, wish: str) -> str:
    if wish == "pending":
        return world.task.current_manifest_id or "m-0"
    waiting = [m.manifest_id for m in world.task.manifests if m.status == "handed_over"]
    return (waiting or ["m-1"])[0] if wish == "handed" else wish


def settle(world: World, wish: dict[str, Any]) -> Deed:
    """Turn a wish into a deed in the world as it is now."""
    former = [name for name in world.task.holders if name != world.task.assignee_id]
    present = {"assignee": world.task.assignee_id or WORKERS[0], "former": (former or WORKERS)[0]}
    who = present.get(wish["who"], wish["who"])
    for_whom = present.get(wish["for_whom"], wish["for_whom"])
    if for_whom is not None and world.minted % 4:
        who, wish = OTHER_SUPERVISOR, {**wish, "role": "supervisor"}
    own = [sent.deed.key for sent in world.sent if sent.deed.who == who]
    after = {"last": own[-1:], "first": own[:1], "unknown": ["never-sent"]}.get(wish["after"], [])
    carries = wish["kind"] in {"submit_proof", "hand_over"}
    content = wish["content"] or ("own" if wish["kind"] == "hand_over" else None)
    return Deed(
        kind=wish["kind"],
        who=who,
        role=wish["role"],
        key=world.mint(),
        expected=max(0, world.task.version - wish["behind"]),
        after=after[0] if after else None,
        for_whom=for_whom,
        worker=wish["worker"],
        manifest=find_manifest(world, wish["manifest"]),
        content=content if carries else None,
        changes_policy=wish["changes_policy"],
        files_held=wish["files_held"],
        old_lineage=wish["old_lineage"],
    )


def next_deed(world: World) -> Deed:
    """Return the step that usually comes next."""
    kind, who, role = USUAL[world.task.state]
    if kind == "reject_proof" and world.minted % 3 == 0:
        kind = "approve_proof"
    unused = [name for name in MANIFESTS if world.task.manifest(name) is None]
    ready = world.task.state != "in_progress" or unused
    return Deed(
        kind=kind if ready else "decline",
        who=who or world.task.assignee_id or "",
        role=role.value,
        key=world.mint(),
        expected=world.task.version,
        worker=WORKERS[world.minted % 3],
        manifest=unused[0]
        if kind == "submit_proof" and unused
        else find_manifest(world, "pending"),
        content="own" if kind == "submit_proof" and ready else None,
    )


STEP = st.one_of(
    st.just(("next", None)),
    st.tuples(st.just("odd"), odd_deeds()),
    st.tuples(st.sampled_from(["resend", "renew", "retire"]), st.integers(0, 99)),
)


def walk(world: World, steps: int) -> None:
    for _ in range(steps):
        world.send(build(world, next_deed(world)))


def play(world: World, step: tuple[str, Any]) -> None:
    match step:
        case "next", _:
            walk(world, 1)
        case "odd", wish:
            world.send(build(world, settle(world, wish)))
        case "resend", number if world.sent:
            earlier = world.sent[number % len(world.sent)]
            key = (earlier.command.actor.id, earlier.command.command_id)
            stored, before = world.stored.get(key), world.task
            decision = world.send(earlier)
            if stored is not None:
                assert (decision, world.task) == (stored[1], before)
        case "renew", number if world.sent:
            earlier = world.sent[number % len(world.sent)]
            world.send(build(world, renew(world, earlier.deed)))
        case "retire", number if number % 4 == 0:
            world.retired ^= {sorted(PEOPLE)[number % len(PEOPLE)]}
        case _:
            return


@settings(max_examples=300)
@given(st.integers(0, 8), st.lists(STEP, min_size=5, max_size=40))
def test_every_decision_is_the_one_that_the_model_expects(
    start: int, steps: list[tuple[str, Any]]
) -> None:
    world = World()
    walk(world, start)
    for step in steps:
        play(world, step)


OFFLINE = ("accept", "start_travel", "arrive", "observe", "submit_proof", "store_evidence")
MEANWHILE = st.lists(odd_deeds(), max_size=4)


@settings(max_examples=150)
@given(
    st.integers(1, 4),
    st.lists(st.sampled_from(OFFLINE), min_size=1, max_size=6),
    MEANWHILE,
    st.randoms(use_true_random=False),
)
def test_a_chain_made_offline_ends_in_any_order_of_arrival_and_what_it_gathered_is_kept(
    start: int, kinds: list[str], meanwhile: list[dict[str, Any]], order: Any
) -> None:
    world = World()
    walk(world, start)
    worker, seen, key = world.task.assignee_id or "", world.task.version, None
    queue: list[Sent] = []
    for kind in kinds:
        content = "own" if kind == "submit_proof" else None
        deed = Deed(
            kind, worker, "worker", world.mint(), seen, key, manifest="m-3", content=content
        )
        key = deed.key
        queue.append(build(world, deed))
    for wish in meanwhile:
        world.send(build(world, settle(world, wish)))
    arrivals = queue * 2
    order.shuffle(arrivals)
    for sent in arrivals:
        world.send(sent)
    for sent in queue:
        assert not isinstance(world.send(sent), Retry)
    ends = [world.send(sent).status for sent in queue]
    for earlier, later in pairwise(ends):
        assert earlier in {"committed", "unchanged"} or later != "committed"
