"""`enrol` and `sync`: everything that talks to the server."""

import argparse
import asyncio
from typing import Any, get_args

import msgspec

from workmate_client.bootstrap import sync_parts, transport_to
from workmate_client.commands.answer import DONE, REFUSED, Answer, Session, lines_of
from workmate_client.commands.outbox import standing_lines
from workmate_client.journal.lock import ProfileLock
from workmate_client.journal.safes import SafeChoice, SafeMode
from workmate_client.service import enrolment
from workmate_client.service.device import Device
from workmate_client.service.enrolment import Enrolled
from workmate_client.service.jobs import returned_proofs
from workmate_client.service.notices import NOTICES
from workmate_client.service.outbox import device_status
from workmate_client.service.standing import standing_of
from workmate_client.service.wording import shown_file, visible, waiting_for
from workmate_client.sync.report import FileWaiting, SyncReport, Waiting
from workmate_client.sync.runner import SyncRunner


def add_contact(subcommands: Any, common: argparse.ArgumentParser) -> None:
    """Add the subcommands of this module."""
    enrol = subcommands.add_parser("enrol", parents=[common], help="bind this laptop to a worker")
    enrol.add_argument("--server", required=True, metavar="URL")
    enrol.add_argument("--code", required=True, metavar="CODE")
    enrol.add_argument(
        "--keys", choices=get_args(SafeMode), default="auto", help="where the keys are kept"
    )
    enrol.set_defaults(run=_enrol)
    group = subcommands.add_parser("sync", help="send and fetch")
    steps = group.add_subparsers(dest="step", required=True, metavar="STEP")
    once = steps.add_parser("once", parents=[common], help="send and fetch all that is possible")
    once.set_defaults(run=_sync_once)
    state = steps.add_parser("status", parents=[common], help="what is still to be sent or heard")
    state.set_defaults(run=_sync_status)


def _enrol(session: Session, args: argparse.Namespace) -> Answer:
    # The address is judged before anything is made for it.
    transport = transport_to(args.server, session.settings)
    device, choice = session.new_device(args.keys)

    async def go() -> Enrolled:
        async with transport:
            return await enrolment.enrol(device, transport, args.server, args.code)

    return _enrolled(asyncio.run(go()), choice)


def _enrolled(enrolled: Enrolled, choice: SafeChoice | None) -> Answer:
    name = visible(enrolled.display_name or enrolled.worker_id)
    lines = [f"This laptop works for {name} at {visible(enrolled.server_url)}."]
    keys = None
    if choice is not None:
        keys = {"safe": choice.safe.name, "reason": choice.reason, "detail": choice.detail}
        lines.append(f"Its keys are in the {choice.safe.name}: {visible(choice.detail)}.")
    value = {
        "server": enrolled.server_url,
        "tenant_id": enrolled.tenant_id,
        "worker_id": enrolled.worker_id,
        "display_name": enrolled.display_name,
        "device_id": enrolled.device_id,
        "already": enrolled.already,
        "keys": keys,
    }
    return Answer(value, tuple(lines))


def _sync_once(session: Session, args: argparse.Namespace) -> Answer:
    del args
    device = session.device()
    known = set(returned_proofs(device))
    report = asyncio.run(sync_once(device))
    returned = [name for name in returned_proofs(device) if name not in known]
    return _reported(report, device, returned)


async def sync_once(device: Device) -> SyncReport:
    """Send and fetch all that is possible now, over HTTP. Raises DeviceError."""
    async with transport_to(device.profile().server_url, device.settings) as transport:
        return await SyncRunner(sync_parts(device, transport)).sync_once()


def _reported(report: SyncReport, device: Device, returned: list[str]) -> Answer:
    rows = [
        ("waits", waiting.name, waiting_for(_wait_code(waiting, report)), waiting.command_id)
        for waiting in report.waiting
    ]
    rows += [
        ("file", *_file_words(device, file), file.task_id)
        for file in report.files_waiting
        if file.code is not None or file.set_aside
    ]
    standing = standing_of(device.profile())
    answered = report.committed + report.unchanged + report.conflicts + report.rejected
    lost = report.conflicts + report.rejected
    lines = [
        f"{report.sent} acts sent, {answered} answered, {lost} need your decision.",
        f"{report.pulled} changes fetched, {report.uploaded_files} files sent.",
        *lines_of(rows),
        *standing_lines(standing),
    ]
    if returned:
        were = "proof was" if len(returned) == 1 else "proofs were"
        lines.append(f"{len(returned)} {were} returned: {', '.join(map(visible, returned))}")
    if report.wipe_ordered:
        lines.append(NOTICES["wipe_ordered"])
    if report.stopped is not None:
        detail = visible(report.stopped_detail or "")
        lines.append(f"Stopped: {waiting_for(report.stopped)}. {detail}")
    value = {**msgspec.structs.asdict(report), "standing": standing, "returned": returned}
    return Answer(value, tuple(lines), REFUSED if report.stopped else DONE)


def _wait_code(waiting: Waiting, report: SyncReport) -> str:
    """Return why an act waits; one that was never tried waits for what stopped the run."""
    if waiting.code is None and waiting.blocked_by is None and report.stopped is not None:
        return report.stopped
    return waiting.code or "blocked_by"


def _file_words(device: Device, file: FileWaiting) -> tuple[str, str]:
    """Return what a file is called, and why it is still here."""
    item = device.journal.evidence_item(file.task_id, file.hash)
    if item is None:
        return file.hash, waiting_for(file.code or "waiting")
    words = shown_file(item).words if file.set_aside else waiting_for(file.code or "waiting")
    return item.file_name or item.hash, words


def _sync_status(session: Session, args: argparse.Namespace) -> Answer:
    del args
    device = session.device()
    found = device_status(device)
    lock = ProfileLock(device.paths.sync_lock, device.clock).state()
    value = {
        "running": lock.held,
        "pid": lock.holder.pid if lock.holder and lock.held else None,
        "pending": found.counts.pending,
        "oldest_pending_seconds": found.oldest_pending_seconds,
        "upload_bytes_left": found.upload_bytes_left,
        "last_contact_at": found.last_contact_at,
        "last_sync_at": found.last_sync_at,
        "clock_skew_seconds": found.clock_skew_seconds,
        "pull_refused": found.pull_refused,
        "pull_complete": device.replica.is_complete(),
    }
    heard = "heard everything" if device.replica.is_complete() else "not heard everything yet"
    lines = (
        f"up: {found.counts.pending} acts pending, {found.upload_bytes_left} bytes of files",
        f"down: {heard}",
        f"last contact: {found.last_contact_at or 'never'}",
        f"last whole sync: {found.last_sync_at or 'never'}",
        "a sync is running" if lock.held else "no sync is running",
    )
    return Answer(value, lines)
