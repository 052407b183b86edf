"""`proof`: gather what a job has to show, and submit it."""

import argparse
from pathlib import Path
from typing import Any, get_args

from workmate_client.commands.answer import (
    DONE,
    REFUSED,
    Answer,
    Session,
    lines_of,
    paragraph,
    refusal_value,
)
from workmate_client.commands.work import done_answer
from workmate_client.errors import DeviceError
from workmate_client.service import photos, proof, submission
from workmate_client.service.faults import fault_of
from workmate_client.service.photos import AddedPhoto
from workmate_client.service.proof import ProofStatus
from workmate_client.service.wording import visible, visible_name
from workmate_shared.tasks.policy import Signer


def add_proofs(subcommands: Any, common: argparse.ArgumentParser) -> None:
    """Add `proof` and what belongs to it."""
    group = subcommands.add_parser("proof", help="gather and submit the proof of a job")
    steps = group.add_subparsers(dest="step", required=True, metavar="STEP")

    def step(name: str, run: Any, tells: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = steps.add_parser(
            name, parents=[common], help=tells, description=tells
        )
        parser.add_argument("task", metavar="TASK")
        parser.set_defaults(run=run)
        return parser

    step("status", _status, "what is asked, what was given, what is missing")
    answer = step("answer", _answer, "answer an item of the checklist")
    answer.add_argument("item", metavar="ITEM")
    answer.add_argument("value", metavar="VALUE", nargs="?", help="left out: take it back")
    photo = step("photo", _photo, "add photos, or take one out of the proof")
    photo.add_argument("files", metavar="FILE", nargs="*", type=Path)
    photo.add_argument("--slot", metavar="SLOT")
    photo.add_argument("--remove", metavar="HASH", help="take a photo out of the proof")
    sign = step("sign", _sign, "sign by name, or say why somebody refuses to")
    sign.add_argument("--signer", choices=get_args(Signer), default="worker")
    sign.add_argument("--name", metavar="NAME")
    sign.add_argument("--refused", metavar="REASON")
    step("consent", _consent, "record who agreed to the text").add_argument(
        "--name", metavar="NAME", required=True
    )
    submit = step("submit", _submit, "submit the proof for review")
    submit.add_argument("--incomplete", action="store_true", help="although something is missing")
    step("hand-over", _hand_over, "give the office what was gathered so far")


def _status(session: Session, args: argparse.Namespace) -> Answer:
    status = proof.proof_status(session.device(), args.task)
    told = _told(status)
    return Answer(told.value, (*_gathered_lines(status), *told.lines))


def _gathered_lines(status: ProofStatus) -> tuple[str, ...]:
    """Return what is asked, and what was given so far, for people."""
    policy, draft = status.policy, status.draft
    asked = [
        ("asked", item.item_id, item.prompt, _given(draft.answers.get(item.item_id)))
        for item in policy.checklist
    ]
    slots = [
        ("photo", slot.slot, slot.prompt, f"{slot.min} to {slot.max}") for slot in policy.photos
    ]
    taken = [("taken", photo.slot, photo.hash, f"{photo.size} bytes") for photo in draft.photos]
    signed = [
        ("signed", signer, signature.name or f"refused: {signature.refused}", signature.signed_at)
        for signer, signature in draft.signatures.items()
    ]
    agreed = draft.consent
    return (
        *paragraph("Returned", "nobody said why" if status.returned == "" else status.returned),
        *lines_of(asked),
        *lines_of(slots),
        *lines_of(taken),
        *lines_of(signed),
        *paragraph("Consent", policy.consent.text if policy.consent else None),
        *paragraph("Agreed", f"{agreed.name}, {agreed.agreed_at}" if agreed else None),
        *paragraph("Notes", draft.notes),
    )


def _given(value: bool | str | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(not answered)" if value is None else value


def _told(status: ProofStatus) -> Answer:
    value = {
        "task_id": status.task_id,
        "ready": status.ready,
        "returned": status.returned,
        "saved_at": status.saved_at,
        "missing": status.missing,
        "advice": status.advice,
        "draft": status.draft,
        "policy": status.policy,
    }
    rows = [
        *(("missing", remark.about, remark.sentence) for remark in status.missing),
        *(("look", remark.about, remark.sentence) for remark in status.advice),
    ]
    head = "Ready to submit." if status.ready else f"{len(status.missing)} still missing:"
    return Answer(value, (head, *lines_of(rows)))


def _answer(session: Session, args: argparse.Namespace) -> Answer:
    device = session.device()
    proof.answer(device, args.task, args.item, args.value)
    return _told(proof.proof_status(device, args.task))


def _photo(session: Session, args: argparse.Namespace) -> Answer:
    device = session.device()
    if args.remove is not None:
        photos.remove_photo(device, args.task, args.remove)
    added: list[AddedPhoto] = []
    failed: list[tuple[Path, DeviceError]] = []
    for path in args.files:
        try:
            added.append(photos.add_photo(device, args.task, path, args.slot))
        except DeviceError as error:
            if len(args.files) == 1 and args.remove is None:
                raise
            failed.append((path, error))
    status = _told(proof.proof_status(device, args.task))
    value = {
        **status.value,
        "photos": [_photo_value(photo) for photo in added],
        "failed": [{"file": visible_name(path), **refusal_value(e)} for path, e in failed],
    }
    lines = [line for photo in added for line in _photo_lines(photo)]
    lines += [_failed_line(path, error) for path, error in failed]
    return Answer(value, (*lines, *status.lines), REFUSED if failed else DONE)


def _failed_line(path: Path, error: DeviceError) -> str:
    """Return why one file of several was not taken; the others may have been."""
    fault = fault_of(error.code)
    todo = f" {fault.todo}" if fault else ""
    return f"NOT taken: {visible_name(path)}: {visible(error.detail)} ({error.code}).{todo}"


def _photo_value(photo: AddedPhoto) -> dict[str, Any]:
    item = photo.evidence
    return {
        "hash": item.hash,
        "size": item.size_bytes,
        "media_type": item.media_type,
        "slot": photo.slot,
        "captured_at": item.captured_at,
        "captured_from": item.captured_from,
        "fix": item.fix,
        "added": photo.added,
        "remarks": photo.remarks,
    }


def _photo_lines(photo: AddedPhoto) -> list[str]:
    item = photo.evidence
    healed = any(remark.code == "healed" for remark in photo.remarks)
    verb = "Saved" if photo.added or healed else "Already there"
    name = visible(item.file_name or item.hash)
    head = f"{verb}: {name} for {photo.slot}, {item.size_bytes} bytes"
    return [head, *(f"  {remark.sentence}" for remark in photo.remarks)]


def _sign(session: Session, args: argparse.Namespace) -> Answer:
    device = session.device()
    proof.sign(device, args.task, args.signer, name=args.name, refused=args.refused)
    return _told(proof.proof_status(device, args.task))


def _consent(session: Session, args: argparse.Namespace) -> Answer:
    device = session.device()
    proof.consent(device, args.task, args.name)
    return _told(proof.proof_status(device, args.task))


def _submit(session: Session, args: argparse.Namespace) -> Answer:
    done = submission.submit_proof(session.device(), args.task, incomplete=args.incomplete)
    return done_answer(done)


def _hand_over(session: Session, args: argparse.Namespace) -> Answer:
    return done_answer(submission.hand_over(session.device(), args.task))
