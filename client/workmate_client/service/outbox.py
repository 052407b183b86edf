"""What is on this laptop and where it has got to: every act and every file, and whether all is safe.

The counts are those of the journal; what is said to be received rests on receipts.
"""

import msgspec
from msgspec import Struct

from workmate_client.journal.rows import Conservation, EvidenceItem, QueuedCommand
from workmate_client.ports import StorageError
from workmate_client.service.device import Device
from workmate_client.service.notices import told_notice
from workmate_client.service.standing import Standing, standing_of
from workmate_client.service.wording import Shown, shown_act, shown_file
from workmate_shared.kernel.instants import parse_instant, seconds_between
from workmate_shared.wire.batch import Header
from workmate_shared.wire.binary import from_base64
from workmate_shared.wire.dsse import Envelope


class OutboxLine(Struct, frozen=True, kw_only=True):
    """One act or file that has not ended well yet: age in seconds, attempts, when it is tried next."""

    kind: str
    id: str
    task_id: str
    what: str
    shown: Shown
    age_seconds: float
    attempts: int
    next_attempt_at: str | None
    bytes_left: int = 0


class DeviceStatus(Struct, frozen=True, kw_only=True):
    """The truth about this device in one value. Sizes in bytes, ages and skew in seconds.

    `standing` is what the office holds against this device or its worker; `files_set_aside` counts
    files that must be added again. `keeps` says why this laptop is not safe to wipe; empty where it is.
    """

    worker_id: str
    display_name: str | None
    device_id: str
    server_url: str
    enrolled: bool
    counts: Conservation
    conserved: bool
    oldest_pending_at: str | None
    oldest_pending_seconds: float | None
    needs_decision: int
    files: int
    files_left: int
    upload_bytes_left: int
    drafts: int
    last_contact_at: str | None
    last_sync_at: str | None
    clock_skew_seconds: float | None
    clock_doubtful: bool
    disk_free: int | None
    pull_refused: str | None
    standing: Standing | None
    files_set_aside: int
    notices: tuple[str, ...]
    safe_to_wipe: bool
    keeps: tuple[str, ...]


def device_status(device: Device) -> DeviceStatus:
    """Return how things stand. Raises NotEnrolledError."""
    profile = device.profile()
    counts = device.journal.conservation()
    commands = device.journal.commands()
    files = device.journal.evidence()
    pending = [command for command in commands if command.waits]
    oldest = min((command.issued_at for command in pending), key=parse_instant, default=None)
    drafts = device.journal.drafts()
    keeps = _keeps(commands, files, len(drafts), profile.keep_from)
    skew = profile.clock_skew_seconds
    return DeviceStatus(
        worker_id=profile.worker_id,
        display_name=profile.display_name,
        device_id=profile.device_id,
        server_url=profile.server_url,
        enrolled=profile.enrolled,
        counts=counts,
        conserved=counts.holds,
        oldest_pending_at=oldest,
        oldest_pending_seconds=_age(oldest, device.now()) if oldest else None,
        needs_decision=sum(command.needs_decision for command in commands),
        files=len(files),
        files_left=sum(item.verified_at is None for item in files),
        upload_bytes_left=sum(item.bytes_left for item in files),
        drafts=len(drafts),
        last_contact_at=profile.last_contact_at,
        last_sync_at=profile.last_sync_at,
        clock_skew_seconds=skew,
        clock_doubtful=skew is not None and abs(skew) > device.settings.clock_doubt_seconds,
        disk_free=_disk_free(device),
        pull_refused=profile.pull_refused,
        standing=standing_of(profile),
        files_set_aside=sum(_is_set_aside(item) for item in files),
        notices=tuple(told_notice(notice) for notice in device.journal.notices()),
        safe_to_wipe=not keeps,
        keeps=keeps,
    )


def files_set_aside(device: Device) -> tuple[EvidenceItem, ...]:
    """Return the files that are no longer tried, because they must be added again."""
    return tuple(item for item in device.journal.evidence() if _is_set_aside(item))


def _is_set_aside(item: EvidenceItem) -> bool:
    return item.quarantined is not None and item.verified_at is None


def dismiss_notices(device: Device) -> int:
    """Forget the notices that the worker has read; return how many. They say what has happened."""
    read = device.journal.notices()
    for notice in read:
        device.journal.dismiss_notice(notice.notice_id)
    return len(read)


def outbox(device: Device) -> tuple[OutboxLine, ...]:
    """Return every act and file that is pending, needs a decision or was set aside, oldest first."""
    now = device.now()
    acts = [
        _act_line(command, now)
        for command in device.journal.commands()
        if command.status not in ("committed", "unchanged") and command.superseded_by is None
    ]
    files = [
        _file_line(item, now) for item in device.journal.evidence() if item.verified_at is None
    ]
    return tuple(sorted((*acts, *files), key=lambda line: -line.age_seconds))


def _act_line(command: QueuedCommand, now: str) -> OutboxLine:
    return OutboxLine(
        kind="act",
        id=command.command_id,
        task_id=command.aggregate_id,
        what=command.name,
        shown=shown_act(command),
        age_seconds=_age(command.issued_at, now),
        attempts=command.attempts,
        next_attempt_at=command.next_attempt_at,
    )


def _file_line(item: EvidenceItem, now: str) -> OutboxLine:
    return OutboxLine(
        kind="file",
        id=item.hash,
        task_id=item.task_id,
        what=item.file_name or item.kind,
        shown=shown_file(item),
        age_seconds=_age(item.added_at, now),
        attempts=item.attempts,
        next_attempt_at=item.next_attempt_at,
        bytes_left=item.bytes_left,
    )


def _keeps(
    commands: tuple[QueuedCommand, ...],
    files: tuple[EvidenceItem, ...],
    drafts: int,
    keep_from: int,
) -> tuple[str, ...]:
    """Return what would be lost with this laptop, in plain words with counts."""
    recent = [
        command
        for command in commands
        if command.outcome is not None and _batch(command) >= keep_from
    ]
    found = (
        (sum(command.waits for command in commands), "acts not sent or not answered"),
        (sum(item.verified_at is None for item in files), "files not confirmed by the server"),
        (sum(command.needs_decision for command in commands), "acts that need your decision"),
        (drafts, "proofs or notes in the making"),
        (len(recent), "receipts so recent that the server asks to keep them"),
    )
    return tuple(f"{count} {what}" for count, what in found if count)


def _batch(command: QueuedCommand) -> int:
    """Return the batch of a receipt; it was verified before it was recorded."""
    receipt = command.outcome.receipt if command.outcome else None
    return batch_of(receipt.header) if receipt else 0


def batch_of(header: Envelope) -> int:
    """Return the batch number in a batch header whose signature was verified before."""
    return msgspec.json.decode(from_base64(header.payload), type=Header).batch


def _age(since: str, now: str) -> float:
    return max(0.0, seconds_between(since, now))


def _disk_free(device: Device) -> int | None:
    try:
        return device.files.free_bytes(device.paths.folder)
    except StorageError:
        return None
