"""Judge the pull of an answer: a page to keep, a refusal to record, or a fault.

A page counts only where it begins at the cursor that was sent, gets on from there, and names each
object once, in the order of the log. Whatever it is, outcomes beside it count for themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from workmate_client.sync.proven import Pinned, prove_event
from workmate_shared.principals.events import CredentialRevoked
from workmate_shared.wire.messages import Change, Pull, SyncAnswer

PullFault = Literal["pull_not_joined", "pull_malformed", "pull_stuck", "lineage_left"]

VOID_CURSOR_CODES = frozenset({"cursor_expired", "bad_cursor"})
"""Refusals after which everything is pulled anew; each other one keeps the cursor."""


class PullVerdict(Struct, frozen=True, kw_only=True):
    """What may be done with the pull: a page to apply, a refusal to record, or a fault.

    A page has a `cursor`. `wipe` is true only where a receipt of our own server orders this device
    to remove its data.
    """

    changes: tuple[Change, ...] = ()
    cursor: str | None = None
    more: bool = False
    refused: str | None = None
    fault: PullFault | None = None
    wipe: bool = False


def judge_pull(
    answer: SyncAnswer, cursor: str | None, pinned: Pinned, keys: Mapping[str, bytes]
) -> PullVerdict:
    """Judge the pull of an answer to a request that carried `cursor`; `keys` are the trusted ones."""
    pull = answer.pull
    if pull.refused is not None:
        return PullVerdict(refused=pull.refused, wipe=_orders_wipe(pull, pinned, keys))
    if answer.lineage != pinned.lineage and cursor is not None:
        return PullVerdict(refused="cursor_expired")
    if pull.cursor is None or not _is_page(pull.changes):
        return PullVerdict(fault="pull_malformed")
    if pull.since != cursor:
        return PullVerdict(fault="pull_not_joined")
    if pull.more and pull.cursor == cursor:
        return PullVerdict(fault="pull_stuck")
    return PullVerdict(changes=pull.changes, cursor=pull.cursor, more=pull.more)


def _is_page(changes: Sequence[Change]) -> bool:
    """Whether changes are in the order of the log, each object once, there or gone."""
    names = {(change.kind, change.id) for change in changes}
    seqs = [change.seq for change in changes]
    whole = all(
        (change.task is None) != (change.removed is None)
        and (change.task is None or change.task.task_id == change.id)
        for change in changes
    )
    return whole and len(names) == len(changes) and seqs == sorted(seqs)


def _orders_wipe(pull: Pull, pinned: Pinned, keys: Mapping[str, bytes]) -> bool:
    if pull.receipt is None or pull.event is None:
        return False
    event = prove_event(pull.receipt, pull.event, pinned.tenant_id, keys)
    return (
        isinstance(event, CredentialRevoked)
        and event.wipe
        and event.credential_id == pinned.device_id
        and event.aggregate_id == pinned.principal_id
    )
