"""What is stored, in the words and symbols that are shown: one table, for every screen and command.

State is always a symbol and a word, never colour alone. What is said to be received or verified
rests on a receipt that was verified.
"""

from pathlib import Path
from typing import Literal

from msgspec import Struct

from workmate_client.journal.rows import EvidenceItem, QueuedCommand
from workmate_client.service.faults import fault_of
from workmate_shared.tasks.manifest import ManifestStatus

Stored = Literal[
    "draft",
    "draft_ready",
    "pending",
    "waiting",
    "committed",
    "committed_files_missing",
    "unchanged",
    "lost",
    "set_aside",
    "superseded",
    "file_waiting",
    "file_uploading",
    "file_sent",
    "file_verified",
    "file_quarantined",
]


class Shown(Struct, frozen=True):
    """A symbol and words. `needs_decision` asks the worker to choose."""

    symbol: str
    words: str
    needs_decision: bool = False


SHOWN: dict[Stored, Shown] = {
    "draft": Shown(".", "draft"),
    "draft_ready": Shown("=", "ready to submit"),
    "pending": Shown("~", "saved on this laptop"),
    "waiting": Shown("~", "waiting: {why}"),
    "committed": Shown("*", "verified (receipts held)"),
    "committed_files_missing": Shown("^", "received; files missing: {why}"),
    "unchanged": Shown("*", "already so on the server"),
    "lost": Shown("x", "needs your decision", needs_decision=True),
    "set_aside": Shown("-", "set aside: {why}"),
    "superseded": Shown("-", "done again"),
    "file_waiting": Shown("~", "saved on this laptop"),
    "file_uploading": Shown("^", "sending {why}"),
    "file_sent": Shown("^", "sent, not yet confirmed"),
    "file_verified": Shown("*", "verified (receipt held)"),
    "file_quarantined": Shown("x", "set aside: {why}; add it again", needs_decision=True),
}
"""The table. `{why}` is filled in."""

_WAITS = {
    "blocked_by": "for an earlier step",
    "bytes_missing": "for its files",
    "unauthenticated": "sign in",
    "disk_full": "disk full",
    "too_large": "too large",
    "not_found": "until the server knows this job",
    "version_ahead": "until the server has caught up",
    "server_unreachable": "no connection",
    "waiting": "for its time",
    "no_answer": "the server did not answer it",
    "stalled": "the connection stood still",
    "connection_cut": "the connection broke",
    "answer_unreadable": "something else than our server answered",
    "server_busy": "the server asked for a pause",
    "overloaded": "the server is busy",
    "stopped_by_you": "stopped by you",
    "outcome_missing": "the server said nothing about it",
    "receipt_missing": "the answer came without a receipt",
    "receipt_malformed": "the receipt cannot be read",
    "receipt_mismatch": "the receipt is that of something else",
    "receipt_unproven": "the receipt proves nothing",
    "outcome_repeated": "the server answered it twice",
    "receipt_signature": "the receipt is not signed by our server",
    "receipt_path": "the receipt does not fit the server's log",
    "receipt_fork": "the server shows another log than before",
    "lineage_left": "the server's records were restored meanwhile",
    "upload_not_allowed": "until the act that names it has arrived",
    "command_unanswered": "until the act that names it has arrived",
    "metered_link": "for a link that is not metered",
    "upload_conflict": "the upload has to begin anew",
    "sealed_file_missing": "its copy is gone",
    "sealed_header_damaged": "its copy is damaged",
    "sealed_length_wrong": "its copy is damaged",
    "sealed_piece_damaged": "its copy is damaged",
    "sealed_hash_wrong": "its copy is damaged",
}

_REVIEWS = {
    "submitted": "in review",
    "handed_over": "with the office",
    "approved": "approved",
    "rejected": "returned",
    "dismissed": "dismissed",
}

FINDINGS: dict[str, str] = {
    "answer_missing": "{about}: not answered yet",
    "answer_invalid": "{about}: must be {wanted}",
    "answer_out_of_bounds": "{about}: must be {wanted}",
    "answer_does_not_pass": "{about}: only {wanted} passes",
    "photos_missing": "{about}: {found} of at least {wanted} photos",
    "too_many_photos": "{about}: {found} photos, at most {wanted}",
    "photo_without_position": "{about}: the photo has no position",
    "photo_without_time": "{about}: when the photo was taken is not recorded",
    "photo_too_old": "{about}: taken more than {wanted} before",
    "slot_unknown": "{about}: the policy has no photo {found}",
    "not_an_image": "{about}: is {found}, not an image",
    "signature_missing": "signature of the {about} is missing",
    "name_missing": "{about}: the name is missing",
    "consent_missing": "consent to version {wanted} is missing",
    "consent_differs": "{about}: agreed to version {found}, wanted {wanted}",
    "outside_fence": "{about}: taken more than {wanted} from the site",
    "policy_differs": "the rules changed after this proof was begun",
    "file_missing": "file {about} is missing",
    "file_damaged": "{about}: the file is damaged or gone; add it again",
    "size_differs": "file {about} has another size: {wanted}",
}
"""One sentence for each finding of a proof."""

REMARKS: dict[str, str] = {
    "healed": "its copy here was damaged or gone; it is whole again and is sent",
    "same_file": "this file is in the proof already",
    "already_used": "this photo was used for another job",
    "looks_old": "this photo looks older than this visit",
    "looks_early": "by its own clock this photo was taken in the future",
    "looks_far": "this photo looks taken far from the site",
    "not_an_image": "this file is not an image",
    "exif_unreadable": "what the camera wrote about this photo cannot be read",
    "no_time": "when the photo was taken is not recorded",
    "no_position": "where the photo was taken is not recorded",
    "zone_assumed": "the photo names no time zone; this laptop's is assumed",
    "policy_changed": "the rules changed after this proof was begun",
}
"""One sentence for each remark about a photo or a draft; none of them blocks anything."""


def show(stored: Stored, why: str = "") -> Shown:
    """Return the table's entry, filled in."""
    entry = SHOWN[stored]
    return Shown(entry.symbol, entry.words.format(why=why), entry.needs_decision)


def shown_act(
    command: QueuedCommand, *, files_missing: bool = False, review: ManifestStatus | None = None
) -> Shown:
    """Return how a command is shown.

    `files_missing`: some file of its task is not verified. `review` is what became of the proof that
    it carried.
    """
    outcome = command.outcome
    if outcome is None:
        return (
            show("waiting", waiting_for(command.wait_code))
            if command.wait_code
            else show("pending")
        )
    if outcome.status == "committed":
        proves = command.name in ("submit_proof", "hand_over")
        if proves and files_missing:
            return show("committed_files_missing", "still on this laptop")
        reviewed = show("committed")
        word = _REVIEWS.get(review or "")
        return Shown(reviewed.symbol, f"{reviewed.words}; {word}") if word else reviewed
    if outcome.status == "unchanged":
        return show("unchanged")
    if command.superseded_by is not None:
        return show("superseded")
    if command.set_aside_at is not None:
        return show("set_aside", command.set_aside_reason or "")
    return show("lost")


def shown_file(item: EvidenceItem) -> Shown:
    """Return how a captured file is shown."""
    if item.quarantined is not None:
        return show("file_quarantined", waiting_for(item.quarantined))
    if item.verified_at is not None:
        return show("file_verified")
    if item.upload_done_at is not None:
        return show("file_sent")
    if item.wait_code is not None:
        return show("waiting", waiting_for(item.wait_code))
    if item.uploaded_bytes:
        return show("file_uploading", f"{100 * item.uploaded_bytes // item.size_bytes} %")
    return show("file_waiting")


def waiting_for(code: str) -> str:
    """Return what something waits for, in a few words."""
    if code in _WAITS:
        return _WAITS[code]
    fault = fault_of(code)
    return fault.title.lower() if fault else code.replace("_", " ")


def age_words(seconds: float) -> str:
    """Return an age in the largest unit that still says something."""
    for name, length, upto in _UNITS:
        if seconds < upto:
            return f"{int(seconds // length)} {name}"
    return f"{int(seconds // _DAY_SECONDS)} days"


_DAY_SECONDS = 86_400
_UNITS = (("s", 1, 90), ("min", 60, 90 * 60), ("h", 3600, 2 * _DAY_SECONDS))


def sentence(table: dict[str, str], code: str, **words: str | None) -> str:
    """Return the sentence of a code from one of the tables above; an unknown code names itself."""
    filled = {name: word or "?" for name, word in words.items()}
    return table.get(code, code.replace("_", " ")).format_map(filled)


def visible(text: str) -> str:
    """Return text from elsewhere with every control and direction character made visible."""
    return "".join(_spelled(letter) for letter in text)


def visible_name(path: Path) -> str:
    """Return a file's name as text; bytes in it that are not UTF-8 are spelled out."""
    name = path.name.encode("utf-8", "surrogateescape")
    return name.decode("utf-8", "backslashreplace")


# Without these two, Indic words and many emoji fall apart.
_JOINERS = "\u200c\u200d"


def _spelled(letter: str) -> str:
    if letter.isprintable() or letter in _JOINERS:
        return letter
    return f"\\u{{{ord(letter):x}}}"
