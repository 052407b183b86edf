"""SIGNATURES (bodies follow within the hour): what the server said, and how far it was heard."""

from typing import Self
from msgspec import Struct
from workmate_client.config import ProfilePaths, Settings
from workmate_client.errors import DeviceError
from workmate_client.journal.keys import ProfileKeys
from workmate_client.ports import Clock, Files
from workmate_shared.tasks.task import Task
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.messages import Pull


class PageDoesNotJoinError(DeviceError):
    """A page that does not begin where the last one ended; nothing was stored."""

    code = "page_does_not_join"


class ReplicaTask(Struct, frozen=True, kw_only=True):
    task: Task
    seq: int
    disclosures: dict[str, Disclosure] = {}
    removed: str | None = None


class Replica:
    @classmethod
    def open(
        cls,
        paths: ProfilePaths,
        keys: ProfileKeys,
        *,
        files: Files,
        clock: Clock,
        settings: Settings,
    ) -> Self: ...
    def close(self) -> None: ...

    dropped: str | None  # why the file was dropped at open, if it was

    def cursor(self) -> str | None:
        """None: nothing pulled yet, or the cursor is void: ask for a fresh snapshot."""

    def apply_page(self, pull: Pull) -> int:
        """Store rows and cursor in one transaction. PageDoesNotJoinError."""

    def start_snapshot(self) -> None:
        """The cursor is void: pull from the start; old rows stay until the last page."""

    def task(self, task_id: str) -> ReplicaTask | None: ...
    def tasks(self) -> tuple[ReplicaTask, ...]: ...
