"""Decide what to do next: a pure function of the queue, the evidence, the session and the link.

Commands on one aggregate keep their order; one that waits holds up its own lane and no other. Media
never holds up commands: what can be sent goes first, and a file moves on by one piece at a time.
"""

from collections.abc import Container, Iterator, Sequence

from msgspec import Struct

from workmate_client.sync.backoff import LINK_UP, Link
from workmate_shared.tasks.commands import EVIDENCE_MAX


class PendingCommand(Struct, frozen=True, kw_only=True):
    """A command without an outcome, in the order of the device; `size_bytes` is its size as sent.

    `media` marks a `store_evidence`, whose waiting must not hold up work on its task; `enrols` an
    `enrol`, which has an address of its own. `not_before` is seconds since the epoch by this clock.
    """

    command_id: str
    aggregate_id: str
    size_bytes: int
    after: str | None = None
    media: bool = False
    enrols: bool = False
    wait_code: str | None = None
    blocked_by: str | None = None
    not_before: float | None = None

    @property
    def lane(self) -> tuple[str, bool]:
        """What it keeps its order in."""
        return self.aggregate_id, self.media


class EvidenceFile(Struct, frozen=True, kw_only=True):
    """A file named by the signed command `named_by`, and how far it has come.

    `allowed`: the server takes it now, because the command has a recorded outcome or this worker
    holds the task. `announced`: a `store_evidence` names it already. `set_aside`: it is no longer
    tried.
    """

    task_id: str
    hash: str
    size_bytes: int
    named_by: str
    allowed: bool
    uploaded: bool = False
    announced: bool = False
    set_aside: bool = False
    wait_code: str | None = None
    not_before: float | None = None


class Situation(Struct, frozen=True, kw_only=True):
    """All that a plan reads. Times are seconds since the epoch by this clock, sizes are bytes.

    `commands_limit` and `request_bytes` are what one request may carry, `longest_wait_seconds` the
    longest wait there can be: a time further away was set before the clock jumped. `upload_bytes`
    is the largest file that the server takes, `link_bytes` the largest that may go over this link.
    """

    now: float
    session_open: bool
    commands_limit: int
    request_bytes: int
    longest_wait_seconds: float
    pull_due: bool = False
    link: Link = LINK_UP
    pending: Sequence[PendingCommand] = ()
    files: Sequence[EvidenceFile] = ()
    upload_bytes: int | None = None
    link_bytes: int | None = None

    def is_due(self, not_before: float | None) -> bool:
        """Whether a time has come, or is so far away that it cannot be meant."""
        if not_before is None:
            return True
        return not self.now < not_before <= self.now + self.longest_wait_seconds


class OpenSession(Struct, frozen=True):
    """Ask for a nonce and sign it."""


class RepeatEnrolment(Struct, frozen=True):
    """Send an `enrol` that is pending again; it needs no session."""

    command_id: str


class SendCommands(Struct, frozen=True):
    """Send these commands in one request, in this order; it pulls as well."""

    command_ids: tuple[str, ...]


class Pull(Struct, frozen=True):
    """Ask for the next page of changes."""


class Upload(Struct, frozen=True):
    """Move one file on by one piece."""

    task_id: str
    hash: str


class StoreEvidence(Struct, frozen=True):
    """Issue a `store_evidence` for these files of a task, all of which have been uploaded."""

    task_id: str
    hashes: tuple[str, ...]


class WaitUntil(Struct, frozen=True):
    """Nothing can be done before `time`; `code` says why."""

    time: float
    code: str


class Idle(Struct, frozen=True):
    """Nothing is left to do."""


Action = (
    OpenSession | RepeatEnrolment | SendCommands | Pull | Upload | StoreEvidence | WaitUntil | Idle
)


def next_action(situation: Situation) -> Action:
    """Return what to do next."""
    work = _next_work(situation)
    if isinstance(work, StoreEvidence):
        return work
    if work is not None:
        link = situation.link
        if not situation.is_due(link.not_before):
            return WaitUntil(link.not_before, link.code or "server_unreachable")
        ready = situation.session_open or isinstance(work, RepeatEnrolment)
        return work if ready else OpenSession()
    wanted = [file for file in situation.files if _is_wanted(file, situation)]
    waiting: list[PendingCommand | EvidenceFile] = [*situation.pending, *wanted]
    waits = [
        WaitUntil(item.not_before, item.wait_code or "waiting")
        for item in waiting
        if item.not_before is not None and not situation.is_due(item.not_before)
    ]
    return min(waits, key=lambda wait: wait.time, default=Idle())


def _next_work(situation: Situation) -> Action | None:
    for command in situation.pending:
        if command.enrols and situation.is_due(command.not_before):
            return RepeatEnrolment(command.command_id)
    batch = next_batch(situation)
    if batch:
        return SendCommands(batch)
    if situation.pull_due:
        return Pull()
    stored = next(stored_groups(situation), None)
    if stored is not None:
        return stored
    for file in situation.files:
        if _is_wanted(file, situation) and situation.is_due(file.not_before):
            return Upload(file.task_id, file.hash)
    return None


def next_batch(situation: Situation) -> tuple[str, ...]:
    """Return the ids of the commands to send in one request, in the order of the device.

    A lane ends at its first command that waits, that must follow one which is not in the request,
    or that no longer fits; the first command of a request always fits.
    """
    chosen: dict[str, None] = {}
    passed: set[str] = set()
    closed: set[tuple[str, bool]] = set()
    size = 0
    for command in (command for command in situation.pending if not command.enrols):
        if len(chosen) >= situation.commands_limit:
            break
        fits = not chosen or size + command.size_bytes <= situation.request_bytes
        if command.lane in closed or not fits or not _may_go(command, situation, chosen, passed):
            closed.add(command.lane)
            passed.add(command.command_id)
            continue
        chosen[command.command_id] = None
        size += command.size_bytes
    return tuple(chosen)


def smaller_batch(sent: int) -> int | None:
    """Return how many commands to send after that many were too many; None if it was one alone."""
    return sent // 2 if sent > 1 else None


def _may_go(
    command: PendingCommand,
    situation: Situation,
    chosen: Container[str],
    passed: Container[str],
) -> bool:
    if command.after in passed:
        return False
    return situation.is_due(command.not_before) or command.blocked_by in chosen


def upload_fault(file: EvidenceFile, situation: Situation) -> str | None:
    """Return the code why a file that is still to be uploaded is not tried at all, or None."""
    if situation.upload_bytes is not None and file.size_bytes > situation.upload_bytes:
        return "too_large"
    if situation.link_bytes is not None and file.size_bytes > situation.link_bytes:
        return "metered_link"
    return None if file.allowed else "command_unanswered"


def _is_wanted(file: EvidenceFile, situation: Situation) -> bool:
    return not (file.uploaded or file.set_aside or upload_fault(file, situation))


def stored_groups(situation: Situation) -> Iterator[StoreEvidence]:
    """Yield the `store_evidence` of each command whose files have all come as far as they can.

    Files that were set aside, or that the server is never going to take, hold up no others.
    """
    groups: dict[tuple[str, str], list[EvidenceFile]] = {}
    for file in situation.files:
        lost = file.set_aside or (
            not file.uploaded and upload_fault(file, situation) == "too_large"
        )
        if not lost:
            groups.setdefault((file.task_id, file.named_by), []).append(file)
    for (task_id, _), files in groups.items():
        fresh = tuple(file.hash for file in files if not file.announced)
        if fresh and all(file.uploaded for file in files):
            yield StoreEvidence(task_id, fresh[:EVIDENCE_MAX])
