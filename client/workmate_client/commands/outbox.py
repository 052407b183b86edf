"""`status`, `conflicts` and `receipts`: what is on this laptop, and what became of it."""

import argparse
from typing import Any

from workmate_client.commands.answer import DONE, REFUSED, Answer, Session, lines_of
from workmate_client.journal.rows import QueuedCommand
from workmate_client.service import conflicts, outbox, receipts, redo
from workmate_client.service.conflicts import Conflict
from workmate_client.service.outbox import DeviceStatus
from workmate_client.service.standing import Standing
from workmate_client.service.wording import age_words, shown_file, visible


def add_outbox(subcommands: Any, common: argparse.ArgumentParser) -> None:
    """Add the subcommands of this module."""
    status = subcommands.add_parser("status", parents=[common], help="how things stand")
    status.add_argument("--seen", action="store_true", help="do not show these notices again")
    status.set_defaults(run=show_status)
    _add_conflicts(
        subcommands.add_parser("conflicts", parents=[common], help="what needs my decision"), common
    )
    held = subcommands.add_parser("receipts", parents=[common], help="what the server signed")
    held.set_defaults(run=_receipts)
    steps = held.add_subparsers(dest="step", metavar="STEP")
    verify = steps.add_parser("verify", parents=[common], help="check every receipt again")
    verify.set_defaults(run=_verify)


def _add_conflicts(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_conflicts)
    steps = parser.add_subparsers(dest="step", metavar="STEP")
    again = steps.add_parser("redo", parents=[common], help="do it again on the job as it is now")
    again.add_argument("command", metavar="COMMAND")
    again.add_argument("--only", action="store_true", help="without the acts that built on it")
    again.set_defaults(run=_redo)
    aside = steps.add_parser("set-aside", parents=[common], help="deal with it no further")
    aside.add_argument("command", metavar="COMMAND")
    aside.add_argument("--reason", required=True, metavar="TEXT")
    aside.set_defaults(run=_set_aside)
    back = steps.add_parser("bring-back", parents=[common], help="take set-aside back")
    back.add_argument("command", metavar="COMMAND")
    back.set_defaults(run=_bring_back)


def show_status(session: Session, args: argparse.Namespace) -> Answer:
    """Answer how things stand; what `workmate` does when it is asked for nothing else."""
    device = session.device()
    found = outbox.device_status(device)
    lines = outbox.outbox(device)
    if args.seen:
        outbox.dismiss_notices(device)
    rows = [
        (
            line.shown.symbol,
            line.shown.words,
            age_words(line.age_seconds),
            line.what,
            line.task_id,
            line.id,
        )
        for line in lines
    ]
    value = {"status": found, "outbox": lines}
    return Answer(value, (*_status_lines(found), *lines_of(rows)))


def _status_lines(found: DeviceStatus) -> tuple[str, ...]:
    counts = found.counts
    name = visible(found.display_name or found.worker_id)
    sums = (
        f"{counts.issued} acts = {counts.pending} pending + {counts.committed} committed + "
        f"{counts.unchanged} unchanged + {counts.conflict} conflicts + {counts.rejected} rejected"
    )
    left = f"{found.files_left} not confirmed, {found.upload_bytes_left} bytes to send"
    files = f"files: {found.files}, {left}"
    lost = f"  LOST: {counts.lost}" if counts.lost else ""
    safe = "yes" if found.safe_to_wipe else "no: " + ", ".join(found.keeps)
    return (
        f"{name} at {visible(found.server_url)}" + ("" if found.enrolled else "  (not enrolled)"),
        sums + lost,
        files,
        f"last contact: {found.last_contact_at or 'never'}",
        f"clock: {_clock(found)}",
        f"safe to wipe: {safe}",
        *standing_lines(found.standing),
        *(visible(notice) for notice in found.notices),
    )


def standing_lines(standing: Standing | None) -> tuple[str, ...]:
    """Return for people that nothing of this laptop counts any more, and what to do; or nothing."""
    if standing is None:
        return ()
    return (f"! {standing.code}: {standing.sentence}. {standing.safe} {standing.todo}",)


def _clock(found: DeviceStatus) -> str:
    if found.clock_skew_seconds is None:
        return "not compared yet"
    word = "doubtful" if found.clock_doubtful else "ok"
    return f"{word}, {found.clock_skew_seconds:+.1f} s"


def _conflicts(session: Session, args: argparse.Namespace) -> Answer:
    del args
    device = session.device()
    found = conflicts.list_conflicts(device)
    lines = [line for conflict in found for line in _conflict_lines(conflict)]
    lines += [
        f"file {visible(item.file_name or item.hash)}  job {visible(item.task_id)}: "
        f"{shown_file(item).words}: workmate proof photo {visible(item.task_id)} FILE"
        for item in outbox.files_set_aside(device)
    ]
    return Answer(found, tuple(lines) or ("Nothing needs your decision.",))


def _conflict_lines(conflict: Conflict) -> tuple[str, ...]:
    mine = [(act.occurred_at, act.name, act.sentence) for act in conflict.acts]
    meanwhile = [(event.occurred_at, event.type, event.actor) for event in conflict.meanwhile]
    aside = f"  set aside: {conflict.set_aside_reason}" if conflict.set_aside_reason else ""
    return (
        f"{conflict.command_id}  job {conflict.task_id}{visible(aside)}",
        *(f"  you        {line}" for line in lines_of(mine)),
        *(f"  meanwhile  {line}" for line in lines_of(meanwhile)),
    )


def _chosen(commands: tuple[QueuedCommand, ...], did: str) -> Answer:
    value = [
        {
            "command_id": command.command_id,
            "name": command.name,
            "task_id": command.aggregate_id,
            "status": command.status,
            "supersedes": command.supersedes,
            "after": command.after,
            "set_aside_reason": command.set_aside_reason,
        }
        for command in commands
    ]
    rows = [(did, command.name, command.command_id) for command in commands]
    return Answer(value, lines_of(rows))


def _redo(session: Session, args: argparse.Namespace) -> Answer:
    done = redo.redo(session.device(), args.command, chain=not args.only)
    return _chosen(done, "done again")


def _set_aside(session: Session, args: argparse.Namespace) -> Answer:
    return _chosen(redo.set_aside(session.device(), args.command, args.reason), "set aside")


def _bring_back(session: Session, args: argparse.Namespace) -> Answer:
    return _chosen(redo.bring_back(session.device(), args.command), "brought back")


def _receipts(session: Session, args: argparse.Namespace) -> Answer:
    del args
    report = receipts.verify_receipts(session.device())
    rows = [
        (held.server_time, held.name, held.status, held.code or "", held.task_id, held.command_id)
        for held in report.receipts
    ]
    return Answer(report.receipts, lines_of(rows) or ("No receipts yet.",))


def _verify(session: Session, args: argparse.Namespace) -> Answer:
    del args
    report = receipts.verify_receipts(session.device())
    rows = [
        ("ok" if held.fault is None else "FAILS", held.name, held.command_id, held.fault or "")
        for held in report.receipts
    ]
    value = {
        "receipts": report.receipts,
        "proven": report.proven,
        "all_proven": report.all_proven,
    }
    head = f"{report.proven} of {len(report.receipts)} receipts prove what they say."
    return Answer(value, (*lines_of(rows), head), DONE if report.all_proven else REFUSED)
