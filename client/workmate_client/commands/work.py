"""`jobs`, `job`, `do`, `note` and `eta`: see the work, and do it."""

import argparse
from typing import Any, get_args

from workmate_client.commands.answer import Answer, Session, lines_of, paragraph
from workmate_client.commands.places import add_place, place_of
from workmate_client.service import acts, jobs, submission
from workmate_client.service.acts import DeclineReason, Done
from workmate_client.service.faults import FAULTS
from workmate_client.service.jobs import JobLine, JobView
from workmate_client.service.wording import visible


def add_work(subcommands: Any, common: argparse.ArgumentParser) -> None:
    """Add the subcommands of this module."""
    listed = subcommands.add_parser("jobs", parents=[common], help="list my jobs")
    listed.add_argument("--all", action="store_true", help="also those that are no longer mine")
    listed.set_defaults(run=_jobs)
    shown = subcommands.add_parser("job", parents=[common], help="show one job")
    shown.add_argument("task", metavar="TASK")
    shown.set_defaults(run=_job)
    _add_do(subcommands.add_parser("do", help="act on a job"), common)
    noted = subcommands.add_parser("note", parents=[common], help="write a note about a job")
    noted.add_argument("task", metavar="TASK")
    noted.add_argument("text", metavar="TEXT", nargs="+")
    noted.set_defaults(run=_note)
    told = subcommands.add_parser("eta", parents=[common], help="say when I will arrive")
    told.add_argument("task", metavar="TASK")
    told.add_argument("--arrive-at", required=True, metavar="TIME", help="RFC 3339 with offset")
    add_place(told)
    told.add_argument("--deviation-m", type=int, metavar="METRES")
    told.set_defaults(run=_eta)


def _add_do(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    acts_of = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    for name, run, tells in (
        ("accept", _accept, "take the job on"),
        ("start-travel", _start_travel, "set out"),
    ):
        act = acts_of.add_parser(name, parents=[common], help=tells)
        act.add_argument("task", metavar="TASK")
        act.set_defaults(run=run)
    decline = acts_of.add_parser("decline", parents=[common], help="give the job back")
    decline.add_argument("task", metavar="TASK")
    decline.add_argument("--reason-code", choices=get_args(DeclineReason), default="other")
    decline.add_argument("--reason", required=True, metavar="TEXT")
    decline.set_defaults(run=_decline)
    arrive = acts_of.add_parser("arrive", parents=[common], help="begin the work on site")
    arrive.add_argument("task", metavar="TASK")
    add_place(arrive)
    arrive.add_argument("--no-fix", metavar="REASON", help="why there is no position")
    arrive.set_defaults(run=_arrive)


def _jobs(session: Session, args: argparse.Namespace) -> Answer:
    found = jobs.list_jobs(session.device(), include_gone=args.all)
    rows = [
        (
            line.window_start or line.due_at,
            line.external_id,
            line.site_name or line.client,
            line.address,
            _standing(line),
            f"{line.unsent} unsent" if line.unsent else "",
            "! needs your decision" if line.needs_decision else "",
            line.task_id,
        )
        for line in found
    ]
    lines = lines_of(rows)
    if not session.device().replica.is_complete():
        fault = FAULTS["jobs_not_fetched"]
        return Answer(found, (*lines, f"{fault.title}. {fault.safe} {fault.todo}"))
    return Answer(found, lines or ("No jobs.",))


def _standing(line: JobLine) -> str:
    if line.removed is not None or line.returned is None:
        return line.removed or line.state
    return f"returned: {line.returned}" if line.returned else "returned"


def _job(session: Session, args: argparse.Namespace) -> Answer:
    view = jobs.show_job(session.device(), args.task)
    return Answer(view, _job_lines(view))


_TYPED = {
    "accept": "workmate do accept {task}",
    "start_travel": "workmate do start-travel {task}",
    "arrive": "workmate do arrive {task}",
    "submit_proof": "workmate proof submit {task}",
    "decline": "workmate do decline {task} --reason TEXT",
    "hand_over": "workmate proof hand-over {task}",
    "observe": "workmate note {task} TEXT",
}
"""What to type for each act that the lifecycle knows."""


def _job_lines(view: JobView) -> tuple[str, ...]:
    task = view.task
    personal = task.personal or {}
    position = task.position or {}
    window = f"{task.window.start} to {task.window.end}" if task.window else None
    head = f"{visible(task.external_id)}  {view.removed or task.state}  v{task.version}"
    actions = [
        (
            "do" if action.allowed else "-",
            _TYPED.get(action.name, action.name).format(task=task.task_id),
            "" if action.allowed else action.reason,
        )
        for action in view.actions
    ]
    history = [
        (
            line.occurred_at,
            line.name,
            line.shown.symbol,
            line.shown.words,
            line.sentence or line.reason or "",
        )
        for line in view.history
    ]
    return (
        head,
        *paragraph("Client", personal.get("client")),
        *paragraph("Where", personal.get("site_name")),
        *paragraph("", personal.get("address")),
        *paragraph("Pin", position.get("mappls_pin")),
        *paragraph("When", window),
        *paragraph("Due", task.due_at),
        *paragraph("What", personal.get("instructions")),
        *lines_of(
            [("Asked", i["item_id"], i["prompt"]) for i in task.proof_policy["checklist"]]
            + [("Photo", slot["slot"], slot["prompt"]) for slot in task.proof_policy["photos"]]
        ),
        *lines_of(actions),
        *lines_of(history),
    )


def done_answer(done: Done) -> Answer:
    """Return how an act is answered: what was saved, or that there was nothing to do."""
    command = done.command
    value = {
        "task_id": done.task_id,
        "state": done.state,
        "already": done.already,
        "command_id": command.command_id if command else None,
        "name": command.name if command else None,
        "device_seq": command.device_seq if command else None,
        "status": command.status if command else None,
    }
    if done.already:
        return Answer(value, (f"Already so: {done.state}. Nothing was done twice.",))
    name = command.name if command else "act"
    return Answer(value, (f"Saved on this laptop: {name}. The job is {done.state} here.",))


def _accept(session: Session, args: argparse.Namespace) -> Answer:
    return done_answer(acts.accept(session.device(), args.task))


def _start_travel(session: Session, args: argparse.Namespace) -> Answer:
    return done_answer(acts.start_travel(session.device(), args.task))


def _decline(session: Session, args: argparse.Namespace) -> Answer:
    return done_answer(acts.decline(session.device(), args.task, args.reason_code, args.reason))


def _arrive(session: Session, args: argparse.Namespace) -> Answer:
    device = session.device()
    fix = place_of(args, device.now())
    return done_answer(acts.arrive(device, args.task, fix=fix, no_fix_reason=args.no_fix))


def _note(session: Session, args: argparse.Namespace) -> Answer:
    return done_answer(submission.note(session.device(), args.task, " ".join(args.text)))


def _eta(session: Session, args: argparse.Namespace) -> Answer:
    device = session.device()
    travel = submission.Travel(
        arrive_at=args.arrive_at,
        fix=place_of(args, device.now()),
        deviation_m=args.deviation_m,
    )
    return done_answer(submission.tell_arrival(device, args.task, travel))
