"""Compare snapshots, feed and manifests with what the events project to, from nothing.

Also asks whether each event was allowed: for the role of its actor, in the state that it met.
"""

from typing import Any

import msgspec

from workmate_server.engine.project import Projected
from workmate_server.engine.rebuild import project_aggregates
from workmate_server.engine.verify_report import Findings
from workmate_server.store import walks
from workmate_server.store.database import Connection

_KEYS = {
    "task_snapshot": ("task_id",),
    "principal": ("principal_id",),
    "credential": ("credential_id",),
    "evidence_manifest": ("task_id", "manifest_id"),
    "feed": ("audience", "kind", "object_id"),
}


def check_projections(connection: Connection, tenant_id: str, findings: Findings) -> None:
    """Report every projection row that is not what its aggregate's events project to."""
    owners = walks.projection_owners(connection, tenant_id)
    try:
        for aggregate_id, projected in project_aggregates(connection, tenant_id):
            stored = walks.projections_of(connection, tenant_id, aggregate_id)
            for table, rows in _expected(projected).items():
                _compare(table, aggregate_id, stored[table], rows, findings)
                owners.discard((table, aggregate_id))
    except (KeyError, ValueError, AssertionError, msgspec.DecodeError) as error:
        findings.add("audit_event", "changed", f"an event cannot be projected: {error}")
        return
    for table, owner in sorted(owners):
        findings.add(f"{table} {owner}", "inserted", "no event projects to it")


def _expected(rows: Projected) -> dict[str, list[dict[str, Any]]]:
    return {
        "task_snapshot": list(rows.tasks.values()),
        "principal": list(rows.principals.values()),
        "credential": list(rows.credentials.values()),
        "evidence_manifest": list(rows.manifests.values()),
        "feed": list(rows.feed.values()),
    }


def _compare(
    table: str,
    owner: str,
    stored: list[dict[str, Any]],
    expected: list[dict[str, Any]],
    findings: Findings,
) -> None:
    names = _KEYS[table]
    by_key = {tuple(row[name] for name in names): row for row in stored}
    for row in expected:
        key = tuple(row[name] for name in names)
        place = f"{table} {' '.join(key)}"
        found = by_key.pop(key, None)
        if found is None:
            findings.add(place, "missing", f"the events of {owner} project to it")
        else:
            for column, value in row.items():
                if found[column] != value:
                    findings.add(f"{place} {column}", "differs", "not what the events project to")
    for key in by_key:
        findings.add(f"{table} {' '.join(key)}", "inserted", f"no event of {owner} does")
