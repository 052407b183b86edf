"""Decide the signed commands of a sync request.

Outcomes come in the order of the request and each stands alone: a command that cannot be read or
proven costs no other its answer. The actor is the one who signed, never the one who carries. What
failed check 1 is answered as a retry and leaves no trace.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from workmate_server.engine.answers import retry_with
from workmate_server.engine.engine import OverloadedError, StoppingError
from workmate_server.engine.model import Decided, Submission
from workmate_server.http.render import render_outcomes
from workmate_server.http.services import Services
from workmate_server.http.sync_request import Sent
from workmate_server.identity.authenticate import Caller
from workmate_server.identity.devices import intake_signed
from workmate_shared.wire.intake import MessageError
from workmate_shared.wire.messages import Outcome

Taken = Submission | MessageError
"""A command that passed check 1, or why it did not."""


async def decide(services: Services, caller: Caller, taken: Sequence[Taken]) -> list[Decided]:
    """Return how the commands that passed check 1 ended, in order.

    Those that the engine does not take now are retries like those that cannot be read.
    """
    submissions = [one for one in taken if isinstance(one, Submission)]
    try:
        return await services.engine.submit(caller.tenant_id, submissions)
    except (OverloadedError, StoppingError) as error:
        code = "overloaded" if isinstance(error, OverloadedError) else "shutting_down"
        return [retry_with(code, one) for one in submissions]


def take(services: Services, caller: Caller, sent: Sequence[Sent]) -> list[Taken]:
    """Do check 1 of every command, in order. Blocks."""
    if not sent:
        return []
    read = [one.command for one in sent if not isinstance(one.command, MessageError)]
    with services.database.read() as connection:
        checked = iter(intake_signed(connection, caller.tenant_id, read))
    return [
        one.command if isinstance(one.command, MessageError) else _carried(caller, next(checked))
        for one in sent
    ]


def _carried(caller: Caller, taken: Taken) -> Taken:
    """Refuse other people's commands to a caller who may no longer act himself."""
    if (
        caller.barred
        and isinstance(taken, Submission)
        and taken.message.command.actor.id != caller.principal_id
    ):
        return MessageError("access_not_allowed", "$.actor", "Somebody who may act must carry it.")
    return taken


def tell(
    services: Services,
    caller: Caller,
    sent: Sequence[Sent],
    taken: Sequence[Taken],
    decided: Sequence[Decided],
) -> list[Outcome]:
    """Return the outcome of every command, in the order in which they were sent. Blocks."""
    if not sent:
        return []
    told = iter(render_outcomes(services, caller, decided))
    after = services.settings.retry_after_seconds
    outcomes = []
    for one, result in zip(sent, taken, strict=True):
        if isinstance(result, MessageError):
            outcome = _refusal(one.claimed_id, result)
        else:
            outcome = next(told)
        outcomes.append(replace(outcome, after=after) if outcome.status == "retry" else outcome)
    return outcomes


def _refusal(command_id: str, error: MessageError) -> Outcome:
    details = {"path": error.path, "detail": error.detail}
    return Outcome(command_id=command_id, status="retry", code=error.code, details=details)
