"""SIGNATURES (bodies follow within the hour): the durable side of the device, one database.

All methods block (run them in worker threads), may be called from several threads and processes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

from workmate_client.config import ProfilePaths, Settings
from workmate_client.journal.files import Hook, no_hook
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.rows import (
    Conservation,
    Draft,
    EvidenceItem,
    Notice,
    Profile,
    QueuedCommand,
    SignedParts,
)
from workmate_client.ports import Clock, Files, Random
from workmate_shared.wire.dsse import Envelope
from workmate_shared.wire.messages import Outcome


class Journal:
    """`journal.db` and `unsent.log` of one profile."""

    @classmethod
    def open(
        cls,
        paths: ProfilePaths,
        keys: ProfileKeys,
        *,
        files: Files,
        clock: Clock,
        random: Random,
        settings: Settings,
        hook: Hook = no_hook,
    ) -> Self:
        """Open, check, recover and reconcile. Raises JournalError, StorageError."""

    def close(self) -> None: ...

    # --- profile
    def profile(self) -> Profile | None: ...
    def save_profile(self, profile: Profile) -> None: ...
    def update_profile(self, **changes: Any) -> Profile:
        """Change named fields of the Profile struct in one transaction, return the new one."""

    def update_newest_header(self, header: Envelope, batch: int) -> bool:
        """Keep a verified batch header if its number is above the one held (same lineage)."""

    # --- queue
    def issue(self, build: Callable[[int], SignedParts]) -> QueuedCommand: ...
    def issue_all(self, build: Callable[[int], Sequence[SignedParts]]) -> tuple[QueuedCommand, ...]:
        """Several commands as one act, whole or not at all; the int is the first device_seq."""

    def pending(self) -> tuple[QueuedCommand, ...]:
        """No outcome in the profile's lineage, local order."""

    def commands(self, aggregate_id: str | None = None) -> tuple[QueuedCommand, ...]: ...
    def command(self, command_id: str) -> QueuedCommand | None: ...
    def record_wait(
        self,
        command_id: str,
        code: str | None,
        *,
        blocked_by: str | None = None,
        next_attempt_at: str | None = None,
    ) -> None:
        """Note that a try ended without outcome; counts an attempt. code None: waits for nothing."""

    def record_outcome(self, command_id: str, outcome: Outcome) -> bool:
        """Record one of the four outcomes for the profile's lineage; False if it has one already."""

    def record_outcomes(self, outcomes: Sequence[Outcome]) -> int:
        """The same for a whole answer, in one transaction; returns how many were new."""

    def set_aside(self, command_id: str, reason: str) -> QueuedCommand: ...
    def bring_back(self, command_id: str) -> QueuedCommand: ...
    def conservation(self) -> Conservation: ...

    # --- evidence
    def add_evidence(self, item: EvidenceItem) -> bool:
        """False if this file (task_id, hash) is listed already; the row stays as it is."""

    def evidence(self, task_id: str | None = None) -> tuple[EvidenceItem, ...]: ...
    def evidence_item(self, task_id: str, content_hash: str) -> EvidenceItem | None: ...
    def mark_uploaded(
        self,
        task_id: str,
        content_hash: str,
        uploaded_bytes: int,
        *,
        upload_url: str | None,
        done: bool = False,
    ) -> None: ...
    def record_upload_wait(
        self,
        task_id: str,
        content_hash: str,
        code: str | None,
        *,
        next_attempt_at: str | None = None,
    ) -> None:
        """Counts an attempt."""

    def mark_verified(self, task_id: str, hashes: Sequence[str]) -> None: ...
    def quarantine(self, task_id: str, content_hash: str, reason: str) -> None: ...
    def release_quarantine(self, task_id: str, content_hash: str) -> None: ...

    # --- drafts
    def save_draft(self, task_id: str, form: str, content: bytes) -> Draft: ...
    def draft(self, task_id: str, form: str) -> Draft | None: ...
    def drafts(self) -> tuple[Draft, ...]: ...
    def delete_draft(self, task_id: str, form: str) -> None: ...

    # --- what the worker must be told
    def notices(self) -> tuple[Notice, ...]: ...
    def add_notice(self, code: str, detail: str) -> None: ...
    def dismiss_notice(self, notice_id: int) -> None: ...


# In journal/authoring.py (used by service and by sync for store_evidence):
# class Author:
#     def __init__(self, journal: Journal, keys: ProfileKeys, clock: Clock, random: Random) -> None
#     def issue(self, kind: type[Command], aggregate_id: str, *, expected_version: int | None = None,
#               after: str | None = None, supersedes: str | None = None,
#               personal: tuple[object, str] | None = None, position: tuple[object, str] | None = None,
#               disclosures: Mapping[str, Disclosure] = {}, **fields) -> QueuedCommand
#         e.g. author.issue(StoreEvidence, task_id, hashes=(…))
