"""Gather the proof of a job: answers, signatures, consent, notes; every change is saved at once.

What is entered is judged on the spot by the policy's own rules, and what is refused changes nothing.
A photo has a module of its own.
"""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from workmate_client.journal.rows import EvidenceItem
from workmate_client.service.acts import situation
from workmate_client.service.copies import CopyCheck
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.drafts import (
    PROOF_FORM,
    DraftConsent,
    DraftSignature,
    ProofDraft,
    facts_of,
    gather,
    manifest_of,
    read_draft,
)
from workmate_client.service.jobs import returned_for
from workmate_client.service.signatures import check_name, draw_signature
from workmate_client.service.situation import Situation
from workmate_client.service.wording import FINDINGS, REMARKS, sentence
from workmate_shared.tasks import policy as p
from workmate_shared.tasks.proof import Finding, advise, check_answer, evaluate

_YES = frozenset({"yes", "y", "true", "1"})
_NO = frozenset({"no", "n", "false", "0"})


class ProofRemark(Struct, frozen=True, omit_defaults=True):
    """One thing about the proof: a stable code, what it is about, and a sentence."""

    code: str
    about: str
    sentence: str


class ProofStatus(Struct, frozen=True, kw_only=True):
    """How far a proof is: what is still missing or wrong, and what only ought to be seen.

    `returned` is why the last one was sent back, empty if nobody said why, None if it was not.
    `saved_at` is None where nothing has been gathered. `policy` is what must be shown.
    """

    task_id: str
    policy: p.ProofPolicy
    draft: ProofDraft
    saved_at: str | None
    missing: tuple[ProofRemark, ...]
    advice: tuple[ProofRemark, ...]
    returned: str | None = None

    @property
    def ready(self) -> bool:
        """Whether the policy finds nothing missing."""
        return not self.missing


DraftEdit = Callable[[ProofDraft], ProofDraft]
"""Given a draft, returns the changed one; what it raises changes nothing."""


def proof_status(device: Device, task_id: str) -> ProofStatus:
    """Return how far the proof of a task is. Raises ServiceError `not_found`."""
    found = situation(device, task_id)
    saved = device.journal.draft(task_id, PROOF_FORM)
    draft = read_draft(saved.content if saved else None, found.task.policy_version)
    missing, advice = judge_draft(draft, found, device.now())
    missing = (*missing, *CopyCheck(device).findings(task_id, draft))
    evidence = device.journal.evidence(task_id)
    remarks = (*_remarks(draft, found), *_photo_remarks(draft, evidence))
    return ProofStatus(
        task_id=task_id,
        policy=found.task.proof_policy,
        draft=draft,
        saved_at=saved.saved_at if saved else None,
        missing=tuple(told(finding) for finding in missing),
        advice=(*(told(finding) for finding in advice), *remarks),
        returned=returned_for(found),
    )


def judge_draft(
    draft: ProofDraft, found: Situation, now: str
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return what keeps a draft from completing the task, and what only ought to be seen."""
    gathered = gather(draft)
    manifest = manifest_of(gathered, found, manifest_id="draft", capture_time=now)
    facts = facts_of(gathered, found, now)
    policy = found.task.proof_policy
    return evaluate(policy, manifest, facts), advise(policy, manifest, facts)


def told(finding: Finding) -> ProofRemark:
    """Return a finding with its sentence."""
    words = {"about": finding.about, "wanted": finding.wanted, "found": finding.found}
    return ProofRemark(finding.code, finding.about, sentence(FINDINGS, finding.code, **words))


def _remarks(draft: ProofDraft, found: Situation) -> tuple[ProofRemark, ...]:
    if draft.is_empty or draft.policy_version == found.task.policy_version:
        return ()
    return (remark("policy_changed", "policy"),)


def _photo_remarks(
    draft: ProofDraft, evidence: tuple[EvidenceItem, ...]
) -> tuple[ProofRemark, ...]:
    used = {photo.hash: photo.slot for photo in draft.photos}
    return tuple(
        remark(code, used[item.hash])
        for item in evidence
        if item.hash in used
        for code in item.remarks
    )


def remark(code: str, about: str) -> ProofRemark:
    """Return a remark with its sentence."""
    return ProofRemark(code, about, sentence(REMARKS, code))


def edit_draft(device: Device, task_id: str, edit: DraftEdit) -> ProofDraft:
    """Change the proof in the making of a task, saved when this returns, and return it."""
    found = situation(device, task_id)
    saved = device.journal.edit_draft(task_id, PROOF_FORM, changed_by(edit, found))
    return read_draft(saved.content, found.task.policy_version)


def changed_by(edit: DraftEdit, found: Situation) -> Callable[[bytes | None], bytes]:
    """Return an edit as a change of the saved bytes."""
    policy_version = found.task.policy_version
    return lambda content: msgspec.json.encode(edit(read_draft(content, policy_version)))


def answer(device: Device, task_id: str, item_id: str, text: str | None) -> ProofDraft:
    """Answer a checklist item, or take the answer back with None.

    Raises ServiceError: `item_unknown`, or the finding's code with what would be valid.
    """
    found = situation(device, task_id)
    checklist = {item.item_id: item for item in found.task.proof_policy.checklist}
    item = checklist.get(item_id)
    if item is None:
        listed = ", ".join(checklist) or "none"
        raise ServiceError(
            "item_unknown", f"{item_id} is not on the checklist; there are: {listed}"
        )
    value = None if text is None else parse_answer(item, text)

    def edit(draft: ProofDraft) -> ProofDraft:
        answers = {name: given for name, given in draft.answers.items() if name != item_id}
        if value is not None:
            answers[item_id] = value
        return msgspec.structs.replace(draft, answers=answers)

    return edit_draft(device, task_id, edit)


def parse_answer(item: p.ChecklistItem, text: str) -> bool | str:
    """Return typed text as an answer of the item's kind.

    Raises ServiceError with the code of the finding (`answer_invalid`, `answer_out_of_bounds`,
    `answer_missing` for a blank) and what would be valid.
    """
    cleaned = text.strip()
    value: bool | str = cleaned
    if isinstance(item, p.ConfirmItem) and cleaned.lower() in _YES | _NO:
        value = cleaned.lower() in _YES
    wrong = Finding("answer_missing", item.item_id) if not cleaned else check_answer(item, value)
    if wrong is not None:
        raise ServiceError(wrong.code, f"{item.prompt}: {told(wrong).sentence}")
    return value


def note_on_proof(device: Device, task_id: str, text: str | None) -> ProofDraft:
    """Put a note beside the proof, or take it away with None."""
    return edit_draft(device, task_id, lambda draft: msgspec.structs.replace(draft, notes=text))


def sign(
    device: Device,
    task_id: str,
    signer: p.Signer,
    *,
    name: str | None = None,
    refused: str | None = None,
) -> ProofDraft:
    """Sign with a typed name, which is drawn, or record that somebody refuses to, and why.

    Signing again replaces the earlier signature in the proof. Raises ServiceError `name_missing`
    unless there is a name or a reason, and not both; `name_too_long`.
    """
    given, reason = (name or "").strip(), (refused or "").strip()
    if bool(given) == bool(reason):
        raise ServiceError("name_missing", "give a name, or say why the signature is refused")
    check_name(given)
    now = device.now()
    if reason:
        return edit_draft(
            device,
            task_id,
            lambda draft: with_signature(
                draft, signer, DraftSignature(refused=reason, signed_at=now)
            ),
        )
    found = situation(device, task_id)
    # An unknown task is refused before a file is made for it.
    _ = found.task
    signature, item = draw_signature(device, task_id, signer, given)
    change = changed_by(lambda draft: with_signature(draft, signer, signature), found)
    device.journal.add_evidence(item, form=PROOF_FORM, change=change)
    saved = device.journal.draft(task_id, PROOF_FORM)
    return read_draft(saved.content if saved else None, found.task.policy_version)


def with_signature(draft: ProofDraft, signer: p.Signer, signature: DraftSignature) -> ProofDraft:
    """Return the draft with a signature in the place of an earlier one."""
    signatures = {**draft.signatures, signer: signature}
    return msgspec.structs.replace(draft, signatures=signatures)


def consent(device: Device, task_id: str, name: str) -> ProofDraft:
    """Record by name that the policy's exact text was agreed to.

    Raises ServiceError `no_consent_wanted` or `name_missing`.
    """
    wanted = situation(device, task_id).task.proof_policy.consent
    given = name.strip()
    if wanted is None:
        raise ServiceError("no_consent_wanted", "this job asks for no consent")
    if not given:
        raise ServiceError("name_missing", "give the name of whoever agrees")
    check_name(given)
    agreed = DraftConsent(given, wanted.text_version, device.now())
    return edit_draft(device, task_id, lambda draft: msgspec.structs.replace(draft, consent=agreed))
