"""The checks come in their order: a command that fails two of them gets the answer of the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from support.commands import ASSIGNEE, FORMER, STRANGER, make_actor, make_command, make_policy
from support.contexts import decide, make_context, refer_to, story_to
from workmate_shared.kernel.command import Command
from workmate_shared.kernel.decision import Committed, Unchanged
from workmate_shared.kernel.lifecycle import Context, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.commands import SlaRisk
from workmate_shared.tasks.lifecycle import TASK_LIFECYCLE
from workmate_shared.tasks.policy import policy_version
from workmate_shared.tasks.task import Task

WORKER = frozenset({Role.WORKER})
OFF: dict[str, Any] = {"actor": PrincipalFacts(False, WORKER)}
REVOKED: dict[str, Any] = {"device_revoked": True}
BROKEN: dict[str, Any] = {"after_outcome": "rejected"}
STALE: dict[str, Any] = {"expected_version": 4}
LATE: dict[str, Any] = {"after": "earlier"}
BY_FORMER: dict[str, Any] = {"actor": make_actor(principal_id=FORMER)}
BY_STRANGER: dict[str, Any] = {"actor": make_actor(principal_id=STRANGER)}
BY_DISPATCHER: dict[str, Any] = {"actor": make_actor(Role.DISPATCHER, ASSIGNEE)}
SLA = (SlaRisk(at="2026-03-01T09:00:00Z", due_at="2026-03-01T12:00:00Z"),)


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Case(NamedTuple):
    """A command that fails two checks, and the code of the earlier one."""

    checks: str
    code: str
    state: str
    kind: str
    facts: Mapping[str, Any] = NOTHING
    fields: Mapping[str, Any] = NOTHING


CASES = [
    Case("3 sight, 4 active", "not_found", "assigned", "accept", OFF, BY_STRANGER),
    Case("3 sight, 4 device", "not_found", "assigned", "accept", REVOKED, BY_STRANGER),
    Case("3 sight, 6 chain", "not_found", "assigned", "accept", {}, BY_STRANGER | LATE),
    Case("4 active, 4 device", "actor_deactivated", "assigned", "accept", OFF | REVOKED),
    Case("4 active, 4 role", "actor_deactivated", "assigned", "accept", OFF, BY_DISPATCHER),
    Case("4 device, 4 role", "device_revoked", "assigned", "accept", REVOKED, BY_DISPATCHER),
    Case("4 active, 5 repeat", "actor_deactivated", "en_route", "accept", OFF),
    Case("4 device, 5 repeat", "device_revoked", "en_route", "accept", REVOKED),
    Case("4 role, 5 repeat", "role_not_allowed", "en_route", "accept", {}, BY_DISPATCHER),
    Case("4 role, 6 chain", "role_not_allowed", "assigned", "accept", {}, BY_DISPATCHER | LATE),
    Case("5 repeat, 6 chain not arrived", "unchanged", "en_route", "accept", {}, LATE),
    Case("5 repeat, 6 chain broken", "unchanged", "en_route", "accept", BROKEN, LATE),
    Case("5 repeat, 7 version", "unchanged", "en_route", "accept", {}, STALE),
    Case("5 repeat, 9 state", "unchanged", "completed", "accept"),
    Case("6 not arrived, 7 version", "blocked_by", "accepted", "start_travel", {}, LATE | STALE),
    Case("6 broken, 7 version", "chain_broken", "accepted", "start_travel", BROKEN, LATE | STALE),
    Case("6 broken, 8 assignee", "chain_broken", "accepted", "accept", BROKEN, LATE | BY_FORMER),
    Case("7 version, 8 assignee", "version_conflict", "accepted", "accept", {}, STALE | BY_FORMER),
    Case(
        "7 version ahead, 8 assignee",
        "version_ahead",
        "accepted",
        "accept",
        {},
        BY_FORMER | {"expected_version": 99},
    ),
    Case(
        "7 history lost, 8 assignee",
        "history_lost",
        "accepted",
        "accept",
        {},
        BY_FORMER | {"expected_version": 99, "lineage": "lineage-before"},
    ),
    Case(
        "7 no version, 8 assignee",
        "expected_version_required",
        "accepted",
        "accept",
        {},
        BY_FORMER | {"expected_version": None},
    ),
    Case("7 version, 9 state", "version_conflict", "accepted", "arrive", {}, STALE),
    Case("8 assignee, 9 state", "not_assignee", "in_progress", "start_travel", {}, BY_FORMER),
    Case(
        "8 override, 9 state",
        "override_invalid",
        "in_progress",
        "start_travel",
        {},
        {"actor": make_actor(Role.SUPERVISOR), "override": STRANGER},
    ),
    Case(
        "8 assignee, 10 guard",
        "not_assignee",
        "in_progress",
        "submit_proof",
        {},
        BY_FORMER | {"manifest": None, "content_hash": None, "manifest_id": "unknown"},
    ),
    Case(
        "9 state, 10 guard of approval",
        "state_not_allowed",
        "in_progress",
        "approve_proof",
        {},
        {"manifest_id": "unknown"},
    ),
    Case(
        "9 state, 10 guard of assign", "state_not_allowed", "accepted", "assign", {"principals": {}}
    ),
    Case(
        "9 state, 10 guard of amend",
        "state_not_allowed",
        "completed",
        "amend",
        {},
        {"proof_policy": make_policy()},
    ),
    Case(
        "4 role, 10 guard of observe",
        "role_not_allowed",
        "assigned",
        "observe",
        {},
        {"actor": make_actor(Role.AUDITOR), "readings": SLA},
    ),
    Case(
        "6 chain, 10 guard of observe",
        "blocked_by",
        "assigned",
        "observe",
        {},
        LATE | {"readings": SLA},
    ),
]


def set_scene(case: Case) -> tuple[Task, Command, Context]:
    story = story_to(case.state)
    command = make_command(case.kind, **{"expected_version": story.state.version, **case.fields})
    since = refer_to(story.events[command.expected_version or 0 :])
    return story.state, command, make_context(command, **{"since": since, **case.facts})


@pytest.mark.parametrize("case", CASES, ids=[case.checks for case in CASES])
def test_the_first_check_that_fails_answers(case: Case) -> None:
    decision = TASK_LIFECYCLE.decide(*set_scene(case))
    assert not isinstance(decision, Committed)
    assert (decision.code or decision.status) == case.code


@pytest.mark.parametrize("case", CASES, ids=[case.checks for case in CASES])
def test_what_a_screen_greys_out_is_what_would_be_refused(case: Case) -> None:
    refusal = TASK_LIFECYCLE.possible(*set_scene(case))
    assert (refusal.code if refusal else "unchanged") == case.code


def test_the_guards_of_an_approval_come_in_their_order() -> None:
    policy = make_policy(validation="supervisor")
    task = story_to("proof_pending", proof_policy=policy).state
    assert task.policy_version == policy_version(policy)
    unmet: dict[str, Any] = {"opened": {}, "blobs": {}}
    by_author_as_system = make_actor(Role.SYSTEM, ASSIGNEE)
    by_system = make_actor(Role.SYSTEM)
    supervisor = make_actor(Role.SUPERVISOR)
    for actor, manifest_id, code in (
        (by_author_as_system, "unknown", "manifest_unknown"),
        (by_author_as_system, "manifest-1", "self_approval"),
        (by_system, "manifest-1", "validation_not_automatic"),
        (supervisor, "manifest-1", "proof_policy_unmet"),
    ):
        command = make_command(
            "approve_proof", actor=actor, manifest_id=manifest_id, expected_version=task.version
        )
        decision = decide(task, command, **unmet)
        assert not isinstance(decision, Committed | Unchanged)
        assert decision.code == code


def test_a_creation_checks_the_role_before_it_says_that_the_task_exists() -> None:
    task = story_to("assigned").state
    command = make_command("create_task", actor=make_actor(Role.DISPATCHER), priority=9)
    decision = decide(task, command)
    assert not isinstance(decision, Committed | Unchanged)
    assert decision.code == "creation_not_allowed"


@pytest.mark.parametrize("facts", [OFF, REVOKED])
def test_a_creation_that_is_refused_leaves_no_trace(facts: dict[str, Any]) -> None:
    decision = decide(None, make_command("create_task"), **facts)
    assert decision.status == "retry"
