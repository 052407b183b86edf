"""How evidence files lie in their table, within a transaction."""

from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from workmate_client.journal.rows import EvidenceItem
from workmate_client.journal.tables import EVIDENCE_ITEM
from workmate_shared.tasks.values import Fix


def insert_evidence(connection: sa.Connection, item: EvidenceItem) -> bool:
    """List a file within a transaction; False if task and hash are listed already."""
    found = (EVIDENCE_ITEM.c.sealed_name == item.sealed_name) & (EVIDENCE_ITEM.c.kind == "found")
    connection.execute(sa.delete(EVIDENCE_ITEM).where(found))
    top = connection.execute(sa.select(sa.func.max(EVIDENCE_ITEM.c.added_order))).scalar()
    values = msgspec.structs.asdict(item)
    values["fix"] = msgspec.json.encode(item.fix).decode() if item.fix else None
    values["remarks"] = msgspec.json.encode(item.remarks).decode()
    values["added_order"] = (top or 0) + 1
    statement = insert(EVIDENCE_ITEM).values(**values)
    statement = statement.on_conflict_do_nothing(index_elements=["task_id", "hash"])
    return connection.execute(statement).rowcount == 1


def read_item(values: dict[str, Any]) -> EvidenceItem:
    """Return a row of the table as a value."""
    del values["added_order"]
    fix, remarks = values.pop("fix"), values.pop("remarks")
    return EvidenceItem(
        fix=msgspec.json.decode(fix, type=Fix) if fix else None,
        remarks=msgspec.json.decode(remarks, type=tuple[str, ...]),
        **values,
    )
