"""Who must hear of a change to a task, and who must be told that it left their sight."""

from msgspec import Struct

from workmate_shared.tasks.task import Task

OFFICE = "office"
DEVICES = "devices"


def worker_audience(principal_id: str) -> str:
    """Return the audience of one worker."""
    return f"worker:{principal_id}"


class FeedEntry(Struct, frozen=True):
    """One audience of a change; `removed_why` says that the task left its sight, and why."""

    audience: str
    removed_why: str | None = None


_WHY = {"unassigned": "released", "assigned": "reassigned"}


def feed_entries(before: Task | None, after: Task) -> tuple[FeedEntry, ...]:
    """Return the audiences of the change from `before` to `after`, each once."""
    entries = [FeedEntry(OFFICE)]
    if after.assignee_id is not None:
        entries.append(FeedEntry(worker_audience(after.assignee_id)))
    gone = before.assignee_id if before else None
    if gone is not None and gone != after.assignee_id:
        entries.append(FeedEntry(worker_audience(gone), _WHY.get(after.state, after.state)))
    return tuple(entries)
