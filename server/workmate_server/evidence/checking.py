"""Hash again what is held, and name every file whose bytes are gone or are others."""

from blake3 import blake3

from workmate_server.engine.verify_report import Findings
from workmate_server.ports import BlobMissingError, BlobStore, BlobStoreUnavailableError
from workmate_server.store import loads
from workmate_server.store.database import Database
from workmate_server.store.held import walk_held


def check_held_bytes(database: Database, blobs: BlobStore, findings: Findings) -> int:
    """Report every held file that is missing or changed; return how many were looked at.

    The bytes are read one file after the other and never kept. Blocks, for as long as it takes to
    read everything once.
    """
    count = 0
    with database.read() as connection:
        tenants = [head.tenant_id for head in loads.load_tenants(connection)]
    for tenant_id in tenants:
        with database.read() as connection:
            held = list(walk_held(connection, tenant_id))
        for name, size in held:
            count += 1
            _check(blobs, tenant_id, name, size, findings)
    return count


def _check(blobs: BlobStore, tenant_id: str, name: str, size: int, findings: Findings) -> None:
    place = f"blob {name}"
    hasher, read = blake3(), 0
    try:
        for chunk in blobs.open_range(tenant_id, name):
            hasher.update(chunk)
            read += len(chunk)
    except BlobMissingError:
        findings.add(place, "missing", "its bytes are not held")
    except BlobStoreUnavailableError as error:
        findings.add(place, "damaged", f"its bytes cannot be read: {error}")
    else:
        if hasher.hexdigest() != name:
            findings.add(place, "changed", "its bytes have another hash")
        elif read != size:
            findings.add(f"{place} size", "changed", f"{read} bytes are held")
