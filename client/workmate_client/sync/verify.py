"""Judge what a server answered to a sync, before anything of it is believed.

An outcome counts only with a receipt that verifies under a pinned key and names this tenant, the
command's actor, its id and the very bytes that were signed. Everything else leaves the command
pending; the same bytes go out again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from workmate_client.sync.headers import Fork, HeaderBook
from workmate_client.sync.proven import Pinned, are_events_of, learn_keys
from workmate_client.sync.verify_pull import PullVerdict, judge_pull
from workmate_shared.wire.batch import Leaf, Receipt, ReceiptError, command_hash, verify_receipt
from workmate_shared.wire.dsse import Envelope
from workmate_shared.wire.messages import Outcome, SyncAnswer

RecordedStatus = Literal["committed", "unchanged", "conflict", "rejected"]
UnknownReason = Literal[
    "outcome_missing",
    "outcome_repeated",
    "receipt_missing",
    "receipt_signature",
    "receipt_malformed",
    "receipt_path",
    "receipt_mismatch",
    "receipt_fork",
    "lineage_left",
]


class Sent(Struct, frozen=True, kw_only=True):
    """A command as it went out: its id, aggregate and actor, and the exact bytes that were signed."""

    command_id: str
    aggregate_id: str
    principal_id: str
    payload: bytes


class VerifiedOutcome(Struct, frozen=True, kw_only=True):
    """An outcome that its receipt proves; made by `judge` only.

    `version` is proven where the decision wrote events; `outcome` is what the server said, with its
    `events` proven and `current` and `events_since` as hearsay.
    """

    command_id: str
    status: RecordedStatus
    outcome: Outcome
    receipt: Receipt
    leaf: Leaf
    batch: int


class HeldCommand(Struct, frozen=True, kw_only=True):
    """A command that the server did not decide: why, what it waits for, how long to wait at least."""

    command_id: str
    code: str
    blocked_by: str | None = None
    after_seconds: float = 0.0
    details: Mapping[str, Any] = {}


class UnknownOutcome(Struct, frozen=True):
    """A command of which nothing is known after this answer, and why."""

    command_id: str
    reason: UnknownReason


Verdict = VerifiedOutcome | HeldCommand | UnknownOutcome


class Judgement(Struct, frozen=True, kw_only=True):
    """What an answer is worth. Each command that was sent is in exactly one of the three tuples.

    `new_keys` are log keys to pin, `newest_header` (of batch `newest_batch`) is to be sent with the
    next request, `forks` are proofs that the server signed two histories.
    """

    lineage: str
    lineage_changed: bool
    new_keys: Mapping[str, bytes]
    newest_header: Envelope | None
    newest_batch: int
    outcomes: tuple[VerifiedOutcome, ...]
    held: tuple[HeldCommand, ...]
    unknown: tuple[UnknownOutcome, ...]
    forks: tuple[Fork, ...]
    pull: PullVerdict


class _UnprovenError(Exception):
    def __init__(self, reason: UnknownReason) -> None:
        super().__init__(reason)
        self.reason: UnknownReason = reason


def judge(
    answer: SyncAnswer, sent: Sequence[Sent], cursor: str | None, pinned: Pinned
) -> Judgement:
    """Judge an answer to a request that carried `sent` and `cursor`. Never raises on what it says."""
    book = HeaderBook(pinned.newest_header, answer.lineage)
    if answer.lineage in pinned.past_lineages and book.newest_lineage == pinned.lineage:
        return _nothing_believed(sent, pinned, book)
    keys = learn_keys(answer.keys, pinned)
    outcomes: list[VerifiedOutcome] = []
    held: list[HeldCommand] = []
    unknown: list[UnknownOutcome] = []
    said = _by_command(answer.outcomes)
    for command in sent:
        verdict = _judge_outcome(
            said.get(command.command_id, ()), command, pinned.tenant_id, keys, book
        )
        match verdict:
            case VerifiedOutcome():
                outcomes.append(verdict)
            case HeldCommand():
                held.append(verdict)
            case UnknownOutcome():
                unknown.append(verdict)
    return Judgement(
        lineage=answer.lineage,
        lineage_changed=answer.lineage != pinned.lineage,
        new_keys={name: key for name, key in keys.items() if name not in pinned.keys},
        newest_header=book.newest,
        newest_batch=book.newest_batch,
        outcomes=tuple(outcomes),
        held=tuple(held),
        unknown=tuple(unknown),
        forks=tuple(book.forks),
        pull=judge_pull(answer, cursor, pinned, keys),
    )


def judge_alone(outcome: Outcome, sent: Sent, pinned: Pinned) -> Verdict:
    """Judge an outcome that did not come with a sync, such as that of an enrolment."""
    book = HeaderBook(pinned.newest_header, pinned.lineage)
    said = [outcome] if outcome.command_id == sent.command_id else []
    return _judge_outcome(said, sent, pinned.tenant_id, pinned.keys, book)


def _nothing_believed(sent: Sequence[Sent], pinned: Pinned, book: HeaderBook) -> Judgement:
    return Judgement(
        lineage=pinned.lineage,
        lineage_changed=False,
        new_keys={},
        newest_header=book.newest,
        newest_batch=book.newest_batch,
        outcomes=(),
        held=(),
        unknown=tuple(UnknownOutcome(command.command_id, "lineage_left") for command in sent),
        forks=(),
        pull=PullVerdict(fault="lineage_left"),
    )


def _by_command(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    said: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        said.setdefault(outcome.command_id, []).append(outcome)
    return said


def _judge_outcome(
    said: Sequence[Outcome],
    command: Sent,
    tenant_id: str,
    keys: Mapping[str, bytes],
    book: HeaderBook,
) -> Verdict:
    try:
        return _proven(said, command, tenant_id, keys, book)
    except _UnprovenError as error:
        return UnknownOutcome(command.command_id, error.reason)


def _proven(
    said: Sequence[Outcome],
    command: Sent,
    tenant_id: str,
    keys: Mapping[str, bytes],
    book: HeaderBook,
) -> VerifiedOutcome | HeldCommand:
    if not said:
        raise _UnprovenError("outcome_missing")
    if len(said) > 1:
        raise _UnprovenError("outcome_repeated")
    (outcome,) = said
    if outcome.status == "retry":
        return HeldCommand(
            command_id=command.command_id,
            code=outcome.code or "overloaded",
            blocked_by=outcome.blocked_by,
            after_seconds=outcome.after or 0.0,
            details=outcome.details,
        )
    if outcome.receipt is None:
        raise _UnprovenError("receipt_missing")
    try:
        verified = verify_receipt(outcome.receipt, keys)
    except ReceiptError as error:
        raise _UnprovenError(error.code) from error
    # The lineage may be an older one: a restored server answers what it kept as it was decided.
    if not _names(verified.leaf, outcome, command, tenant_id):
        raise _UnprovenError("receipt_mismatch")
    if not book.enter(verified, outcome.receipt.header):
        raise _UnprovenError("receipt_fork")
    return VerifiedOutcome(
        command_id=command.command_id,
        status=outcome.status,
        outcome=outcome,
        receipt=outcome.receipt,
        leaf=verified.leaf,
        batch=verified.header.batch,
    )


def _names(leaf: Leaf, outcome: Outcome, command: Sent, tenant_id: str) -> bool:
    """Whether a leaf is the decision of this command, ended as the outcome says."""
    decision = (leaf.outcome, leaf.code, leaf.details)
    version = leaf.events[-1].version if leaf.events else outcome.version
    return (
        leaf.tenant_id == tenant_id
        and leaf.principal_id == command.principal_id
        and leaf.command_id == command.command_id
        and leaf.aggregate_id == command.aggregate_id
        and leaf.command_hash == command_hash(command.payload)
        and decision == (outcome.status, outcome.code, outcome.details)
        and (outcome.status != "committed" or outcome.version == version)
        and are_events_of(outcome.events, leaf.events)
    )
