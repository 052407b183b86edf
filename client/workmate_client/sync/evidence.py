"""Which files may be uploaded, and for which commands: read from the journal and the replica.

Only files that a signed command names are ever sent: a photo of a draft may still be thrown away.
The server takes them once that command has a recorded outcome, or while this worker holds the task.
"""

import base64
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from workmate_client.journal.rows import EvidenceItem, QueuedCommand
from workmate_client.journal.store import Journal
from workmate_client.replica.store import Replica, ReplicaTask
from workmate_client.sync.parts import seconds_of
from workmate_client.sync.plan import EvidenceFile
from workmate_shared.tasks.commands import StoreEvidence, named_hashes
from workmate_shared.tasks.manifest import Manifest
from workmate_shared.wire.intake import decode_value

STORE_EVIDENCE = str(StoreEvidence.__struct_config__.tag)
_HOLDING_STATES = frozenset({"accepted", "en_route", "in_progress", "proof_pending"})


def files_named(command: QueuedCommand) -> tuple[str, ...]:
    """Return the hashes of the files that a command names, itself or through its manifest."""
    decoded = command.command()
    text = getattr(decoded, "manifest", None)
    if text is None:
        return named_hashes(decoded)
    manifest: Manifest = decode_value(base64.b64decode(text), Manifest, "$.manifest")
    return named_hashes(decoded, manifest.hashes())


def holds(task: ReplicaTask | None, worker_id: str) -> bool:
    """Whether the server last said that this worker holds the task, from accepted on."""
    return (
        task is not None
        and task.removed is None
        and task.task.assignee_id == worker_id
        and task.task.state in _HOLDING_STATES
    )


class EvidenceView:
    """The files that are still to be brought to the server, as a plan reads them."""

    def __init__(self, journal: Journal, replica: Replica) -> None:
        self._journal = journal
        self._replica = replica
        self._named: dict[str, frozenset[str]] = {}

    def files(self, worker_id: str) -> tuple[EvidenceFile, ...]:
        """Return the files that a signed command names and that no receipt has verified yet."""
        unfinished: dict[str, list[EvidenceItem]] = {}
        for item in self._journal.evidence():
            if item.verified_at is None:
                unfinished.setdefault(item.task_id, []).append(item)
        return tuple(
            file
            for task_id, items in unfinished.items()
            for file in self._files_of(task_id, items, worker_id)
        )

    def announced_by(self, command: QueuedCommand) -> frozenset[str]:
        """Return the files that a `store_evidence` names; none for any other command."""
        return self._hashes(command) if command.name == STORE_EVIDENCE else frozenset()

    def _files_of(
        self, task_id: str, items: Iterable[EvidenceItem], worker_id: str
    ) -> list[EvidenceFile]:
        commands = self._journal.commands(task_id)
        held = holds(self._replica.task(task_id), worker_id)
        announced = {name for command in commands for name in self.announced_by(command)}
        naming = [command for command in commands if command.name != STORE_EVIDENCE]
        found = []
        for item in items:
            named_by = [command for command in naming if item.hash in self._hashes(command)]
            if named_by:
                found.append(_file(item, named_by, held=held, announced=item.hash in announced))
        return found

    def _hashes(self, command: QueuedCommand) -> frozenset[str]:
        known = self._named.get(command.command_id)
        if known is None:
            known = self._named[command.command_id] = frozenset(files_named(command))
        return known


def _file(
    item: EvidenceItem, named_by: Sequence[QueuedCommand], *, held: bool, announced: bool
) -> EvidenceFile:
    file = EvidenceFile(
        task_id=item.task_id,
        hash=item.hash,
        size_bytes=item.size_bytes,
        named_by=named_by[0].command_id,
        allowed=held or any(command.outcome is not None for command in named_by),
        announced=announced,
    )
    return moved_on(file, item)


def moved_on(file: EvidenceFile, item: EvidenceItem) -> EvidenceFile:
    """Return a file as it is after a try, with what its row says now."""
    return replace(
        file,
        uploaded=item.upload_done_at is not None,
        set_aside=item.quarantined is not None,
        wait_code=item.wait_code,
        not_before=seconds_of(item.next_attempt_at),
    )
