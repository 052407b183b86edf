"""Make the projections again from the log alone, aggregate by aggregate."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec

from workmate_server.engine.project import Projected, project
from workmate_server.store import appends, loads, walks
from workmate_server.store.database import Connection, Database
from workmate_server.store.tables import (
    CredentialRow,
    EvidenceManifest,
    FeedRow,
    PrincipalRow,
    TaskSnapshot,
)
from workmate_shared.wire.intake import decode_event
from workmate_shared.wire.registry import kind_of_event

AGGREGATES_PER_WRITE = 200
_TABLES = (TaskSnapshot, PrincipalRow, CredentialRow, EvidenceManifest, FeedRow)


def project_aggregates(connection: Connection, tenant_id: str) -> Iterator[tuple[str, Projected]]:
    """Yield (aggregate id, rows) for every aggregate of a tenant, projected from nothing.

    Raises KeyError, ValueError or msgspec.ValidationError for an event that cannot be read.
    """
    rows = walks.walk_aggregates(connection, tenant_id)

    def opened(commitment: str) -> Any:
        row = loads.load_disclosures(connection, tenant_id, [commitment]).get(commitment)
        return None if row is None else msgspec.json.decode(row.value)

    for aggregate_id, events in groupby(rows, key=lambda row: row.aggregate_id):
        projected = Projected()
        state: Any = None
        for row in events:
            event = decode_event(row.type, row.payload)
            before, state = state, kind_of_event(row.type).evolve(state, event)
            project(projected, before, state, event, row.seq, opened)
        yield aggregate_id, projected


def rebuild(database: Database) -> int:
    """Drop the projections of every tenant and make them again; return how many aggregates.

    One transaction: whoever reads meanwhile sees the old rows, and a failure leaves them.
    """
    count = 0
    with database.write() as connection:
        for head in loads.load_tenants(connection):
            appends.clear_projections(connection, head.tenant_id, _TABLES)
            for _, projected in project_aggregates(connection, head.tenant_id):
                appends.write_projections(database, connection, head.tenant_id, projected)
                count += 1
    return count
