"""Compare snapshots, feed and manifests with what the events project to, from nothing.

Also asks whether each event was allowed for the role of its actor in the state that it met, and
whether each value that is kept is one that some event of its aggregate refers to.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from workmate_server.engine.histories import (
    History,
    UnreadableEventError,
    opened_of,
    read_history,
    walk_streams,
)
from workmate_server.engine.project import Projected, seal
from workmate_server.engine.verify_lifecycle import why_forbidden
from workmate_server.engine.verify_report import Findings
from workmate_server.store import loads, walks
from workmate_server.store.database import Connection
from workmate_shared.tasks.commands import Purge
from workmate_shared.tasks.events import TaskObserved
from workmate_shared.tasks.task import Task

_KEYS = {
    "task_snapshot": ("task_id",),
    "principal": ("principal_id",),
    "credential": ("credential_id",),
    "evidence_manifest": ("task_id", "manifest_id"),
    "feed": ("audience", "kind", "object_id"),
}

Row = Mapping[str, Any]


def check_projections(connection: Connection, tenant_id: str, findings: Findings) -> None:
    """Report events that were not allowed, and rows that are not what the events project to."""
    opened = opened_of(connection, tenant_id)
    for streams in walk_streams(connection, tenant_id):
        projected = Projected()
        histories: dict[str, History] = {}
        for aggregate_id, rows in streams:
            try:
                histories[aggregate_id] = read_history(aggregate_id, rows)
            except UnreadableEventError as error:
                place = f"audit_event seq {error.seq}"
                findings.add(place, "changed", f"it cannot be projected: {error.detail}")
        for history in histories.values():
            _check_lifecycle(history, findings)
            history.project(projected)
        seal(projected, opened)
        stored = walks.projections_of(connection, tenant_id, histories)
        for table, expected in _expected(projected).items():
            _compare(table, stored[table], expected, findings)
        _check_values(connection, tenant_id, histories, findings)
    for table, owner in walks.ownerless(connection, tenant_id):
        findings.add(f"{table} {owner}", "inserted", "the log knows no such aggregate")


def _check_lifecycle(history: History, findings: Findings) -> None:
    for step in history.steps:
        reason = why_forbidden(step.before, step.event, step.after)
        if reason is not None:
            findings.add(f"audit_event seq {step.seq}", "forbidden", reason)


def _expected(rows: Projected) -> dict[str, Iterable[Row]]:
    return {
        "task_snapshot": rows.tasks.values(),
        "principal": rows.principals.values(),
        "credential": rows.credentials.values(),
        "evidence_manifest": rows.manifests.values(),
        "feed": rows.feed.values(),
    }


def _compare(
    table: str, stored: Iterable[Row], expected: Iterable[Row], findings: Findings
) -> None:
    names = _KEYS[table]
    by_key: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in stored:
        by_key[tuple(row[name] for name in names)].append(row)
    for row in expected:
        key = tuple(row[name] for name in names)
        place = f"{table} {' '.join(key)}"
        found = by_key[key].pop() if by_key.get(key) else None
        if found is None:
            findings.add(place, "missing", "events project to it")
            continue
        for column, value in row.items():
            if found[column] != value:
                findings.add(f"{place} {column}", "differs", "not what the events project to")
    for key, rest in by_key.items():
        for _ in rest:
            findings.add(
                f"{table} {' '.join(map(str, key))}", "inserted", "no event projects to it"
            )


def _check_values(
    connection: Connection, tenant_id: str, histories: Mapping[str, History], findings: Findings
) -> None:
    """Report values that nothing refers to, and those of tasks that went without a purge."""
    named = {name: _named(history) for name, history in histories.items()}
    for row in walks.disclosures_of(connection, tenant_id, histories):
        if row["commitment"] not in named[row["aggregate_id"]]:
            place = f"disclosure {row['commitment']} aggregate_id"
            findings.add(place, "inserted", "no event of this aggregate refers to it")
    wanted = {
        commitment: name
        for name, history in histories.items()
        if isinstance(history.steps[-1].after, Task)
        for commitment in named[name] - _purged(history)
    }
    kept = loads.load_disclosures(connection, tenant_id, wanted)
    for commitment in sorted(wanted.keys() - kept.keys()):
        place = f"disclosure {commitment}"
        findings.add(place, "missing", f"no purge of {wanted[commitment]} names it")


def _named(history: History) -> set[str]:
    named = {name for step in history.steps for name in step.event.commitments()}
    state = history.steps[-1].after
    if isinstance(state, Task):
        named.update(name for record in state.manifests for name in record.commitments)
    return named


def _purged(history: History) -> set[str]:
    return {
        name
        for step in history.steps
        if isinstance(step.event, TaskObserved)
        for reading in step.event.readings
        if isinstance(reading, Purge)
        for name in reading.commitments
    }
