"""Acts that were not applied, in one picture: what I did, what happened meanwhile, what is the case.

Nothing of them is lost: each waits until the worker does it again or sets it aside.
"""

from typing import Any

import msgspec
from msgspec import Struct

from workmate_client.journal.rows import QueuedCommand
from workmate_client.service.device import Device
from workmate_client.service.wording import Shown, shown_act
from workmate_shared.kernel.explain import explain
from workmate_shared.wire.messages import WireEvent


class LostAct(Struct, frozen=True, kw_only=True):
    """One act of the worker that was not applied."""

    command_id: str
    name: str
    occurred_at: str
    status: str
    code: str | None
    sentence: str
    shown: Shown


class Meanwhile(Struct, frozen=True, kw_only=True):
    """One event that came in between: what, by whom, when."""

    type: str
    actor: str
    occurred_at: str
    version: int


class Conflict(Struct, frozen=True, kw_only=True):
    """Acts on one job that were lost together; the first is the one to name in a decision.

    `now` is the job as the server showed it with its answer, `meanwhile` what had happened to it.
    """

    task_id: str
    command_id: str
    acts: tuple[LostAct, ...]
    meanwhile: tuple[Meanwhile, ...]
    now: dict[str, Any] | None
    set_aside_reason: str | None = None


class _Told(Struct, frozen=True):
    """What of an event is shown, whatever its type or version."""

    class Who(Struct, frozen=True):
        id: str

    actor: Who
    occurred_at: str


def list_conflicts(device: Device, *, include_set_aside: bool = True) -> tuple[Conflict, ...]:
    """Return what needs the worker's decision, oldest first; by default also what was set aside."""
    lost = [
        command
        for command in device.journal.commands()
        if command.status in ("conflict", "rejected") and command.superseded_by is None
    ]
    shown = [act for act in lost if include_set_aside or act.set_aside_at is None]
    chains: dict[str, list[QueuedCommand]] = {}
    first_of: dict[str, str] = {}
    for command in shown:
        first = first_of.get(command.after or "", command.command_id)
        first_of[command.command_id] = first
        chains.setdefault(first, []).append(command)
    return tuple(_conflict(chain) for chain in chains.values())


def _conflict(chain: list[QueuedCommand]) -> Conflict:
    first = chain[0]
    outcome = first.outcome
    events = outcome.events_since if outcome else ()
    return Conflict(
        task_id=first.aggregate_id,
        command_id=first.command_id,
        acts=tuple(_lost(command) for command in chain),
        meanwhile=tuple(told for told in map(_meanwhile, events) if told is not None),
        now=outcome.current if outcome else None,
        set_aside_reason=first.set_aside_reason,
    )


def _lost(command: QueuedCommand) -> LostAct:
    outcome = command.outcome
    status, code = command.status, outcome.code if outcome else None
    return LostAct(
        command_id=command.command_id,
        name=command.name,
        occurred_at=command.occurred_at,
        status=status,
        code=code,
        sentence=explain(status, code, outcome.details if outcome else {}),
        shown=shown_act(command),
    )


def _meanwhile(event: WireEvent) -> Meanwhile | None:
    try:
        told = msgspec.json.decode(event.payload, type=_Told)
    except msgspec.DecodeError:
        return None
    return Meanwhile(
        type=event.type,
        actor=told.actor.id,
        occurred_at=told.occurred_at,
        version=event.aggregate_version,
    )
