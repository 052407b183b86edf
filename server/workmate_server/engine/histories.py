"""The events of each aggregate, in order, with the states between them.

`rebuild` projects them and `verify` compares. An event counts as readable only where it follows the
one before it, says the aggregate that its row says, and can be applied to the state that it met.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from workmate_server.engine.project import Opened, Projected, project
from workmate_server.store import loads, walks
from workmate_server.store.database import Connection
from workmate_shared.kernel.command import Event
from workmate_shared.wire.commitment import Disclosure, DisclosureError, open_disclosure
from workmate_shared.wire.intake import decode_event
from workmate_shared.wire.registry import kind_of_event

ROWS_AT_ONCE = 2_000
"""Events held in memory at once, unless one aggregate alone has more."""

Rows = Sequence[Any]


class UnreadableEventError(Exception):
    """An event of the log that cannot be projected: its seq and why."""

    def __init__(self, seq: Any, detail: str) -> None:
        super().__init__(f"audit_event seq {seq}: {detail}")
        self.seq = seq
        self.detail = detail


class Step(Struct, frozen=True):
    """One event at its seq, the state that it met and the one that it left."""

    seq: int
    event: Event
    before: Any
    after: Any


class History(Struct, frozen=True):
    """Everything that happened to one aggregate."""

    aggregate_id: str
    steps: tuple[Step, ...]

    def project(self, rows: Projected) -> None:
        """Add what the events make of the projections."""
        for step in self.steps:
            project(rows, step.before, step.after, step.event, step.seq)


def walk_streams(connection: Connection, tenant_id: str) -> Iterator[list[tuple[Any, Rows]]]:
    """Yield (aggregate id, rows of `audit_event`) for all aggregates of a tenant, many at once."""
    gathered: list[tuple[Any, Rows]] = []
    count = 0
    rows = walks.walk_aggregates(connection, tenant_id)
    for aggregate_id, stream in groupby(rows, key=lambda row: row.aggregate_id):
        found = list(stream)
        gathered.append((aggregate_id, found))
        count += len(found)
        if count >= ROWS_AT_ONCE:
            yield gathered
            gathered, count = [], 0
    if gathered:
        yield gathered


def read_history(aggregate_id: str, rows: Rows) -> History:
    """Return the history in an aggregate's rows; raises UnreadableEventError."""
    steps: list[Step] = []
    state: Any = None
    for row in rows:
        if walks.misfits(loads.EVENTS, row):
            raise UnreadableEventError(row.seq, "the row is no event")
        try:
            event = decode_event(row.type, row.payload)
            _check_place(row.seq, event, aggregate_id, steps)
            before, state = state, kind_of_event(event.type).evolve(state, event)
        except (KeyError, ValueError, msgspec.DecodeError) as error:
            raise UnreadableEventError(row.seq, f"{type(error).__name__}: {error}") from error
        steps.append(Step(row.seq, event, before, state))
    return History(aggregate_id, tuple(steps))


def _check_place(seq: int, event: Event, aggregate_id: str, steps: Sequence[Step]) -> None:
    if event.aggregate_id != aggregate_id:
        raise ValueError(f"it belongs to {event.aggregate_id}")
    if event.aggregate_version != len(steps) + 1:
        raise ValueError(f"version {event.aggregate_version} follows {len(steps)}")
    if steps and seq <= steps[-1].seq:
        raise ValueError(f"it follows seq {steps[-1].seq}")
    if steps and kind_of_event(event.type) is not kind_of_event(steps[0].event.type):
        raise ValueError(f"{event.type} is no event of this aggregate")


def opened_of(connection: Connection, tenant_id: str) -> Opened:
    """Return what opens commitments with the disclosures that still exist and prove themselves."""

    def opened(commitments: Iterable[str]) -> dict[str, Any]:
        rows = loads.load_disclosures(connection, tenant_id, commitments)
        return {name: msgspec.json.decode(row.value) for name, row in rows.items() if opens(row)}

    return opened


def opens(row: Any) -> bool:
    """Whether a row of `disclosure` opens the commitment that it names."""
    if walks.misfits(walks.DISCLOSURES, row):
        return False
    try:
        open_disclosure(row.commitment, Disclosure(row.salt, row.retention_class, row.value))
    except DisclosureError:
        return False
    return True
