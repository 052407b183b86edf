"""Ask of every file that the log calls stored whether it is still known, and by whom it came.

The rows about files are no projections, yet the log names them: `evidence.stored` was committed only
because they were there, and only a purge that the log tells of takes them away.
"""

import msgspec

from workmate_server.engine.verify_report import Findings
from workmate_server.store import loads, walks
from workmate_server.store.database import Connection
from workmate_shared.tasks.commands import Purge
from workmate_shared.tasks.events import EvidenceStored, TaskObserved
from workmate_shared.wire.intake import decode_event

AT_ONCE = 500
"""How many files are looked up with one statement."""

_TYPES = tuple(str(kind.__struct_config__.tag) for kind in (EvidenceStored, TaskObserved))


def check_evidence(connection: Connection, tenant_id: str, findings: Findings) -> None:
    """Report every stored file whose row, or whose uploader, is not known any more."""
    stored: dict[tuple[str, str, str], None] = {}
    purged: set[str] = set()
    for row in walks.walk_events_of(connection, tenant_id, _TYPES):
        try:
            event = decode_event(row.type, row.payload)
        except (KeyError, ValueError, msgspec.DecodeError):
            continue  # The walk through the log has named it.
        if isinstance(event, EvidenceStored):
            stored |= {(name, event.aggregate_id, event.actor.id): None for name in event.hashes}
        elif isinstance(event, TaskObserved):
            purged |= {
                name
                for reading in event.readings
                if isinstance(reading, Purge)
                for name in reading.hashes
            }
    names = sorted({name for name, _, _ in stored})
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        held = loads.load_blobs(connection, tenant_id, part)
        links = loads.load_uploaders(connection, tenant_id, part)
        for name in part:
            row = held.get(name)
            if row is None:
                findings.add(f"blob {name}", "missing", "the log says that it is stored")
            elif (row.purged_at is not None) != (name in purged):
                findings.add(f"blob {name} purged_at", "changed", "the log tells of no such purge")
        chosen = set(part)
        for name, task_id, principal_id in stored:
            if name in chosen and name in held and (name, principal_id) not in links:
                place = f"blob_link {name} {task_id} {principal_id}"
                findings.add(place, "missing", "the log says who stored it")
