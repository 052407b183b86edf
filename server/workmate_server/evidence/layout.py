"""Where blobs and uploads lie, in a folder and in a bucket alike.

    blobs/<tenant>/<first two digits>/<hash>
    uploads/<upload id>

The same names everywhere make moving from a folder to a bucket a plain copy. Ids and hashes are
checked before they become part of a path, so that none can lead out of its place or into another
tenant's.
"""

import re

from workmate_server.telemetry.files import checked_name

UPLOADS = "uploads"

_HASH = re.compile(r"[0-9a-f]{64}")
_FAN_OUT = 2


def is_hash(name: str) -> bool:
    """Whether a name is a BLAKE3 hash as we write it: 64 lower-case hex digits."""
    return _HASH.fullmatch(name) is not None


def tenant_path(tenant_id: str) -> str:
    """Return where a tenant's blobs are. Raises ValueError for an id that is no name."""
    return f"blobs/{checked_name(tenant_id)}"


def blob_path(tenant_id: str, blob_hash: str) -> str:
    """Return where a blob is. Raises ValueError for an id or hash that is none."""
    if not is_hash(blob_hash):
        raise ValueError(f"not a BLAKE3 hash: {blob_hash[:70]!r}")
    return f"{tenant_path(tenant_id)}/{blob_hash[:_FAN_OUT]}/{blob_hash}"


def upload_path(upload_id: str) -> str:
    """Return where an unfinished upload is. Raises ValueError for an id that is no name."""
    return f"{UPLOADS}/{checked_name(upload_id)}"


def clip_range(start: int, stop: int | None, size: int) -> tuple[int, int]:
    """Cut a range to what there is, as a slice does. Raises ValueError for a negative bound."""
    end = size if stop is None else stop
    if start < 0 or end < 0:
        raise ValueError("a range begins and ends at zero or above")
    return min(start, size), min(end, size)
