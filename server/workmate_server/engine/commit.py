"""Decide and commit one batch of one tenant in one transaction.

Look the keys up, lock the snapshots, decide in order, lock the tenant's head last, number, build the
tree, sign, verify, insert. Because the head is locked last, `seq` is free of gaps and ordered by
commit. Nothing is answered before the transaction has ended.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workmate_server.engine.answers import replay_stored, retry_with
from workmate_server.engine.model import Decided, LoggedEvent, Submission
from workmate_server.engine.project import Projected, project, seal
from workmate_server.engine.subscribers import gets
from workmate_server.engine.workspace import Workspace
from workmate_server.store import appends, loads
from workmate_server.store.database import Connection, Database
from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import (
    Committed,
    Decision,
    Refusal,
    Retry,
    Unchanged,
    refuse,
)
from workmate_shared.principals.events import CredentialAdded
from workmate_shared.tasks.task import Task
from workmate_shared.wire.batch import (
    Leaf,
    LeafEvent,
    Receipt,
    build_batch,
    command_hash,
    encode_header,
    encode_leaf,
    header_hash,
    make_receipts,
    payload_hash,
)
from workmate_shared.wire.codec import encode
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.dsse import BATCH_TYPE, make_envelope, sign_bytes, verify_bytes
from workmate_shared.wire.intake import Disclosures
from workmate_shared.wire.registry import kind_of_command
from workmate_shared.wire.schemas import validate_payload


class Signer(Struct, frozen=True):
    """The key that signs headers now: its id, its seed and its public key (32 bytes each)."""

    key_id: str
    seed: bytes
    public_key: bytes


class _Draft(Struct, kw_only=True):
    """A decided submission before it is numbered."""

    submission: Submission
    status: str
    code: str | None
    details: Mapping[str, Any]
    version: int
    events: list[tuple[Event, bytes, Any, Any]]
    kept: Disclosures


class Commit:
    """One transaction for one batch; `answers` maps each submission's position to its outcome."""

    def __init__(
        self, database: Database, connection: Connection, signer: Signer, tenant_id: str, now: str
    ) -> None:
        self._database = database
        self._connection = connection
        self._signer = signer
        self._tenant_id = tenant_id
        self._now = now
        self._drafts: list[_Draft] = []
        self._first: dict[loads.Key, int] = {}
        self._places: dict[int, tuple[int, bool]] = {}
        self.answers: dict[int, Decided] = {}
        self.newest_seq: int | None = None

    def run(self, submissions: Sequence[Submission]) -> list[Decided]:
        """Decide and write the batch; return the outcomes in order. The caller commits."""
        head = loads.load_head(self._connection, self._tenant_id)
        keys = {submission.key for submission in submissions}
        known = loads.load_commands(self._connection, self._tenant_id, keys)
        fresh = [s for s in submissions if s.key not in known]
        replayed = replay_stored(self._connection, self._tenant_id, known.values())
        self._workspace = Workspace(
            self._connection, self._tenant_id, head.lineage, self._now, fresh
        )
        for position, submission in enumerate(submissions):
            row = known.get(submission.key)
            if row is None:
                self._decide_fresh(position, submission)
            elif row.fingerprint != submission.fingerprint:
                self.answers[position] = retry_with("idempotency_key_reused", submission)
            else:
                self.answers[position] = replayed[submission.key]
        if self._drafts:
            self._append()
        return [self.answers[position] for position in range(len(submissions))]

    def _decide_fresh(self, position: int, submission: Submission) -> None:
        earlier = self._first.get(submission.key)
        if earlier is not None:
            same = self._drafts[earlier].submission.fingerprint == submission.fingerprint
            if same:
                self._places[position] = (earlier, True)
            else:
                self.answers[position] = retry_with("idempotency_key_reused", submission)
            return
        workspace = self._workspace
        submission = self._with_version(submission)
        command = submission.message.command
        lifecycle = kind_of_command(command.name).lifecycle
        state = workspace.state(command)
        decision = self._unless_taken(
            lifecycle.decide(state, command, workspace.context(submission))
        )
        if isinstance(decision, Retry):
            self.answers[position] = Decided(
                command_id=command.command_id,
                status="retry",
                aggregate_type=lifecycle.table.aggregate,
                aggregate_id=command.aggregate_id,
                code=decision.code,
                details=decision.details,
                blocked_by=decision.blocked_by,
                command=submission.payload,
            )
            return
        self._first[submission.key] = len(self._drafts)
        self._places[position] = (len(self._drafts), False)
        self._drafts.append(self._draft(submission, state, decision))
        workspace.ended(command, decision.status)

    def _unless_taken(self, decision: Decision) -> Decision:
        """Refuse a credential whose id belongs to another principal.

        An id names one credential in its tenant, which the aggregate alone cannot know.
        """
        for event in decision.events if isinstance(decision, Committed) else ():
            if isinstance(event, CredentialAdded):
                name = event.credential.credential_id
                if self._workspace.credential_owner(name) not in (None, event.aggregate_id):
                    return refuse(Refusal("credential_exists", {"credential_id": name}))
        return decision

    def _with_version(self, submission: Submission) -> Submission:
        command = submission.message.command
        state = self._workspace.state(command)
        if not submission.fill_version or state is None:
            return submission
        filled = replace(command, expected_version=state.version)
        message = replace(submission.message, command=filled)
        return replace(submission, message=message, payload=encode(filled))

    def _draft(self, submission: Submission, state: Any, decision: Decision) -> _Draft:
        command = submission.message.command
        manifest = submission.message.manifest
        if isinstance(decision, Committed):
            events: tuple[Event, ...] = decision.events
        else:
            events = () if isinstance(decision, Unchanged | Retry) else decision.annotations
        evolve = kind_of_command(command.name).evolve
        steps: list[tuple[Event, bytes, Any, Any]] = []
        for event in events:
            payload = encode(event)
            validate_payload(event.type, payload)
            before, state = state, evolve(state, event)
            steps.append((event, payload, before, state))
            self._workspace.applied(command, event, state)
        if manifest is not None and events:
            self._workspace.remember(command.aggregate_id, manifest)
        kept = _kept_values(submission, events)
        self._workspace.kept(kept)
        version = state.version if state is not None else 0
        details: Mapping[str, Any] = (
            {"events": [event.type for event in events]}
            if isinstance(decision, Committed)
            else decision.details
        )
        return _Draft(
            submission=submission,
            status=decision.status,
            code=None if isinstance(decision, Committed) else decision.code,
            details={**details, "version": version},
            version=version,
            events=steps,
            kept=kept,
        )

    def _append(self) -> None:
        head = loads.load_head(self._connection, self._tenant_id, lock=True)
        number, seq = head.batch + 1, head.seq
        projected = Projected()
        leaves: list[bytes] = []
        logged: list[list[LoggedEvent]] = []
        event_rows: list[dict[str, Any]] = []
        for index, draft in enumerate(self._drafts):
            steps: list[LoggedEvent] = []
            for event, payload, before, after in draft.events:
                seq += 1
                steps.append(LoggedEvent(seq, event.aggregate_version, event.type, payload))
                event_rows.append(_event_row(event, payload, seq, number, index, after))
                project(projected, before, after, event, seq)
            logged.append(steps)
            leaves.append(encode_leaf(_leaf(draft, steps, head.lineage)))
        header, _, paths = build_batch(
            leaves,
            tenant_id=self._tenant_id,
            lineage=head.lineage,
            batch=number,
            previous=head.header_hash,
            seqs=range(head.seq + 1, seq + 1),
            server_time=self._now,
        )
        header_bytes = encode_header(header)
        keyid, signature = sign_bytes(BATCH_TYPE, header_bytes, self._signer.seed)
        trusted = {self._signer.key_id: self._signer.public_key}
        verify_bytes(BATCH_TYPE, header_bytes, keyid, signature, trusted)
        hashed = header_hash(header_bytes)
        appends.append_log(
            self._connection,
            [
                _command_row(draft, steps, leaf, number, index, head.lineage)
                for index, (draft, steps, leaf) in enumerate(
                    zip(self._drafts, logged, leaves, strict=True)
                )
            ],
            event_rows,
            {
                "tenant_id": self._tenant_id,
                "batch": number,
                "lineage": head.lineage,
                "header": header_bytes,
                "keyid": keyid,
                "signature": signature,
                "header_hash": hashed,
                "first_seq": header.first_seq,
                "last_seq": header.last_seq,
                "leaf_count": header.leaf_count,
                "server_time": header.server_time,
            },
        )
        self._write_beside(projected, event_rows)
        appends.move_head(
            self._connection, self._tenant_id, seq=seq, batch=number, header_hash=hashed
        )
        envelope = make_envelope(BATCH_TYPE, header_bytes, keyid, signature)
        self.newest_seq = seq
        self._answer(make_receipts(leaves, paths, envelope), logged)

    def _write_beside(self, projected: Projected, event_rows: list[dict[str, Any]]) -> None:
        seal(projected, self._workspace.opened_values)
        appends.write_projections(self._database, self._connection, self._tenant_id, projected)
        kept = [row for draft in self._drafts for row in _disclosure_rows(draft)]
        appends.write_disclosures(self._database, self._connection, kept)
        subscriptions = loads.load_subscriptions(self._connection, self._tenant_id)
        appends.write_outbox(
            self._connection,
            [
                _outbox_row(subscription, row, self._now)
                for subscription in subscriptions
                for row in event_rows
                if gets(subscription.kind, row["type"])
            ],
        )

    def _answer(self, receipts: Sequence[Receipt], logged: list[list[LoggedEvent]]) -> None:
        for position, (index, copied) in self._places.items():
            draft = self._drafts[index]
            command = draft.submission.message.command
            self.answers[position] = Decided(
                command_id=command.command_id,
                status=draft.status,
                aggregate_type=kind_of_command(command.name).name,
                aggregate_id=command.aggregate_id,
                code=draft.code,
                details=draft.details,
                version=draft.version,
                events=tuple(logged[index]),
                receipt=receipts[index],
                command=draft.submission.payload,
                replayed=copied,
            )


def _leaf(draft: _Draft, steps: Sequence[LoggedEvent], lineage: str) -> Leaf:
    message = draft.submission.message
    command = message.command
    return Leaf(
        tenant_id=command.tenant_id,
        lineage=lineage,
        principal_id=command.actor.id,
        command_id=command.command_id,
        command_hash=command_hash(draft.submission.payload),
        fingerprint=draft.submission.fingerprint,
        outcome=draft.status,  # type: ignore[arg-type]
        code=draft.code,
        details=dict(draft.details),
        aggregate_id=command.aggregate_id,
        events=tuple(
            LeafEvent(step.seq, step.aggregate_version, payload_hash(step.payload))
            for step in steps
        ),
        evidence=message.evidence,
    )


def _command_row(
    draft: _Draft,
    steps: Sequence[LoggedEvent],
    leaf: bytes,
    batch: int,
    index: int,
    lineage: str,
) -> dict[str, Any]:
    submission = draft.submission
    command: Command = submission.message.command
    return {
        "tenant_id": command.tenant_id,
        "principal_id": command.actor.id,
        "command_id": command.command_id,
        "lineage": lineage,
        "fingerprint": submission.fingerprint,
        "name": command.name,
        "aggregate_type": kind_of_command(command.name).name,
        "aggregate_id": command.aggregate_id,
        "after": command.after,
        "command": submission.payload,
        "keyid": submission.keyid,
        "signature": submission.signature,
        "outcome": draft.status,
        "code": draft.code,
        "version": draft.version,
        "first_seq": steps[0].seq if steps else None,
        "last_seq": steps[-1].seq if steps else None,
        "batch": batch,
        "leaf_index": index,
        "leaf": leaf,
    }


def _event_row(
    event: Event, payload: bytes, seq: int, batch: int, index: int, after: Any
) -> dict[str, Any]:
    return {
        "tenant_id": event.tenant_id,
        "seq": seq,
        "event_id": event.event_id,
        "aggregate_type": "task" if isinstance(after, Task) else "principal",
        "aggregate_id": event.aggregate_id,
        "aggregate_version": event.aggregate_version,
        "type": event.type,
        "schema_version": event.schema_version,
        "actor_id": event.actor.id,
        "actor_role": event.actor.role.value,
        "device_id": event.actor.device_id,
        "command_id": event.command_id,
        "occurred_at": event.occurred_at,
        "recorded_at": event.recorded_at,
        "payload": payload,
        "batch": batch,
        "leaf_index": index,
    }


def _kept_values(submission: Submission, events: Sequence[Event]) -> Disclosures:
    """Return what opens the commitments of events; only values that were proved to open them."""
    message = submission.message
    named = {c for event in events for c in event.commitments()}
    if message.manifest is not None and events:
        named |= set(message.manifest.commitments())
    proved = named & set(message.opened) & set(submission.disclosures)
    return {name: submission.disclosures[name] for name in sorted(proved)}


def _disclosure_rows(draft: _Draft) -> list[dict[str, Any]]:
    message = draft.submission.message
    named = {c for event, *_ in draft.events for c in event.commitments()}
    if message.manifest is not None and draft.events:
        named |= set(message.manifest.commitments())
    given: Disclosures = draft.submission.disclosures
    return [
        {
            "tenant_id": message.command.tenant_id,
            "commitment": commitment,
            "salt": given[commitment].salt,
            "retention_class": _retention_class(draft, commitment, given[commitment]),
            "value": given[commitment].value,
            "aggregate_id": message.command.aggregate_id,
            "keep_until": None,
        }
        for commitment in sorted(named & set(given))
    ]


def _retention_class(draft: _Draft, commitment: str, given: Disclosure) -> str:
    """Return the class by the task's own policy; what a sender says of it is only a claim.

    A decision's reason takes the class of the manifest that it decides.
    """
    command, manifest = draft.submission.message.command, draft.submission.message.manifest
    task = draft.events[-1][3]
    if not isinstance(task, Task):
        return given.retention_class
    retention = task.proof_policy.retention
    if commitment in (command.position, manifest.position if manifest else None):
        return retention.position
    decided = task.manifest(getattr(command, "manifest_id", None))
    if decided is not None and commitment == command.personal:
        return decided.retention_class
    return retention.personal


def _outbox_row(subscription: Any, event: Mapping[str, Any], now: str) -> dict[str, Any]:
    return {
        "outbox_id": f"{subscription.subscription_id}/{event['seq']}",
        "tenant_id": event["tenant_id"],
        "subscription_id": subscription.subscription_id,
        "seq": event["seq"],
        "event_id": event["event_id"],
        "aggregate_id": event["aggregate_id"],
        "status": "pending",
        "attempts": 0,
        "next_attempt_at": now,
        "last_error": None,
    }
