"""What can be done with a job now: every act of the worker, allowed, already done, or why not.

Each answer is that of the lifecycle itself, asked with an example of the command.
"""

from collections.abc import Callable

from msgspec import Struct

from workmate_client.service.device import Device
from workmate_client.service.situation import Situation
from workmate_shared.kernel.command import COMMAND_SCHEMA, Actor, Command
from workmate_shared.kernel.decision import Committed, Unchanged
from workmate_shared.kernel.explain import explain
from workmate_shared.kernel.table import Role
from workmate_shared.tasks import commands as c
from workmate_shared.tasks.manifest import Manifest, content_hash, encode_manifest
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.wire.binary import to_base64

_EXAMPLE = "example"
_COMMITMENT = "0" * 64


class Action(Struct, frozen=True, kw_only=True):
    """One act: allowed now, or the code and the sentence why not; `already` if it is done."""

    name: str
    allowed: bool
    already: bool = False
    code: str | None = None
    reason: str | None = None


def _with_manifest(found: Situation) -> dict[str, object]:
    manifest = encode_manifest(
        Manifest(
            manifest_id=_EXAMPLE,
            task_id=found.task_id,
            task_version=found.base_version,
            capture_time=found.task.state_entered_at,
            policy_version=found.task.policy_version,
        )
    )
    return {"manifest": to_base64(manifest), "content_hash": content_hash(manifest)}


_EXAMPLES: tuple[tuple[type[Command], Callable[[Situation], dict[str, object]]], ...] = (
    (c.Accept, lambda _: {}),
    (c.StartTravel, lambda _: {}),
    (c.Arrive, lambda _: {"no_fix_reason": _EXAMPLE}),
    (c.SubmitProof, _with_manifest),
    (c.Decline, lambda _: {"reason_code": "other", "personal": _COMMITMENT}),
    (c.HandOver, _with_manifest),
    (c.Observe, lambda found: {"readings": _reading(found), "personal": _COMMITMENT}),
)


def _reading(found: Situation) -> tuple[c.Reading, ...]:
    return (c.Note(at=found.task.state_entered_at),)


def possible_actions(found: Situation, device: Device) -> tuple[Action, ...]:
    """Return what the worker can and cannot do with a known task now, in the order of the work."""
    return tuple(_judged(found, device, kind, fields(found)) for kind, fields in _EXAMPLES)


def _judged(
    found: Situation, device: Device, kind: type[Command], fields: dict[str, object]
) -> Action:
    name = str(kind.__struct_config__.tag)
    moves = not TASK_TABLE.row(name).annotates
    command = kind(
        schema_version=COMMAND_SCHEMA,
        tenant_id=found.profile.tenant_id,
        aggregate_id=found.task_id,
        actor=Actor(found.profile.worker_id, Role.WORKER, device.keys.device_id),
        command_id=_EXAMPLE,
        lineage=found.profile.lineage,
        occurred_at=device.now(),
        expected_version=found.base_version if moves else None,
        after=found.after if moves else None,
        **fields,  # type: ignore[arg-type]
    )
    decision = found.decide(command)
    if isinstance(decision, Committed):
        return Action(name=name, allowed=True)
    if isinstance(decision, Unchanged):
        return Action(name=name, allowed=False, already=True, reason="Already done.")
    reason = explain(decision.status, decision.code, decision.details)
    return Action(name=name, allowed=False, code=decision.code, reason=reason)
