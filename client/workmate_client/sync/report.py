"""What a run of the sync did, as the command line and the status line tell it."""

from msgspec import Struct

from workmate_client.journal.rows import Conservation, QueuedCommand
from workmate_client.sync.exchange import Exchanged
from workmate_client.sync.plan import Situation, upload_fault
from workmate_client.sync.skew import SkewEstimate
from workmate_client.sync.verify import RecordedStatus
from workmate_client.sync.watchdog import Alarm


class Waiting(Struct, frozen=True, kw_only=True):
    """A command that still waits: why, for which other one, and when it is tried next."""

    command_id: str
    name: str
    aggregate_id: str
    code: str | None
    blocked_by: str | None
    next_attempt_at: str | None


class FileWaiting(Struct, frozen=True, kw_only=True):
    """A file that is not on the server yet, and why; `set_aside` ones are no longer tried."""

    task_id: str
    hash: str
    code: str | None
    set_aside: bool


class SyncReport(Struct, frozen=True, kw_only=True):
    """One run. `sent` counts distinct commands, the four outcomes those proven by a receipt.

    `stopped` is the code why the run ended early, `retry_in_seconds` when to try again at the
    earliest. `pull_refused` and `pull_fault` say why nothing more was pulled. `wipe_ordered`: a
    verified receipt orders this device to remove its data, and everything queued has been offered.
    """

    sent: int
    committed: int
    unchanged: int
    conflicts: int
    rejected: int
    waiting: tuple[Waiting, ...]
    pulled: int
    pull_refused: str | None
    pull_fault: str | None
    uploaded_bytes: int
    uploaded_files: int
    files_waiting: tuple[FileWaiting, ...]
    stopped: str | None
    stopped_detail: str | None
    retry_in_seconds: float | None
    lineage_changed: bool
    forked: bool
    wipe_ordered: bool
    skew: SkewEstimate | None
    conservation: Conservation
    alarm: Alarm | None


class Tally:
    """Counts while a run goes on."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.outcomes: dict[RecordedStatus, int] = {}
        self.pulled = 0
        self.pull_refused: str | None = None
        self.pull_fault: str | None = None
        self.uploaded_bytes = 0
        self.uploaded_files = 0
        self.lineage_changed = False
        self.forked = False
        self.wipe_ordered = False
        self.skew: SkewEstimate | None = None

    def count(self, status: RecordedStatus) -> None:
        """Count one outcome."""
        self.outcomes[status] = self.outcomes.get(status, 0) + 1

    def add(self, exchanged: Exchanged) -> None:
        """Count one round trip."""
        judgement, pull = exchanged.judgement, exchanged.pull
        for found in judgement.outcomes:
            self.count(found.status)
        self.pulled += pull.pulled
        self.pull_refused, self.pull_fault = pull.refused, pull.fault
        self.lineage_changed |= judgement.lineage_changed
        self.forked |= bool(judgement.forks)
        self.wipe_ordered |= judgement.pull.wipe
        self.skew = exchanged.skew


def waiting_of(command: QueuedCommand) -> Waiting:
    """Return why a pending command waits."""
    return Waiting(
        command_id=command.command_id,
        name=command.name,
        aggregate_id=command.aggregate_id,
        code=command.wait_code,
        blocked_by=command.blocked_by,
        next_attempt_at=command.next_attempt_at,
    )


def files_waiting(situation: Situation | None) -> tuple[FileWaiting, ...]:
    """Return the files that are not on the server after a run that ended in this situation."""
    if situation is None:
        return ()
    return tuple(
        FileWaiting(
            task_id=file.task_id,
            hash=file.hash,
            code=upload_fault(file, situation) or file.wait_code,
            set_aside=file.set_aside,
        )
        for file in situation.files
        if not file.uploaded
    )
