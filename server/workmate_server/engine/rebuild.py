"""Make the projections again from the log alone, aggregate by aggregate."""

from workmate_server.engine.histories import opened_of, read_history, walk_streams
from workmate_server.engine.project import Projected, seal
from workmate_server.store import appends, loads
from workmate_server.store.database import Database


def rebuild(database: Database) -> int:
    """Drop the projections of every tenant and make them again; return how many aggregates.

    One transaction: whoever reads meanwhile sees the old rows, and a failure leaves them. Raises
    UnreadableEventError for a log that cannot be projected.
    """
    count = 0
    with database.write() as connection:
        appends.clear_projections(connection)
        for head in loads.load_tenants(connection):
            for streams in walk_streams(connection, head.tenant_id):
                projected = Projected()
                for aggregate_id, rows in streams:
                    read_history(aggregate_id, rows).project(projected)
                seal(projected, opened_of(connection, head.tenant_id))
                appends.write_projections(database, connection, head.tenant_id, projected)
                count += len(streams)
    return count
