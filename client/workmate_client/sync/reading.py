"""Read the answer to a sync part by part, so that no part costs another its effect.

An outcome that cannot be read leaves its own command unknown and no other; a pull that cannot be
read takes nothing from the outcomes. Objects of a kind that only later programs know are left out:
a later program begins a replica of its own.
"""

from typing import TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Raw, Struct

from workmate_client.sync.answers import RawAnswer, read_answer
from workmate_shared.kernel.instants import Instant
from workmate_shared.wire.messages import (
    Change,
    KeyNotice,
    Limits,
    Outcome,
    ProtocolRange,
    Pull,
    SyncAnswer,
)

T = TypeVar("T")

KNOWN_KINDS = frozenset(get_args(get_type_hints(Change)["kind"]))
"""The kinds of object that this program can keep."""

UNREADABLE_PULL = Pull()
"""Stands for a pull that makes no sense: a page without an end, which is a fault."""


class _Parts(Struct, frozen=True, kw_only=True):
    protocol: ProtocolRange
    lineage: str
    server_time: Instant
    limits: Limits
    pull: Raw
    keys: tuple[Raw, ...] = ()
    backoff: float = 0.0
    outcomes: tuple[Raw, ...] = ()


class _Page(Struct, frozen=True):
    changes: tuple[Raw, ...] = ()


class _Kind(Struct, frozen=True):
    kind: str


def read_sync_answer(answer: RawAnswer, limit_bytes: int) -> SyncAnswer:
    """Return the answer as far as it can be read.

    Raises RefusedError and UnreadableAnswerError like `read_answer`, where the whole is none.
    """
    parts = read_answer(answer, _Parts, limit_bytes)
    outcomes = (_part(raw, Outcome) for raw in parts.outcomes)
    keys = (_part(raw, KeyNotice) for raw in parts.keys)
    return SyncAnswer(
        protocol=parts.protocol,
        lineage=parts.lineage,
        server_time=parts.server_time,
        limits=parts.limits,
        pull=_pull(parts.pull),
        keys=tuple(key for key in keys if key is not None),
        backoff=parts.backoff,
        outcomes=tuple(outcome for outcome in outcomes if outcome is not None),
    )


def _part(raw: Raw, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        return None


def _pull(raw: Raw) -> Pull:
    page = _part(raw, _Page)
    head = _part(raw, dict[str, Raw])
    if page is None or head is None:
        return UNREADABLE_PULL
    known = [change for change in page.changes if _is_known(change)]
    changes = [_part(change, Change) for change in known]
    pull = _part(Raw(msgspec.json.encode({**head, "changes": []})), Pull)
    if pull is None or any(change is None for change in changes):
        return UNREADABLE_PULL
    found = tuple(change for change in changes if change is not None)
    return msgspec.structs.replace(pull, changes=found)


def _is_known(raw: Raw) -> bool:
    """Whether a change is of a kind that is kept here; one that says no kind is a fault instead."""
    named = _part(raw, _Kind)
    return named is None or named.kind in KNOWN_KINDS
