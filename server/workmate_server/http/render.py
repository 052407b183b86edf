"""Tell how a command ended: the answers of the JSON API and the outcomes of sync.

What was recorded (status, outcome, code, version, events, receipt) is told the same for ever; what
is rendered beside it (the aggregate, events since, opened values) is what the caller may see now.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct

from workmate_server.engine.model import Decided
from workmate_server.http.headers import REPLAYED, version_tag
from workmate_server.http.problems import ProblemError
from workmate_server.http.rendering import Renderer, rendering
from workmate_server.http.responses import json_response
from workmate_server.http.services import Services
from workmate_server.http.sight import ADMINISTRATION_ROLES, Sight, sight_of
from workmate_server.identity.authenticate import Caller, read_principal
from workmate_server.store import reads_log, reads_tasks
from workmate_server.store.loads import load_snapshots
from workmate_server.store.pages import Page
from workmate_shared.kernel.catalogue import CATALOGUE
from workmate_shared.tasks.task import Task
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.messages import CommandAnswer, Outcome, WireEvent

_DONE = ("committed", "unchanged")
_CONFLICT_STATUS = 409


class _Facts(Struct, frozen=True):
    """What an answer needs of the stored command."""

    actor: Mapping[str, str] = {}
    expected_version: int | None = None


class _Shown(Struct, frozen=True):
    """The rendered parts of one answer."""

    events: list[WireEvent]
    current: Any
    since: list[WireEvent]

    @property
    def disclosures(self) -> dict[str, Disclosure]:
        """The values of the command, as far as they are kept and the caller may see them."""
        return {name: one for event in self.events for name, one in event.disclosures.items()}


def command_response(
    services: Services,
    caller: Caller,
    decided: Decided,
    *,
    created_at: str | None = None,
    documented: Mapping[str, Any] | None = None,
) -> web.Response:
    """Return the answer to a command of the JSON API. Blocks.

    `created_at` is the address of the aggregate where the command creates one; `documented` are
    members beside those of every answer. Raises ProblemError for all but success.
    """
    with rendering(services, caller) as renderer:
        [shown] = _show(renderer, [decided], services, with_current=True)
    replayed = {REPLAYED: "true"} if decided.replayed else {}
    receipt, version = decided.receipt, decided.version
    if decided.status not in _DONE or receipt is None or version is None:
        raise _problem(decided, shown, replayed)
    answer = CommandAnswer(
        outcome=decided.status,  # type: ignore[arg-type]
        version=version,
        events=tuple(shown.events),
        receipt=receipt,
        command_bytes=decided.command.decode(),
        disclosures=shown.disclosures,
        **{decided.aggregate_type: shown.current},
    )
    created = created_at is not None and decided.status == "committed"
    headers = {"ETag": version_tag(version), **replayed}
    if created:
        headers["Location"] = created_at or ""
    body: Any = answer
    if documented is not None:
        body = {**msgspec.to_builtins(answer), **documented}
    return json_response(body, status=201 if created else 200, headers=headers)


def render_outcomes(
    services: Services, caller: Caller, decided: Sequence[Decided]
) -> list[Outcome]:
    """Return the outcomes of signed commands, in order, as the caller may see them. Blocks.

    Whoever carries another person's commands gets their receipts and nothing that is not his to see.
    """
    with rendering(services, caller) as renderer:
        shown = _show(renderer, decided, services, with_current=False)
    return [_outcome(one, parts) for one, parts in zip(decided, shown, strict=True)]


def _outcome(decided: Decided, shown: _Shown) -> Outcome:
    current = None if shown.current is None else msgspec.to_builtins(shown.current)
    done = decided.status in _DONE
    return Outcome(
        command_id=decided.command_id,
        status=decided.status,  # type: ignore[arg-type]
        code=decided.code,
        details=dict(decided.details),
        version=decided.version,
        events=tuple(shown.events),
        receipt=decided.receipt,
        current=None if done else current,
        events_since=tuple(shown.since),
        replayed=decided.replayed,
        blocked_by=decided.blocked_by,
    )


def _problem(decided: Decided, shown: _Shown, headers: Mapping[str, str]) -> ProblemError:
    code = decided.code or "internal"
    members: dict[str, Any] = {"details": decided.details or UNSET}
    if CATALOGUE[code].status == _CONFLICT_STATUS and shown.current is not None:
        members["current"] = shown.current
        members["events_since"] = tuple(shown.since)
    if decided.receipt is not None:
        members |= {
            "outcome": decided.status,
            "version": decided.version,
            "receipt": decided.receipt,
            "command_bytes": decided.command.decode(),
            "events": tuple(shown.events),
        }
    findings = decided.details.get("findings")
    if findings is not None:
        members["findings"] = tuple(findings)
    return ProblemError(code, decided.sentence, headers=headers, **members)


def _show(
    renderer: Renderer, decided: Sequence[Decided], services: Services, *, with_current: bool
) -> list[_Shown]:
    """Render all at once; without `with_current` only what was refused shows its aggregate."""
    caller = renderer.caller
    facts = [msgspec.json.decode(one.command or b"{}", type=_Facts) for one in decided]
    events = renderer.event_groups(
        [
            (one.events, fact.actor.get("id") == caller.principal_id)
            for one, fact in zip(decided, facts, strict=True)
        ]
    )
    showing = [one for one in decided if with_current or one.status not in _DONE]
    names = {one.aggregate_id for one in showing if one.aggregate_type == "task"}
    tasks = reads_tasks.read_tasks(renderer.connection, caller.tenant_id, names)
    renderer.tasks(list(tasks.values()))
    shown = []
    for one, fact, group in zip(decided, facts, events, strict=True):
        task = tasks.get(one.aggregate_id)
        current: Any = None
        since: list[WireEvent] = []
        if task is not None:
            current = renderer.task(task)
            since = _since(renderer, task, one, fact.expected_version, services)
        elif one.aggregate_type == "principal" and one in showing:
            current = _principal(renderer, one.aggregate_id)
        shown.append(_Shown(group, current, since))
    return shown


def _since(
    renderer: Renderer,
    task: Task,
    decided: Decided,
    expected: int | None,
    services: Services,
) -> list[WireEvent]:
    """Return what happened after the version that a refused command builds on."""
    if decided.status in _DONE or not expected or expected >= task.version:
        return []
    if sight_of(renderer.caller, task) is not Sight.FULL:
        return []
    settings = services.settings
    page = Page(settings.list_page_max, settings.list_page_bytes_max)
    found, _ = reads_log.list_stream(
        renderer.connection, task.tenant_id, task.task_id, expected, page
    )
    return renderer.events(found)


def _principal(renderer: Renderer, principal_id: str) -> Any:
    caller = renderer.caller
    if principal_id != caller.principal_id and not caller.roles & ADMINISTRATION_ROLES:
        return None
    found = load_snapshots(
        renderer.connection, caller.tenant_id, "principal", [principal_id], lock=False
    )
    data = found.get(principal_id)
    return None if data is None else renderer.principal(read_principal(data))
