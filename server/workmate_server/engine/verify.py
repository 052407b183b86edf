"""Walk the whole log and name everything that does not agree with what was signed.

Headers are checked against the server's keys and each other, leaves against the headers, commands
and events against the leaves, columns against the bytes, projections against the events. What was
cut off the end shows against the tenant's head and its copy beside the keys.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from workmate_server.engine.histories import opens
from workmate_server.engine.logkeys import LogKeys
from workmate_server.engine.verify_evidence import check_evidence
from workmate_server.engine.verify_log import LogWalk
from workmate_server.engine.verify_projections import check_projections
from workmate_server.engine.verify_report import Finding, Findings
from workmate_server.store import loads, walks
from workmate_server.store.database import (
    Connection,
    Database,
    DatabaseAwayError,
    DatabaseDamagedError,
)
from workmate_shared.wire.batch import Header, decode_header, header_hash
from workmate_shared.wire.codec import MalformedError
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, SignatureError, open_envelope

MAX_FINDINGS = 1000


class VerifyReport(Struct, frozen=True):
    """What was walked and what was found; `findings` is empty when everything agrees."""

    tenants: int
    batches: int
    commands: int
    events: int
    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify(database: Database, keys: LogKeys, public_keys: Mapping[str, bytes]) -> VerifyReport:
    """Verify the logs of all tenants.

    `public_keys` are the server's own log keys by id, the retired ones too. A damaged database file
    is reported as that, and nothing after it is trusted.
    """
    damage = database.check()
    if damage:
        found = tuple(Finding("database file", "damaged", text) for text in damage)
        return VerifyReport(0, 0, 0, 0, found)
    findings = Findings(MAX_FINDINGS)
    done: list[LogWalk] = []
    # Before the snapshot of the database: a copy is written after its commit, never ahead of it.
    copies = keys.read_heads()
    try:
        with database.read() as connection:
            for table, tenant_id in walks.unknown_tenants(connection):
                findings.add(table, "inserted", f"rows of unknown tenant {tenant_id}")
            for head in loads.load_tenants(connection):
                place = f"tenant_head {head.tenant_id}"
                if not findings.misfits(place, walks.misfits(loads.HEADS, head)):
                    copy = _open_copy(
                        place, copies.pop(head.tenant_id, None), public_keys, findings
                    )
                    done.append(_verify_tenant(connection, head, copy, public_keys, findings))
            for tenant_id in sorted(copies):
                findings.add(f"tenant_head {tenant_id}", "missing", "the server signed its log")
    except (DatabaseDamagedError, DatabaseAwayError) as error:
        findings.add("database file", "damaged", str(error))
    return VerifyReport(
        tenants=len(done),
        batches=sum(walk.batch for walk in done),
        commands=sum(walk.commands for walk in done),
        events=sum(walk.seq for walk in done),
        findings=tuple(findings.found),
    )


def _verify_tenant(
    connection: Connection,
    head: Any,
    copy: tuple[Header, str] | None,
    public_keys: Mapping[str, bytes],
    findings: Findings,
) -> LogWalk:
    walk = LogWalk(connection, head.tenant_id, public_keys, findings)
    walk.run(watched=copy[0].batch if copy is not None else 0)
    ends = {
        "batch": (head.batch, walk.batch),
        "seq": (head.seq, walk.seq),
        "header_hash": (head.header_hash, walk.header_hash),
        "lineage": (head.lineage, walk.lineage or head.lineage),
    }
    for column, (told, walked) in ends.items():
        if told != walked:
            place = f"tenant_head {head.tenant_id} {column}"
            findings.add(place, "missing", f"the log ends at {walked}, not {told}")
    if head.batch > walk.batch:
        place = f"commit_batch {walk.batch + 1}"
        findings.add(place, "missing", f"the tenant's head names batch {head.batch}")
    if copy is not None:
        _check_copy(*copy, walk, findings)
    for row in walks.walk_disclosures(connection, head.tenant_id):
        if not opens(row):
            place = f"disclosure {row.commitment}"
            findings.add(place, "changed", "it does not open its commitment")
    check_projections(connection, head.tenant_id, findings)
    check_evidence(connection, head.tenant_id, findings)
    return walk


def _open_copy(
    place: str, copy: bytes | None, public_keys: Mapping[str, bytes], findings: Findings
) -> tuple[Header, str] | None:
    """Return the header in the copy that lies beside the keys, and its hash."""
    if copy is None:
        return None
    try:
        envelope = msgspec.json.decode(copy, type=Envelope)
        signed = open_envelope(envelope, BATCH_TYPE, public_keys)
        return decode_header(signed), header_hash(signed)
    except (msgspec.DecodeError, SignatureError, MalformedError) as error:
        findings.add(place, "changed", f"the copy of its newest header: {error}")
        return None


def _check_copy(header: Header, hashed: str, walk: LogWalk, findings: Findings) -> None:
    """Report a header that the server signed and its log does not contain."""
    if header.lineage in walk.left or walk.watched_hash == hashed:
        return
    place = f"commit_batch {header.batch}"
    if walk.watched_hash is None:
        findings.add(place, "missing", f"it was signed, and the log ends at batch {walk.batch}")
    else:
        findings.add(place, "changed", "another one of this number was signed before")
