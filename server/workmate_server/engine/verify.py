"""Walk the whole log and name everything that does not agree with what was signed.

Headers are checked against the server's keys and each other, leaves against the headers, commands
and events against the leaves, columns against the bytes, projections against the events. What was
cut off the end shows against the tenant's head and its copy beside the keys.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from workmate_server.engine.logkeys import LogKeys
from workmate_server.engine.verify_columns import (
    check_command,
    check_event,
    check_header_columns,
)
from workmate_server.engine.verify_projections import check_projections
from workmate_server.engine.verify_report import Finding, Findings
from workmate_server.store import loads, walks
from workmate_server.store.database import (
    Connection,
    Database,
    DatabaseAwayError,
    DatabaseDamagedError,
)
from workmate_shared.principals.commands import DeviceKey
from workmate_shared.principals.events import CredentialAdded
from workmate_shared.wire.batch import Header, Leaf, decode_header, decode_leaf, header_hash
from workmate_shared.wire.codec import MalformedError
from workmate_shared.wire.commitment import Disclosure, DisclosureError, open_disclosure
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, SignatureError, open_envelope
from workmate_shared.wire.dsse import verify_bytes as verify_signature
from workmate_shared.wire.tree import leaf_hash, tree_root

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


class _Walk(Struct):
    """Where the walk through one tenant's log is."""

    tenant_id: str
    batch: int = 0
    seq: int = 0
    commands: int = 0
    header_hash: str | None = None
    lineage: str | None = None
    versions: dict[str, int] = {}
    device_keys: dict[str, bytes] = {}


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
    walks_done: list[_Walk] = []
    try:
        with database.read() as connection:
            for table, tenant_id in walks.unknown_tenants(connection):
                findings.add(table, "inserted", f"rows of unknown tenant {tenant_id}")
            copies = keys.read_heads()
            for head in loads.load_tenants(connection):
                walk = _verify_tenant(connection, head, public_keys, findings)
                _check_copy(copies.get(head.tenant_id), head, walk, public_keys, findings)
                walks_done.append(walk)
    except (DatabaseDamagedError, DatabaseAwayError) as error:
        findings.add("database file", "damaged", str(error))
    return VerifyReport(
        tenants=len(walks_done),
        batches=sum(walk.batch for walk in walks_done),
        commands=sum(walk.commands for walk in walks_done),
        events=sum(walk.seq for walk in walks_done),
        findings=tuple(findings.found),
    )


def _verify_tenant(
    connection: Connection, head: Any, public_keys: Mapping[str, bytes], findings: Findings
) -> _Walk:
    walk = _Walk(head.tenant_id)
    for row in walks.walk_batches(connection, head.tenant_id):
        header = _check_header(row, walk, public_keys, findings)
        if header is not None:
            leaves = _check_leaves(connection, row, header, walk, findings)
            _check_events(connection, row, header, leaves, walk, findings)
        walk.batch = row.batch
        walk.header_hash = row.header_hash
        walk.lineage = row.lineage
        walk.seq = max(walk.seq, row.last_seq)
    place = f"tenant_head {head.tenant_id}"
    told = (head.batch, head.seq, head.header_hash)
    if told != (walk.batch, walk.seq, walk.header_hash):
        findings.add(
            place, "missing", f"the log ends at batch {walk.batch}, seq {walk.seq}, not {told[:2]}"
        )
    elif walk.lineage is not None and head.lineage != walk.lineage:
        findings.add(place, "changed", "lineage is not that of the newest batch")
    counted = walks.count_rows(connection, head.tenant_id)
    expected = {"command_log": walk.commands, "audit_event": walk.seq}
    for table, number in expected.items():
        if counted[table] != number:
            findings.add(table, "inserted", f"{counted[table]} rows where {number} are signed for")
    for disclosure in walks.walk_disclosures(connection, head.tenant_id):
        _check_disclosure(disclosure, findings)
    check_projections(connection, head.tenant_id, findings)
    return walk


def _check_header(
    row: Any, walk: _Walk, public_keys: Mapping[str, bytes], findings: Findings
) -> Header | None:
    place = f"commit_batch {row.batch}"
    if row.batch != walk.batch + 1:
        findings.add(place, "missing", f"batch {walk.batch + 1} is not there")
    try:
        verify_signature(BATCH_TYPE, row.header, row.keyid, row.signature, public_keys)
        header = decode_header(row.header)
    except SignatureError as error:
        findings.add(place, "changed", f"signature: {error.code}")
        return None
    except MalformedError as error:
        findings.add(place, "changed", f"header: {error}")
        return None
    if header.previous != walk.header_hash:
        findings.add(place, "reordered", "it does not follow the batch before it")
    if header.first_seq != walk.seq + 1:
        findings.add(place, "missing", f"seq {walk.seq + 1} to {header.first_seq - 1}")
    check_header_columns(place, row, header, header_hash(row.header), findings)
    return header


def _check_leaves(
    connection: Connection, row: Any, header: Header, walk: _Walk, findings: Findings
) -> list[tuple[Any, Leaf]]:
    commands = walks.commands_of_batch(connection, walk.tenant_id, row.batch)
    walk.commands += header.leaf_count
    place = f"command_log batch {row.batch}"
    indices = [command.leaf_index for command in commands]
    if indices != list(range(header.leaf_count)):
        absent = sorted(set(range(header.leaf_count)) - set(indices))
        findings.add(place, "missing" if absent else "inserted", f"leaves {absent or indices}")
    hashes = [leaf_hash(command.leaf) for command in commands]
    if not hashes or tree_root(hashes).hex() != header.root:
        findings.add(place, "changed", "the leaves are not those that were signed")
    leaves = []
    for command in commands:
        try:
            leaf = decode_leaf(command.leaf)
        except MalformedError as error:
            findings.add(f"{place} leaf {command.leaf_index}", "changed", f"leaf: {error}")
            continue
        leaves.append((command, leaf))
        check_command(
            f"{place} leaf {command.leaf_index}", command, leaf, walk.device_keys, findings
        )
    return leaves


def _check_events(
    connection: Connection,
    row: Any,
    header: Header,
    leaves: Sequence[tuple[Any, Leaf]],
    walk: _Walk,
    findings: Findings,
) -> None:
    stored = walks.events_between(connection, walk.tenant_id, header.first_seq, header.last_seq)
    by_seq = {event.seq: event for event in stored}
    signed = {step.seq: (command, leaf, step) for command, leaf in leaves for step in leaf.events}
    for seq in range(header.first_seq, header.last_seq + 1):
        place = f"audit_event seq {seq}"
        event, part = by_seq.get(seq), signed.get(seq)
        if event is None:
            findings.add(place, "missing", f"batch {row.batch} signs for it")
        elif part is None:
            findings.add(place, "inserted", "no decision of its batch signs for it")
        else:
            command, leaf, step = part
            decoded = check_event(place, event, command, leaf, step, findings)
            expected = walk.versions.get(event.aggregate_id, 0) + 1
            if step.version != expected:
                findings.add(place, "missing", f"version {step.version} follows {expected - 1}")
            walk.versions[event.aggregate_id] = step.version
            if isinstance(decoded, CredentialAdded):
                _learn_key(decoded, walk)


def _learn_key(event: CredentialAdded, walk: _Walk) -> None:
    if isinstance(event.credential, DeviceKey):
        key = bytes.fromhex(event.credential.public_key)
        walk.device_keys[event.credential.credential_id] = key


def _check_disclosure(row: Any, findings: Findings) -> None:
    try:
        open_disclosure(row.commitment, Disclosure(row.salt, row.retention_class, row.value))
    except DisclosureError as error:
        findings.add(f"disclosure {row.commitment}", "changed", error.detail)


def _check_copy(
    copy: bytes | None,
    head: Any,
    walk: _Walk,
    public_keys: Mapping[str, bytes],
    findings: Findings,
) -> None:
    if copy is None:
        return
    place = f"tenant_head {head.tenant_id}"
    try:
        envelope = msgspec.json.decode(copy, type=Envelope)
        header = decode_header(open_envelope(envelope, BATCH_TYPE, public_keys))
    except (msgspec.DecodeError, SignatureError, MalformedError) as error:
        findings.add(place, "changed", f"the copy of its newest header: {error}")
        return
    if header.lineage == head.lineage and header.batch > walk.batch:
        findings.add(
            place,
            "missing",
            f"batch {header.batch} was signed, the log ends at {walk.batch}",
        )
