"""The page of all codes, read from the catalogue, with the sentence that `explain` makes of each.

The sentences are shown with example inputs, because an outcome's own inputs make them.
"""

from collections.abc import Iterable
from typing import Any

from pages.markdown import bullets, code, page, table
from workmate_shared.kernel.catalogue import Entry, Recorded
from workmate_shared.kernel.explain import explain

EXAMPLE: dict[str, Any] = {
    "actor": "usr_ravi",
    "after": "c-41",
    "after_outcome": "conflict",
    "aggregate_id": "t-7",
    "allowed": ["en_route"],
    "command": "arrive",
    "credential_id": "tok-3",
    "device_id": "d-2",
    "expected_version": 3,
    "changed_version": 5,
    "external_id": "42254749",
    "findings": [{"code": "photos_missing", "about": "after"}],
    "hashes": ["9f86d081", "60303ae2"],
    "kind": "purge",
    "manifest_id": "m-5",
    "manifest_status": "approved",
    "missing": ["electrical"],
    "on_behalf_of": "usr_ravi",
    "reason": "lacks skills",
    "role": "auditor",
    "source": "nyc311",
    "state": "in_progress",
    "version": 5,
    "worker_id": "usr_w1",
}
"""Example inputs by name, as outcomes store them in their details."""

TITLES = {
    Recorded.CONFLICT: "Conflicts",
    Recorded.REJECTED: "Rejections",
    Recorded.RETRY: "Retries",
    Recorded.REFUSED: "Refusals",
}
MEANINGS = {
    Recorded.CONFLICT: "The command met a world that had moved on. Recorded for ever under its key, "
    "with a receipt; whoever acted looks and chooses.",
    Recorded.REJECTED: "A rule forbids the command. Recorded for ever under its key, with a receipt.",
    Recorded.RETRY: "Nothing was decided and nothing recorded. The sender keeps the command and "
    "sends the same bytes again.",
    Recorded.REFUSED: "The request was not taken. Nothing is recorded, and an idempotency key that "
    "came with it is still free, unless it had been used before.",
}
"""What each way of recording a code means."""


def codes_page(entries: Iterable[Entry]) -> str:
    """Return the page: one table over all codes, then each with its sentences."""
    by_code = sorted(entries, key=lambda entry: entry.code)
    groups = [[entry for entry in by_code if entry.recorded is recorded] for recorded in Recorded]
    parts: list[str] = []
    for recorded, group in zip(Recorded, groups, strict=True):
        parts += [f"## {TITLES[recorded]}", MEANINGS[recorded], *map(_entry, group)]
    return page(
        "Codes",
        "Every answer that is not plain success names one of these codes, and so does the `type` of "
        "its problem: `urn:workmate:problem:<code>` (RFC 9457). A program may rely on the code; "
        "the words may change. A code is recorded for ever, or never: none is both.",
        table(
            ("Code", "Status", "Recorded", "Title", "Who must act"),
            (_summary(entry) for group in groups for entry in group),
        ),
        *parts,
    )


def _summary(entry: Entry) -> tuple[str, ...]:
    return (
        f"[`{entry.code}`](#{entry.code})",
        str(entry.status),
        _recorded(entry),
        entry.title,
        entry.who,
    )


def _recorded(entry: Entry) -> str:
    kept = entry.recorded in (Recorded.CONFLICT, Recorded.REJECTED)
    return f"as {entry.recorded.value}" if kept else f"no ({entry.recorded.value})"


def _entry(entry: Entry) -> str:
    sentence = explain(entry.recorded.value, entry.code, EXAMPLE)
    points = [
        f"**What happened:** {entry.happened}",
        f"**What is safe:** {entry.safe}",
        f"**What to do:** {entry.todo}",
        f"**Who must act:** {entry.who}",
        f"**Status:** {entry.status}; recorded: {_recorded(entry)}",
    ]
    if sentence != entry.happened:
        points.append(f"**Explained, for example:** {code(sentence)}")
    return f"### {entry.code}\n\n{entry.title}.\n\n{bullets(points)}"
