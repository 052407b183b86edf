"""Compare the log with the copies of its newest headers that lie beside the keys.

A copy that carries our own signature proves what was once committed. If the log does not contain
it, the database is older than what was signed (somebody brought back a backup) or is another one;
going on would give two histories one number. Copies of an earlier life of the log prove nothing of
this one.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.store import loads
from workmate_server.store.database import Connection, Database
from workmate_shared.wire.batch import Header, decode_header, header_hash
from workmate_shared.wire.codec import MalformedError
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, SignatureError, open_envelope

HeadFault = Literal["log_behind_head", "head_copy_damaged"]


class Disagreement(Struct, frozen=True):
    """One copy that the log does not contain, or that cannot be read."""

    tenant_id: str
    fault: HeadFault
    detail: str


def log_public_keys(keys: KeyFolder) -> dict[str, bytes]:
    """Return the public keys that may have signed the log, by key id."""
    return {**keys.retired_log_keys, keys.log_key.key_id: keys.log_key.public_key}


def compare_heads(database: Database, keys: KeyFolder) -> list[Disagreement]:
    """Return every disagreement between the copies and the log.

    The copies are read first: one is written after its commit, so that a process which commits
    meanwhile causes no false alarm.
    """
    copies = keys.read_heads()
    public_keys = log_public_keys(keys)
    with database.read() as connection:
        found = [
            _compare(connection, tenant_id, copy, public_keys)
            for tenant_id, copy in sorted(copies.items())
        ]
    return [disagreement for disagreement in found if disagreement is not None]


def _compare(
    connection: Connection, tenant_id: str, copy: bytes, public_keys: Mapping[str, bytes]
) -> Disagreement | None:
    try:
        envelope = msgspec.json.decode(copy, type=Envelope)
        payload = open_envelope(envelope, BATCH_TYPE, public_keys)
        header = decode_header(payload)
    except (msgspec.DecodeError, SignatureError, MalformedError) as error:
        detail = f"the copied header of tenant {tenant_id} cannot be read: {error}"
        return Disagreement(tenant_id, "head_copy_damaged", detail)
    missing = _missing(connection, tenant_id, header, header_hash(payload))
    return None if missing is None else Disagreement(tenant_id, "log_behind_head", missing)


def _missing(connection: Connection, tenant_id: str, header: Header, hashed: str) -> str | None:
    """Return what the log lacks of a header that was signed, or None where it has it."""
    head = loads.load_head(connection, tenant_id)
    if head is None:
        return f"batch {header.batch} of tenant {tenant_id} was signed, and the tenant is not there"
    if head.lineage != header.lineage:
        return None
    if header.batch > head.batch:
        return f"batch {header.batch} was signed, and the log ends at batch {head.batch}"
    row = loads.load_batch(connection, tenant_id, header.batch)
    if row is None or row.header_hash != hashed:
        return f"batch {header.batch} was signed with other content than the log has"
    return None
