"""The server's own rules: what it does by itself when an event calls for it.

A rule looks at the present state first and, if it still applies, issues one command as the
principal `system` under the key `<rule>/<event id>`; the engine states the version. Its row is
settled by any recorded outcome, or when the rule no longer applies.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from workmate_server.engine.blocking import RunBlocking
from workmate_server.engine.engine import Engine, OverloadedError, StoppingError
from workmate_server.engine.model import Decided, Submission
from workmate_server.engine.subscribers import AUTOMATIC_APPROVAL_KIND, gets
from workmate_server.engine.workspace import SYSTEM_ID, proof_files
from workmate_server.outbox.carriers import Attempt
from workmate_server.ports import Clock
from workmate_server.store import loads
from workmate_server.store.database import Connection, Database
from workmate_server.store.deliveries import Due
from workmate_server.store.outbox import Subscription
from workmate_shared.kernel.command import COMMAND_SCHEMA, Actor
from workmate_shared.kernel.instants import format_instant
from workmate_shared.kernel.table import Role
from workmate_shared.tasks import table
from workmate_shared.tasks.commands import ApproveProof
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.proof import Facts, Finding, evaluate
from workmate_shared.tasks.task import ManifestRecord, Task
from workmate_shared.tasks.values import Fixes, ManifestPersonal, SitePosition
from workmate_shared.wire.codec import encode
from workmate_shared.wire.fingerprint import request_fingerprint
from workmate_shared.wire.intake import Message

AUTOMATIC_APPROVAL = "automatic_approval"
RULE_PREFIX = "rule:"

_STORED = "evidence.stored"
_UNRECORDED_FINAL = frozenset({"idempotency_key_reused", "not_found"})


@dataclass(frozen=True, kw_only=True)
class AutomaticApproval:
    """The carrier of `rule:automatic_approval`: approve what its policy lets the system approve.

    A proof that lacks nothing but files waits for them: the end of an upload, or the event that a
    file was stored, brings the rule back. Any other finding is recorded once, as the outcome of trying when it was submitted.
    """

    in_order = False

    database: Database
    engine: Engine
    fingerprint_key: bytes
    clock: Clock
    run_blocking: RunBlocking

    async def deliver(self, subscription: Subscription, due: Due) -> Attempt:
        """Apply the rule to one event; see `Carrier.deliver`."""
        if not gets(AUTOMATIC_APPROVAL_KIND, due.type):
            return Attempt(delivered=True)
        submission = await self.run_blocking(self._look, subscription.tenant_id, due)
        if submission is None:
            return Attempt(delivered=True)
        try:
            (decided,) = await self.engine.submit(subscription.tenant_id, [submission])
        except (OverloadedError, StoppingError):
            return Attempt(delivered=False, error="the engine takes no command now")
        return _attempt(decided)

    def _look(self, tenant_id: str, due: Due) -> Submission | None:
        """Return the command that the event calls for now, or None."""
        with self.database.read() as connection:
            found = loads.load_snapshots(
                connection, tenant_id, "task", [due.aggregate_id], lock=False
            )
            if due.aggregate_id not in found:
                return None
            task = msgspec.json.decode(found[due.aggregate_id], type=Task)
            record = task.manifest(task.current_manifest_id)
            if (
                record is None
                or task.state != table.PROOF_PENDING
                or task.proof_policy.validation != "automatic"
            ):
                return None
            findings = _findings(connection, task, record)
            head = loads.load_head(connection, tenant_id)
        lacks = {finding.code for finding in findings}
        if lacks and (due.type == _STORED or lacks == {"file_missing"}):
            return None
        return self._approval(task, record, due, head.lineage)

    def _approval(self, task: Task, record: ManifestRecord, due: Due, lineage: str) -> Submission:
        command = ApproveProof(
            schema_version=COMMAND_SCHEMA,
            tenant_id=task.tenant_id,
            aggregate_id=task.task_id,
            actor=Actor(SYSTEM_ID, Role.SYSTEM),
            command_id=f"{AUTOMATIC_APPROVAL}/{due.event_id}",
            lineage=lineage,
            occurred_at=format_instant(self.clock.now()),
            expected_version=task.version,
            manifest_id=record.manifest_id,
        )
        return Submission(
            message=Message(command, {}),
            payload=encode(command),
            # The version is not part of it: a relay that crashed asks again at another one.
            fingerprint=request_fingerprint(
                self.fingerprint_key, command.name, task.task_id, None, {"event": due.event_id}
            ),
            fill_version=True,
        )


def _findings(connection: Connection, task: Task, record: ManifestRecord) -> tuple[Finding, ...]:
    """Evaluate the task's present proof against what is held of it now."""
    tenant_id = task.tenant_id
    data = loads.load_manifest(connection, tenant_id, task.task_id, record.manifest_id)
    manifest = msgspec.json.decode(data or b"", type=Manifest)
    named = (manifest.personal, manifest.position, task.position)
    rows = loads.load_disclosures(connection, tenant_id, (name for name in named if name))

    def opened(commitment: str | None, kind: Any) -> Any:
        row = rows.get(commitment or "")
        return None if row is None else msgspec.json.decode(row.value, type=kind)

    facts = Facts(
        personal=opened(manifest.personal, ManifestPersonal) or ManifestPersonal(),
        fixes=opened(manifest.position, Fixes) or {},
        blobs=proof_files(connection, tenant_id, record),
        site=opened(task.position, SitePosition),
        policy_version=task.policy_version,
        submitted_at=record.submitted_at,
    )
    return evaluate(task.proof_policy, manifest, facts)


def _attempt(decided: Decided) -> Attempt:
    if decided.receipt is not None or decided.code in _UNRECORDED_FINAL:
        code = f" {decided.code}" if decided.code else ""
        return Attempt(delivered=True, response=f"{decided.status}{code}")
    return Attempt(delivered=False, error=decided.code)
