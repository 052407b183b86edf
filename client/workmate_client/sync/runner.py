"""The sync engine of one profile: runs it, one process at a time, and says what happened.

A run holds the profile's lock, so that exactly one process talks to the server. After each run every
command is accounted for: issued = pending + the four outcomes, or the worker is told.
"""

from workmate_client.journal.lock import ProfileLock
from workmate_client.journal.parts import NotEnrolledError
from workmate_client.journal.profile_store import known
from workmate_client.sync.backoff import LINK_UP
from workmate_client.sync.memory import Memory
from workmate_client.sync.parts import SyncParts
from workmate_client.sync.plan import WaitUntil
from workmate_client.sync.report import SyncReport, files_waiting, waiting_of
from workmate_client.sync.run import STOPPED_BY_YOU, Run
from workmate_client.sync.upload import UploadProgress, no_upload_progress
from workmate_client.sync.watchdog import Alarm
from workmate_shared.kernel.instants import format_instant


class SyncRunner:
    """Runs the sync; keep one for as long as the process lives, it remembers what spares requests."""

    def __init__(self, parts: SyncParts, progress: UploadProgress = no_upload_progress) -> None:
        self._parts = parts
        self._memory = Memory(parts, progress)
        self._lock = ProfileLock(
            parts.paths.sync_lock, parts.clock, parts.settings.profile_lock_timeout_seconds
        )

    async def sync_once(self, *, link_bytes: int | None = None) -> SyncReport:
        """Send, pull and upload until nothing can be done now.

        `link_bytes` is the largest file that goes over this link, None for any. Raises LockedError
        while another process syncs this profile, NotEnrolledError, and StoreError or StorageError
        when the device's own disk fails; in none of these cases is anything lost.
        """
        run_blocking = self._parts.run_blocking
        profile = known(await run_blocking(self._parts.journal.profile))
        if not profile.enrolled:
            raise NotEnrolledError("the enrolment has no proven answer yet")
        await run_blocking(self._lock.acquire)
        try:
            self._memory.stopping = False
            run = Run(self._parts, self._memory, link_bytes)
            await run.go()
            return await run_blocking(self._report, run)
        finally:
            self._lock.release()

    def stop(self) -> None:
        """End the present run after the request or the piece that is on its way."""
        self._memory.stopping = True

    def contact_came_back(self) -> None:
        """Try at once at the next run, however often the link failed before."""
        self._memory.link = LINK_UP

    def alarm(self) -> Alarm | None:
        """Return the watchdog's alarm, if there is one now."""
        return self._memory.watchdog.alarm(self._parts.clock.monotonic())

    def _report(self, run: Run) -> SyncReport:
        """Account for everything; blocking."""
        parts, tally = self._parts, run.tally
        counts = parts.journal.conservation()
        if not counts.holds:
            self._memory.recorder.tell_once(
                "commands_lost", "numbers " + (", ".join(map(str, counts.lost)) or "not known")
            )
        stopped, retry_in = self._stopped(run)
        if stopped is None and not (tally.pull_refused or tally.pull_fault):
            parts.journal.update_profile(last_sync_at=format_instant(parts.clock.now()))
        pending = parts.journal.pending()
        files = files_waiting(run.last)
        tried = all(c.attempts or c.command_id in tally.sent for c in pending)
        offered = tried and all(file.set_aside or file.code for file in files)
        wipe_ordered = tally.wipe_ordered and stopped is None and offered
        if wipe_ordered:
            self._memory.recorder.tell_once("wipe_ordered", "")
        return SyncReport(
            sent=len(tally.sent),
            committed=tally.outcomes.get("committed", 0),
            unchanged=tally.outcomes.get("unchanged", 0),
            conflicts=tally.outcomes.get("conflict", 0),
            rejected=tally.outcomes.get("rejected", 0),
            waiting=tuple(waiting_of(command) for command in pending),
            pulled=tally.pulled,
            pull_refused=tally.pull_refused,
            pull_fault=tally.pull_fault,
            uploaded_bytes=tally.uploaded_bytes,
            uploaded_files=tally.uploaded_files,
            files_waiting=files,
            stopped=stopped,
            stopped_detail=run.failure.detail if run.failure and stopped else None,
            retry_in_seconds=retry_in,
            lineage_changed=tally.lineage_changed,
            forked=tally.forked,
            wipe_ordered=wipe_ordered,
            skew=tally.skew,
            conservation=counts,
            alarm=self.alarm(),
        )

    def _stopped(self, run: Run) -> tuple[str | None, float | None]:
        """Return why a run ended early, if it did, and when something can be done again."""
        rest = run.rest
        if not isinstance(rest, WaitUntil):
            return None, None
        wait = max(rest.time - self._parts.now_seconds(), 0.0)
        early = rest.code == STOPPED_BY_YOU or rest.time == self._memory.link.not_before
        return (rest.code if early else None), wait
