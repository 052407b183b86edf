"""The worker's jobs: the list, and one job with its history and what can be done with it now.

What is shown is the server's last word with the worker's own acts applied. Each action that the
lifecycle knows is there, allowed or with the reason why it is not.
"""

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from workmate_client.journal.rows import QueuedCommand
from workmate_client.service.acts import situation
from workmate_client.service.device import Device
from workmate_client.service.possible import Action, possible_actions
from workmate_client.service.situation import OwnAct, Situation, situation_of
from workmate_client.service.wording import Shown, shown_act
from workmate_shared.kernel.explain import explain
from workmate_shared.kernel.instants import parse_instant
from workmate_shared.tasks.task import ManifestRecord
from workmate_shared.tasks.view import TaskView, project_task


class JobLine(Struct, frozen=True, kw_only=True):
    """One job in the list. `unsent` counts acts without an answer, `needs_decision` lost ones.

    `removed` says why it is no longer this worker's; `returned` why its last proof was sent back,
    empty if nobody said why, None unless it has to be done again.
    """

    task_id: str
    external_id: str
    state: str
    version: int
    priority: int
    due_at: str | None
    window_start: str | None
    window_end: str | None
    client: str | None
    site_name: str | None
    address: str | None
    unsent: int
    needs_decision: int
    removed: str | None
    returned: str | None = None


class HistoryLine(Struct, frozen=True, kw_only=True):
    """One own act: what, when, how it is shown, and one sentence where it was not simply done.

    `reason` is what the supervisor wrote who decided the proof that the act carried.
    """

    command_id: str
    name: str
    occurred_at: str
    status: str
    shown: Shown
    sentence: str | None = None
    reason: str | None = None


class JobView(Struct, frozen=True, kw_only=True):
    """One job: the task as it stands here, the worker's acts on it, and what can be done now."""

    task: TaskView
    pulled_state: str | None
    pulled_version: int | None
    removed: str | None
    history: tuple[HistoryLine, ...]
    actions: tuple[Action, ...]


def list_jobs(device: Device, *, include_gone: bool = False) -> tuple[JobLine, ...]:
    """Return the worker's jobs: by the start of the window, then by the deadline, then by id.

    Jobs that are no longer the worker's are left out unless something of them is still undecided,
    or `include_gone` asks for them. Raises NotEnrolledError.
    """
    profile = device.profile()
    own: dict[str, list[QueuedCommand]] = {}
    for command in device.journal.commands():
        own.setdefault(command.aggregate_id, []).append(command)
    lines = []
    for task in device.replica.tasks():
        task_id = task.task.task_id
        line = _line(situation_of(profile, task_id, task, own.get(task_id, ())))
        if include_gone or line.removed is None or line.unsent or line.needs_decision:
            lines.append(line)
    return tuple(sorted(lines, key=_order))


def _order(line: JobLine) -> tuple[float, float, int, str]:
    return (_seconds(line.window_start), _seconds(line.due_at), line.priority, line.task_id)


def _seconds(instant: str | None) -> float:
    """Return when it is, since the epoch; what has no time comes last."""
    return parse_instant(instant).timestamp() if instant else math.inf


def _line(found: Situation) -> JobLine:
    state = found.task
    view = project_task(state, found.opened)
    personal: Mapping[str, Any] = view.personal or {}
    return JobLine(
        task_id=state.task_id,
        external_id=state.external_id,
        state=state.state,
        version=state.version,
        priority=state.priority,
        due_at=state.due_at,
        window_start=state.window.start if state.window else None,
        window_end=state.window.end if state.window else None,
        client=personal.get("client"),
        site_name=personal.get("site_name"),
        address=personal.get("address"),
        unsent=sum(act.command.outcome is None for act in found.acts),
        needs_decision=sum(act.command.needs_decision for act in found.acts),
        removed=found.removed,
        returned=returned_for(found),
    )


def returned_for(found: Situation) -> str | None:
    """Return why the last proof of a job in work was returned, or None if it was not."""
    state = found.task
    if state.state != "in_progress" or not state.manifests:
        return None
    last = state.manifests[-1]
    return (_reason(last, found) or "") if last.status == "rejected" else None


def returned_proofs(device: Device) -> tuple[str, ...]:
    """Return the jobs, by their outside ids, whose last proof was returned to be done again."""
    return tuple(line.external_id for line in list_jobs(device) if line.returned is not None)


def show_job(device: Device, task_id: str) -> JobView:
    """Return one job. Raises NotEnrolledError, or ServiceError `not_found`."""
    found = situation(device, task_id)
    missing = any(not item.verified_at for item in device.journal.evidence(task_id))
    return JobView(
        task=project_task(found.task, found.opened),
        pulled_state=found.pulled.state if found.pulled else None,
        pulled_version=found.pulled.version if found.pulled else None,
        removed=found.removed,
        history=tuple(_history_line(act, found, files_missing=missing) for act in found.acts),
        actions=possible_actions(found, device),
    )


def _history_line(act: OwnAct, found: Situation, *, files_missing: bool) -> HistoryLine:
    command = act.command
    content_hash = getattr(command.command(), "content_hash", None)
    records = [m for m in found.task.manifests if m.content_hash == content_hash]
    review = records[0].status if records else None
    return HistoryLine(
        command_id=command.command_id,
        name=command.name,
        occurred_at=command.occurred_at,
        status=command.status,
        shown=shown_act(command, files_missing=files_missing, review=review),
        sentence=sentence_of(act),
        reason=_reason(records[0], found) if records else None,
    )


def _reason(record: ManifestRecord, found: Situation) -> str | None:
    value = found.opened(record.reason) if record.reason else None
    return None if value is None else value.get("reason")


def sentence_of(act: OwnAct) -> str | None:
    """Return why an act was not, or will probably not be, simply done; None where it was."""
    outcome, expected = act.command.outcome, act.expected
    if outcome is not None and outcome.status in ("conflict", "rejected"):
        return explain(outcome.status, outcome.code, outcome.details)
    if outcome is None and expected is not None and expected.status in ("conflict", "rejected"):
        code, details = getattr(expected, "code", None), getattr(expected, "details", {})
        return explain(expected.status, code, details)
    return None
