"""What one batch knows while it is decided: states, chains and facts, read in its transaction.

Each command sees the ones before it in the batch. Everything is read for the whole batch at once,
and only what the commands in it ask for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from workmate_server.engine.model import Submission
from workmate_server.store import loads
from workmate_server.store.database import Connection
from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.lifecycle import Blob, Context, EventRef, PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.principals.events import CredentialAdded
from workmate_shared.principals.principal import Principal
from workmate_shared.tasks import commands as c
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.tasks.task import ManifestRecord, Task
from workmate_shared.tasks.values import Fixes, ManifestPersonal, SitePosition
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.registry import (
    AggregateKind,
    is_annotation,
    kind_of_command,
)

SYSTEM_ID = "system"
_SYSTEM = PrincipalFacts(active=True, roles=frozenset({Role.SYSTEM}))
_UNKNOWN = PrincipalFacts(active=False)


def proof_files(connection: Connection, tenant_id: str, record: ManifestRecord) -> dict[str, Blob]:
    """Return the files of a proof that are held; verified are those that its makers uploaded.

    Knowing a hash opens nobody else's file, and proves nothing with it either.
    """
    held = loads.load_blobs(connection, tenant_id, record.hashes)
    uploaders = loads.load_uploaders(connection, tenant_id, record.hashes)
    makers = {record.author_id, record.submitted_by, record.on_behalf_of}
    return {
        name: Blob(
            verified=row.purged_at is None
            and any((name, maker) in uploaders for maker in makers if maker),
            media_type=row.media_type,
            size=row.size,
        )
        for name, row in held.items()
    }


class Workspace:
    """The facts of one batch of one tenant."""

    def __init__(
        self,
        connection: Connection,
        tenant_id: str,
        lineage: str,
        now: str,
        submissions: Sequence[Submission],
    ) -> None:
        self.connection = connection
        self.tenant_id = tenant_id
        self.lineage = lineage
        self.now = now
        self.states: dict[tuple[str, str], Any] = {}
        self.outcomes: dict[loads.Key, str] = {}
        self._refs: dict[str, list[EventRef]] = {}
        self._links: dict[loads.Key, str | None] = {}
        self._disclosed: dict[str, str] = {}
        self._manifests: dict[tuple[str, str], Manifest] = {}
        self._owners: dict[str, str] = {}
        commands = [submission.message.command for submission in submissions]
        self._load_states(commands)
        self._load_chains(commands)
        self._load_files(commands)

    def _load_states(self, commands: Sequence[Command]) -> None:
        wanted: dict[str, set[str]] = {"task": set(), "principal": set()}
        people: set[str] = set()
        for command in commands:
            wanted[_kind(command).name].add(command.aggregate_id)
            people.add(command.actor.id)
            if isinstance(command, c.Assign):
                people.add(command.worker_id)
        for kind, ids in wanted.items():
            self._load_kind(kind, ids, lock=True)
        self._load_kind("principal", people - wanted["principal"], lock=False)

    def _load_kind(self, kind: str, ids: set[str], *, lock: bool) -> None:
        types: Mapping[str, Any] = {"task": Task, "principal": Principal}
        found = loads.load_snapshots(self.connection, self.tenant_id, kind, ids, lock=lock)
        for name in ids:
            data = found.get(name)
            state = None if data is None else msgspec.json.decode(data, type=types[kind])
            self.states[kind, name] = state

    def _load_chains(self, commands: Sequence[Command]) -> None:
        keys = {(m.actor.id, m.after) for m in commands if m.after is not None}
        # What is in this batch is in no earlier one.
        keys -= {(m.actor.id, m.command_id) for m in commands}
        self.outcomes |= loads.load_outcomes(self.connection, self.tenant_id, keys)
        above: dict[str, int] = {}
        for command in commands:
            state = self.state(command)
            expected = command.expected_version
            if state is not None and expected is not None and expected < state.version:
                low = above.get(command.aggregate_id, expected)
                above[command.aggregate_id] = min(low, expected)
        for name, rows in loads.load_event_refs(self.connection, self.tenant_id, above).items():
            self._refs[name] = [
                EventRef(r.aggregate_version, is_annotation(r.type), r.actor_id, r.command_id)
                for r in rows
            ]
        chained = {m.aggregate_id for m in commands if m.after is not None} & set(above)
        self._links = loads.load_links(self.connection, self.tenant_id, chained)

    def _load_files(self, commands: Sequence[Command]) -> None:
        hashes: set[str] = set()
        for command in commands:
            if isinstance(command, c.StoreEvidence):
                hashes |= set(command.hashes)
        self._blobs = loads.load_blobs(self.connection, self.tenant_id, hashes)
        self._uploaders = loads.load_uploaders(self.connection, self.tenant_id, hashes)

    def state(self, command: Command) -> Any:
        """Return the present state of the command's aggregate, or None."""
        return self.states.get((_kind(command).name, command.aggregate_id))

    def facts(self, principal_id: str) -> PrincipalFacts:
        """Return what is known of a principal; the server itself is the principal `system`."""
        if principal_id == SYSTEM_ID:
            return _SYSTEM
        state = self.states.get(("principal", principal_id))
        return state.facts() if state is not None else _UNKNOWN

    def context(self, submission: Submission) -> Context:
        """Return the facts that decide one submission."""
        command = submission.message.command
        after = command.after
        assigned = command.worker_id if isinstance(command, c.Assign) else None
        manifest, opened = self._proof(submission)
        return Context(
            now=self.now,
            lineage=self.lineage,
            fingerprint=submission.fingerprint,
            actor=self.facts(command.actor.id),
            device_revoked=self._revoked(command),
            after_outcome=self.outcomes.get((command.actor.id, after)) if after else None,
            ancestors=self._ancestors(command),
            since=tuple(self._refs.get(command.aggregate_id, ())),
            principals={assigned: self.facts(assigned)} if assigned else {},
            manifest=manifest,
            opened=opened,
            blobs=self._files(command),
        )

    def applied(self, command: Command, event: Event, state: Any) -> None:
        """Take over what an event of this batch changed."""
        self.states[_kind(command).name, command.aggregate_id] = state
        reference = EventRef(
            event.aggregate_version,
            is_annotation(event.type),
            event.actor.id,
            event.command_id,
        )
        self._refs.setdefault(command.aggregate_id, []).append(reference)
        if isinstance(event, CredentialAdded):
            self._owners[event.credential.credential_id] = event.aggregate_id

    def ended(self, command: Command, status: str) -> None:
        """Take over how a command of this batch ended."""
        key = (command.actor.id, command.command_id)
        self.outcomes[key] = status
        self._links[key] = command.after

    def opened_values(self, commitments: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Return the plain values behind commitments of this batch or of the store, where known."""
        named = list(dict.fromkeys(commitments))
        missing = [name for name in named if name not in self._disclosed]
        self._disclosed |= loads.load_values(self.connection, self.tenant_id, missing)
        return {
            name: msgspec.json.decode(self._disclosed[name])
            for name in named
            if name in self._disclosed
        }

    def credential_owner(self, credential_id: str) -> str | None:
        """Return the principal that has a credential of this id, or None."""
        if credential_id in self._owners:
            return self._owners[credential_id]
        return loads.load_credential_owner(self.connection, self.tenant_id, credential_id)

    def kept(self, disclosures: Mapping[str, Disclosure]) -> None:
        """Take over the values that a command of this batch leaves in the store."""
        self._disclosed |= {name: given.value for name, given in disclosures.items()}

    def remember(self, task_id: str, manifest: Manifest) -> None:
        """Keep a manifest of this batch for decisions on it in the same batch."""
        self._manifests[task_id, manifest.manifest_id] = manifest

    def _revoked(self, command: Command) -> bool:
        device_id = command.actor.device_id
        state = self.states.get(("principal", command.actor.id))
        if device_id is None or state is None:
            return False
        record = state.credential(device_id)
        return record is not None and record.revoked

    def _ancestors(self, command: Command) -> frozenset[str]:
        found: set[str] = set()
        name = command.after
        while name is not None and name not in found:
            found.add(name)
            name = self._links.get((command.actor.id, name))
        return frozenset(found)

    def _record(self, command: c.ApproveProof) -> Any:
        state = self.state(command)
        return state.manifest(command.manifest_id) if isinstance(state, Task) else None

    def _proof(self, submission: Submission) -> tuple[Manifest | None, Mapping[str, Any]]:
        message = submission.message
        command = message.command
        if not isinstance(command, c.ApproveProof):
            return message.manifest, message.opened
        state = self.state(command)
        if self._record(command) is None:
            return None, {}
        manifest = self._stored_manifest(command)
        kinds: dict[str | None, Any] = {
            manifest.personal: ManifestPersonal,
            manifest.position: Fixes,
            state.position: SitePosition,
        }
        found = self.opened_values(name for name in kinds if name is not None)
        return manifest, {name: msgspec.convert(found[name], kinds[name]) for name in found}

    def _stored_manifest(self, command: c.ApproveProof) -> Manifest:
        key = (command.aggregate_id, command.manifest_id)
        if key not in self._manifests:
            data = loads.load_manifest(self.connection, self.tenant_id, *key)
            self._manifests[key] = msgspec.json.decode(data or b"", type=Manifest)
        return self._manifests[key]

    def _files(self, command: Command) -> Mapping[str, Blob]:
        if isinstance(command, c.StoreEvidence):
            return self._blob_facts(command.hashes, command.actor.id)
        if isinstance(command, c.ApproveProof):
            record = self._record(command)
            return proof_files(self.connection, self.tenant_id, record) if record else {}
        return {}

    def _blob_facts(self, names: Iterable[str], actor_id: str) -> dict[str, Blob]:
        return {
            name: Blob(
                verified=row.purged_at is None,
                uploaded_by_actor=(name, actor_id) in self._uploaders,
                media_type=row.media_type,
            )
            for name in names
            if (row := self._blobs.get(name)) is not None
        }


def _kind(command: Command) -> AggregateKind:
    return kind_of_command(command.name)
