"""Submit a proof, hand evidence over, write a note, say when one will arrive.

The manifest is one byte string, made once in the step that saves the command; with it the proof in
the making ends. A proof with something missing is not submitted unless the worker insists.
"""

from msgspec import Struct

from workmate_client.journal.authoring import Act, Value
from workmate_client.service.acts import Done, perform, retention_of, situation
from workmate_client.service.copies import CopyCheck
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.drafts import (
    PROOF_FORM,
    ProofDraft,
    gather,
    manifest_of,
    read_draft,
    values_of,
)
from workmate_client.service.proof import ProofRemark, judge_draft, told
from workmate_client.service.situation import Situation
from workmate_shared.kernel.command import Command
from workmate_shared.kernel.instants import parse_instant
from workmate_shared.tasks import commands as c
from workmate_shared.tasks.manifest import content_hash, encode_manifest
from workmate_shared.tasks.values import Fix, NotePersonal
from workmate_shared.wire.binary import to_base64
from workmate_shared.wire.commitment import Disclosure


class ProofIncompleteError(ServiceError):
    """Something is still missing; `missing` says what. Nothing was submitted."""

    def __init__(self, missing: tuple[ProofRemark, ...]) -> None:
        sentences = "; ".join(entry.sentence for entry in missing)
        super().__init__("proof_incomplete", f"not complete yet: {sentences}")
        self.missing = missing


class Travel(Struct, frozen=True, kw_only=True):
    """When the worker expects to arrive (RFC 3339), where he is, how far off the route in metres."""

    arrive_at: str
    fix: Fix | None = None
    deviation_m: int | None = None


def submit_proof(device: Device, task_id: str, *, incomplete: bool = False) -> Done:
    """Submit what was gathered; `incomplete` insists although something is missing.

    A file that is damaged or gone counts as missing. Raises ProofIncompleteError, ServiceError
    `nothing_gathered`, ActRefusedError.
    """
    check = CopyCheck(device)
    # Read before the step that nobody else may write in; what comes in between is read there.
    check.findings(task_id, _draft(device, situation(device, task_id)))

    def make(found: Situation) -> Act:
        draft = _draft(device, found)
        missing, _ = judge_draft(draft, found, device.now())
        missing = (*missing, *check.findings(task_id, draft))
        if missing and not incomplete:
            raise ProofIncompleteError(tuple(told(finding) for finding in missing))
        return _carrying(device, found, draft, c.SubmitProof)

    return perform(device, task_id, make, finishes=PROOF_FORM)


def hand_over(device: Device, task_id: str) -> Done:
    """Give the office what was gathered to look at, also for a job that is no longer one's own.

    Raises ServiceError `nothing_gathered`, ActRefusedError.
    """

    def make(found: Situation) -> Act:
        draft = _draft(device, found)
        if draft.is_empty:
            raise ServiceError("nothing_gathered", "nothing has been gathered for this job")
        return _carrying(device, found, draft, c.HandOver)

    return perform(device, task_id, make, finishes=PROOF_FORM)


def _draft(device: Device, found: Situation) -> ProofDraft:
    saved = device.journal.draft(found.task_id, PROOF_FORM)
    return read_draft(saved.content if saved else None, found.task.policy_version)


def _carrying(device: Device, found: Situation, draft: ProofDraft, kind: type[Command]) -> Act:
    """Make the manifest of a draft, and the act that carries it."""
    gathered = gather(draft)
    disclosures: dict[str, Disclosure] = {}
    commitments: list[str | None] = []
    for value in values_of(gathered, found):
        made = device.author.disclose(value) if value is not None else None
        commitments.append(made[0] if made else None)
        if made is not None:
            disclosures[made[0]] = made[1]
    personal, position = commitments
    manifest = encode_manifest(
        manifest_of(
            gathered,
            found,
            manifest_id=device.random.uuid7(),
            capture_time=device.now(),
            personal=personal,
            position=position,
        )
    )
    fields = {"manifest": to_base64(manifest), "content_hash": content_hash(manifest)}
    return Act(kind=kind, aggregate_id=found.task_id, fields=fields, disclosures=disclosures)


def note(device: Device, task_id: str, text: str) -> Done:
    """Write down something about a job for the office to see. Raises ServiceError `note_empty`."""
    written = text.strip()
    if not written:
        raise ServiceError("note_empty", "the note is empty")

    def make(found: Situation) -> Act:
        return Act(
            kind=c.Observe,
            aggregate_id=task_id,
            fields={"readings": (c.Note(at=device.now()),)},
            personal=Value(NotePersonal(note=written), retention_of(found).personal),
        )

    return perform(device, task_id, make)


def tell_arrival(device: Device, task_id: str, travel: Travel) -> Done:
    """Tell the office when one will arrive; with a position and a deviation where they are known.

    Raises ServiceError `time_invalid` for a time without offset, or that no calendar has.
    """
    try:
        parse_instant(travel.arrive_at)
    except ValueError as error:
        detail = f"{travel.arrive_at} is not a time with its offset from UTC"
        raise ServiceError("time_invalid", detail) from error

    def make(found: Situation) -> Act:
        now = device.now()
        readings: list[c.Reading] = [c.Eta(at=now, arrive_at=travel.arrive_at)]
        if travel.deviation_m is not None:
            readings.append(c.RouteDeviation(at=now, metres=travel.deviation_m))
        position = None
        if travel.fix is not None:
            readings.append(c.PositionReading(at=now))
            position = Value(travel.fix, retention_of(found).position)
        return Act(
            kind=c.Observe,
            aggregate_id=task_id,
            fields={"readings": tuple(readings)},
            position=position,
        )

    return perform(device, task_id, make)
