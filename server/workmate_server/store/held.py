"""Which files are held, read page by page: what a check of the bytes walks through."""

from collections.abc import Iterator

from sqlalchemy import Connection, select

from workmate_server.store.tables import BlobRow, table_of

PAGE = 500

_BLOBS = table_of(BlobRow)


def walk_held(connection: Connection, tenant_id: str) -> Iterator[tuple[str, int]]:
    """Yield hash and size in bytes of every file of a tenant that has not been purged, by hash."""
    c = _BLOBS.c
    page = (
        select(c.hash, c.size)
        .where(c.tenant_id == tenant_id, c.purged_at.is_(None))
        .order_by(c.hash)
        .limit(PAGE)
    )
    rows = connection.execute(page).all()
    while rows:
        yield from ((row.hash, row.size) for row in rows)
        rows = connection.execute(page.where(c.hash > rows[-1].hash)).all()
