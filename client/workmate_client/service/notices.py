"""What happened to the stores and has to be told, as sentences: what it was, and what to do."""

from workmate_client.journal.rows import Notice

NOTICES: dict[str, str] = {
    "journal_rebuilt": "The journal of this laptop was damaged and has been rebuilt: {detail}. "
    "Look at your jobs and your proofs before you go on.",
    "acts_recovered": "Recovered: {detail}.",
    "unsent_log_damaged": "A part of the unsent log was damaged; it has been written anew from the "
    "journal.",
    "evidence_found": "A captured file that was not listed is listed again: {detail}.",
    "evidence_damaged": "A captured file cannot be read: {detail}. Add the photo again.",
    "evidence_missing": "A captured file is gone from this laptop: {detail}. Add the photo again.",
    "evidence_set_aside": "A file is no longer sent: {detail}. Add the photo again.",
    "commands_lost": "Acts that were done on this laptop are missing: {detail}. Tell the office.",
    "log_fork": "The server showed two versions of its log ({detail}). Tell the office.",
    "replica_dropped": "The list of jobs was damaged ({detail}). Your own work is safe. "
    "Fetch the list: workmate sync once",
    "replica_missing": "The list of jobs was gone. Your own work is safe. "
    "Fetch the list: workmate sync once",
    "wipe_ordered": "The office asks to wipe this laptop; everything was offered to the server "
    "first. Nothing is removed by itself: see 'safe to wipe' in workmate status, then hand the "
    "laptop to the office.",
}
"""One sentence for each notice; `{detail}` is filled in."""


def told_notice(notice: Notice) -> str:
    """Return a notice as a sentence; an unknown one names itself."""
    known = NOTICES.get(notice.code)
    if known is None:
        return f"{notice.code.replace('_', ' ')}: {notice.detail}"
    return known.replace("{detail}", notice.detail)
