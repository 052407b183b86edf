"""Act on a task: decided here as the server will decide it, signed, saved, and only then done.

An act that cannot be done is refused with the catalogue's code before anything is signed; one whose
effect is already there is not done twice. Decision and saving are one step among all processes.
"""

from collections.abc import Callable
from functools import reduce
from typing import Literal

import msgspec
from msgspec import Struct

from workmate_client.journal.authoring import Act, Value
from workmate_client.journal.rows import QueuedCommand, SignedParts
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.situation import Situation, situation_of
from workmate_shared.kernel.catalogue import CATALOGUE
from workmate_shared.kernel.decision import Committed, Details, Refused, Unchanged
from workmate_shared.kernel.explain import explain
from workmate_shared.tasks import commands as c
from workmate_shared.tasks.policy import Retention
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.tasks.task import Task, evolve
from workmate_shared.tasks.values import Fix, ReasonPersonal
from workmate_shared.wire.intake import MessageError

DeclineReason = Literal["nobody_home", "unsafe", "no_parts", "not_my_skill", "other"]

MakeAct = Callable[[Situation], Act]
"""Given where the task stands, returns what is to be done; what it raises changes nothing."""


class ActRefusedError(ServiceError):
    """The lifecycle does not allow it now: the catalogue's code, and its public inputs."""

    def __init__(self, decision: Refused) -> None:
        super().__init__(decision.code, explain(decision.status, decision.code, decision.details))
        self.details: Details = decision.details

    @property
    def todo(self) -> str:
        """What can be done about it."""
        return CATALOGUE[self.code].todo


class _AlreadySoError(Exception):
    def __init__(self, situation: Situation) -> None:
        super().__init__()
        self.situation = situation


class Done(Struct, frozen=True, kw_only=True):
    """What an act came to: the command that was saved, or `already` where nothing had to be done.

    `state` is the task's state with the act applied; `command` is then the earlier one, if known.
    """

    task_id: str
    state: str
    command: QueuedCommand | None
    already: bool = False


def situation(device: Device, task_id: str) -> Situation:
    """Return where a task stands. Raises NotEnrolledError."""
    profile = device.profile()
    replica = device.replica.task(task_id)
    found = situation_of(profile, task_id, replica, device.journal.commands(task_id))
    return msgspec.structs.replace(found, heard=device.replica.is_complete())


def retention_of(found: Situation) -> Retention:
    """Return the retention classes under which a task's values are disclosed."""
    return found.state.proof_policy.retention if found.state else Retention()


def perform(device: Device, task_id: str, make: MakeAct, *, finishes: str | None = None) -> Done:
    """Do what `make` says, whole or not at all; `finishes` names the draft that ends with it.

    Raises ActRefusedError, NotEnrolledError, StoreError, StorageError.
    """
    reached: list[Task] = []

    def build(device_seq: int) -> SignedParts:
        found = situation(device, task_id)
        if not found.heard:
            # Without the server's list an unknown task says nothing about the job.
            _ = found.task
        act = _placed(make(found), found)
        written = device.author.write(found.profile, act, device_seq)
        decision = found.decide(written.command, written.parts.payload)
        if isinstance(decision, Unchanged):
            raise _AlreadySoError(found)
        if not isinstance(decision, Committed):
            raise ActRefusedError(decision)
        reached.append(reduce(evolve, decision.events, found.task))
        return written.parts

    try:
        ended = (task_id, finishes) if finishes else None
        command = device.journal.issue(build, finishes=ended)
    except _AlreadySoError as error:
        return _already(error.situation)
    except MessageError as error:
        raise refuse_message(error) from error
    return Done(task_id=task_id, state=reached[0].state, command=command)


def refuse_message(error: MessageError) -> ServiceError:
    """Return the refusal of a command that the server could not read: the code and the field."""
    return ServiceError(error.code, f"{error.path}: {error.detail}")


def _placed(act: Act, found: Situation) -> Act:
    """Say what the act builds on; an annotation builds on nothing."""
    if TASK_TABLE.row(str(act.kind.__struct_config__.tag)).annotates:
        return act
    return msgspec.structs.replace(act, expected_version=found.base_version, after=found.after)


def _already(found: Situation) -> Done:
    earlier = found.acts[-1].command if found.acts else None
    return Done(task_id=found.task_id, state=found.task.state, command=earlier, already=True)


def accept(device: Device, task_id: str) -> Done:
    """Take a task on."""
    return perform(device, task_id, lambda _: Act(kind=c.Accept, aggregate_id=task_id))


def decline(device: Device, task_id: str, reason_code: DeclineReason, reason: str) -> Done:
    """Give a task back, with a reason code and a reason in words; what was gathered is kept."""

    def make(found: Situation) -> Act:
        value = Value(ReasonPersonal(reason=reason), retention_of(found).personal)
        return Act(
            kind=c.Decline,
            aggregate_id=task_id,
            fields={"reason_code": reason_code},
            personal=value,
        )

    return perform(device, task_id, make)


def start_travel(device: Device, task_id: str) -> Done:
    """Set out."""
    return perform(device, task_id, lambda _: Act(kind=c.StartTravel, aggregate_id=task_id))


def arrive(
    device: Device,
    task_id: str,
    *,
    fix: Fix | None = None,
    no_fix_reason: str | None = None,
    evidence: tuple[str, ...] = (),
) -> Done:
    """Begin work: with a fix, or with the reason why there is none, and hashes of evidence files.

    Raises ServiceError `arrival_needs_fix` unless exactly one of the two is given.
    """
    if (fix is None) == (not no_fix_reason):
        detail = "give a position, or say why there is none"
        raise ServiceError("arrival_needs_fix", detail)

    def make(found: Situation) -> Act:
        position = Value(fix, retention_of(found).position) if fix else None
        fields = {"no_fix_reason": no_fix_reason, "evidence": evidence}
        return Act(kind=c.Arrive, aggregate_id=task_id, fields=fields, position=position)

    return perform(device, task_id, make)
