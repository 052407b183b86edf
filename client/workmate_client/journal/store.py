"""The journal: the durable side of the device in one database, with the unsent log beside it.

Every method blocks, for the disk or for another process's transaction, and may be called from any
thread. The screen's process and the daemon's work on it at the same time. What a method has
returned from is on disk.
"""

from typing import Self

from workmate_client.config import ProfilePaths, Settings
from workmate_client.journal.database import Database
from workmate_client.journal.draft_store import DraftStore
from workmate_client.journal.evidence_store import EvidenceStore
from workmate_client.journal.files import Hook, no_hook
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.outcome_store import OutcomeStore
from workmate_client.journal.profile_store import ProfileStore
from workmate_client.journal.queue_store import QueueStore
from workmate_client.journal.recovery import Opening
from workmate_client.journal.sealed import SealedFolder
from workmate_client.journal.tables import JOURNAL_LAYOUT
from workmate_client.journal.unsent import UnsentLog
from workmate_client.ports import Clock, Files, Random, StorageError


class Journal(ProfileStore, QueueStore, OutcomeStore, EvidenceStore, DraftStore):
    """`journal.db` and `unsent.log` of one profile; each base class is one part of it."""

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
        """Open the journal of a profile, or begin it; check it, and recover what a crash left.

        What was recovered stands in `notices`. On a full disk the journal can only be read. Raises StoreError (`store_too_new`,
        `store_key_wrong`, `store_busy`, `sqlite_too_old`) and StorageError; then nothing was
        changed.
        """
        files.make_folder(paths.folder, label="profile")
        timeout = settings.database_busy_timeout_seconds
        database = Database(paths.journal, keys.journal_key, JOURNAL_LAYOUT, files, timeout)
        unsent = UnsentLog(files, paths.unsent, keys.unsent_key, random=random, settings=settings)
        sealed = SealedFolder(
            files,
            paths.evidence,
            keys.evidence_key,
            clock=clock,
            random=random,
            settings=settings,
        )
        journal = cls(database, unsent, clock, settings, hook)
        with database.locked():
            try:
                Opening(database, unsent, sealed, files, random, hook, journal._now()).open()
            except StorageError as error:
                # Whoever only wants to look must be able to while the disk is full.
                if error.code != "disk_full" or not database.freeze():
                    raise
        return journal

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self._database.close()
