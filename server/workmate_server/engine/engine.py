"""The committer: take what has gathered, commit it in batches, answer.

While one batch is being committed the next gathers, so that durability is paid once a batch under
load and once a command without. One command that the engine cannot digest costs only itself.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workmate_server.config import Settings
from workmate_server.engine.answers import replay_stored, retry_with
from workmate_server.engine.blocking import RunBlocking
from workmate_server.engine.changes import ChangeBoard, wait_until
from workmate_server.engine.commit import Commit, Signer
from workmate_server.engine.logkeys import LogKeys
from workmate_server.engine.model import Decided, Submission
from workmate_server.ports import Clock, Hooks
from workmate_server.store import loads
from workmate_server.store.database import Database, DatabaseAwayError, DuplicateError
from workmate_shared.kernel.instants import format_instant
from workmate_shared.wire.codec import encode
from workmate_shared.wire.dsse import BATCH_TYPE, make_envelope

LOG = logging.getLogger(__name__)


class OverloadedError(Exception):
    """More commands are waiting than the server takes; nothing was recorded."""


class StoppingError(Exception):
    """The server finishes its work and takes no new one; nothing was recorded."""


@dataclass(eq=False, slots=True)
class _Job:
    tenant_id: str
    submissions: Sequence[Submission]
    answer: asyncio.Future[list[Decided]]

    @property
    def size(self) -> int:
        return sum(len(submission.payload) for submission in self.submissions)


class Engine:
    """The one way into the log. `start` it, `submit` commands, `stop` it."""

    def __init__(
        self,
        database: Database,
        keys: LogKeys,
        settings: Settings,
        clock: Clock,
        hooks: Hooks,
        run_blocking: RunBlocking,
    ) -> None:
        self._database = database
        self._keys = keys
        self._settings = settings
        self._clock = clock
        self._hooks = hooks
        self._run_blocking = run_blocking
        self._queue: deque[_Job] = deque()
        self._queued = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._committer: asyncio.Task[None] | None = None
        self._uncopied: set[str] = set()
        self._newest: dict[str, int] = {}
        self._heads_written_at = float("-inf")
        self.changes = ChangeBoard(clock, self._poll, settings.relay_poll_seconds)

    async def start(self) -> None:
        """Begin to commit."""
        self._committer = asyncio.create_task(self._work(), name="committer")

    async def stop(self) -> None:
        """Take no new command, finish what is queued, and end."""
        self._stopping = True
        self._wake.set()
        if self._committer is not None:
            await self._committer
        await self._run_blocking(self._write_heads)

    async def submit(self, tenant_id: str, submissions: Sequence[Submission]) -> list[Decided]:
        """Return how each submission ended, in order, after the commit.

        Raises OverloadedError or StoppingError before anything was taken. Cancelling the caller
        cancels nothing that was taken.
        """
        if not submissions:
            return []
        if self._stopping:
            raise StoppingError
        if self._queued + len(submissions) > self._settings.commit_queue_max:
            raise OverloadedError
        loop = asyncio.get_running_loop()
        jobs = [_Job(tenant_id, part, loop.create_future()) for part in self._parts(submissions)]
        self._queue.extend(jobs)
        self._queued += len(submissions)
        self._wake.set()
        answers = await asyncio.gather(*(asyncio.shield(job.answer) for job in jobs))
        return [decided for part in answers for decided in part]

    async def wait_for_change(self, tenant_id: str, after_seq: int, timeout_seconds: float) -> int:
        """Return the tenant's newest seq once it is above `after_seq`, or when time is over."""
        return await self.changes.wait(tenant_id, after_seq, timeout_seconds)

    def _parts(self, submissions: Sequence[Submission]) -> list[Sequence[Submission]]:
        parts: list[list[Submission]] = [[]]
        size = 0
        for submission in submissions:
            full = len(parts[-1]) >= self._settings.batch_commands_max
            large = parts[-1] and size + len(submission.payload) > self._settings.batch_bytes_max
            if full or large:
                parts.append([])
                size = 0
            parts[-1].append(submission)
            size += len(submission.payload)
        return list(parts)

    async def _work(self) -> None:
        while True:
            if not self._queue:
                if self._stopping:
                    return
                await self._idle()
                continue
            jobs = self._gather()
            submissions = [s for job in jobs for s in job.submissions]
            decided = await self._run_blocking(self._settle, jobs[0].tenant_id, submissions)
            self._queued -= len(submissions)
            self.changes.post(jobs[0].tenant_id, self._newest.get(jobs[0].tenant_id, 0))
            start = 0
            for job in jobs:
                part = decided[start : start + len(job.submissions)]
                start += len(job.submissions)
                if not job.answer.done():
                    job.answer.set_result(part)

    async def _idle(self) -> None:
        self._wake.clear()
        if not self._uncopied:
            await self._wake.wait()
            return
        await wait_until(self._wake, self._clock, self._settings.head_copy_interval_seconds)
        if not self._wake.is_set():
            await self._run_blocking(self._copy_heads)

    def _gather(self) -> list[_Job]:
        jobs = [self._queue.popleft()]
        count, size = len(jobs[0].submissions), jobs[0].size
        others: deque[_Job] = deque()
        while self._queue:
            job = self._queue.popleft()
            count_after, size_after = count + len(job.submissions), size + job.size
            fits = (
                count_after <= self._settings.batch_commands_max
                and size_after <= self._settings.batch_bytes_max
            )
            if job.tenant_id != jobs[0].tenant_id:
                others.append(job)
                continue
            if not fits:
                others.append(job)
                break
            jobs.append(job)
            count, size = count_after, size_after
        others.extend(self._queue)
        self._queue = others
        return jobs

    def _settle(self, tenant_id: str, submissions: Sequence[Submission]) -> list[Decided]:
        """Commit a batch and say how it ended, whatever happens on the way."""
        try:
            return self._commit(tenant_id, submissions)
        except DatabaseAwayError:
            LOG.warning("the database did not answer", exc_info=True)
            return self._look_up(tenant_id, submissions)
        except DuplicateError:
            if len(submissions) > 1:
                return self._one_by_one(tenant_id, submissions)
            return self._look_up(tenant_id, submissions)
        except Exception:
            LOG.exception("a batch of %d could not be committed", len(submissions))
            if len(submissions) > 1:
                return self._one_by_one(tenant_id, submissions)
            return [retry_with("internal", submission) for submission in submissions]

    def _one_by_one(self, tenant_id: str, submissions: Sequence[Submission]) -> list[Decided]:
        return [self._settle(tenant_id, [submission])[0] for submission in submissions]

    def _commit(self, tenant_id: str, submissions: Sequence[Submission]) -> list[Decided]:
        key = self._keys.log_key
        signer = Signer(key.key_id, key.seed, key.public_key)
        now = format_instant(self._clock.now())
        with self._database.write() as connection:
            self._hooks.reach("engine.commit.begun")
            commit = Commit(self._database, connection, signer, tenant_id, now)
            decided = commit.run(submissions)
            self._hooks.reach("engine.commit.before")
        self._hooks.reach("engine.commit.after")
        if commit.newest_seq is not None:
            self._newest[tenant_id] = commit.newest_seq
            self._uncopied.add(tenant_id)
            self._copy_heads()
        return decided

    def _look_up(self, tenant_id: str, submissions: Sequence[Submission]) -> list[Decided]:
        """Answer from what is stored: the commit may or may not have taken effect."""
        rows: dict[loads.Key, Any] = {}
        stored: dict[loads.Key, Decided] = {}
        try:
            with self._database.read() as connection:
                rows = loads.load_commands(connection, tenant_id, {s.key for s in submissions})
                stored = replay_stored(connection, tenant_id, rows.values())
        except DatabaseAwayError:
            LOG.warning("the database still does not answer")
        except Exception:
            LOG.exception("what is stored of %d commands cannot be read", len(submissions))
        answers = []
        for submission in submissions:
            if submission.key not in stored:
                answers.append(retry_with("database_away", submission))
            elif rows[submission.key].fingerprint != submission.fingerprint:
                answers.append(retry_with("idempotency_key_reused", submission))
            else:
                answers.append(stored[submission.key])
        return answers

    def _copy_heads(self) -> None:
        now = self._clock.monotonic()
        if now - self._heads_written_at >= self._settings.head_copy_interval_seconds:
            self._heads_written_at = now
            self._write_heads()

    def _write_heads(self) -> None:
        for tenant_id in sorted(self._uncopied):
            self._hooks.reach("engine.head.before")
            try:
                self._keys.write_head(tenant_id, self._newest_header(tenant_id))
            except (OSError, DatabaseAwayError):
                # The commits stand without it; the next copy holds what this one would have.
                LOG.exception("the copy of the newest header of %s was not written", tenant_id)
                continue
            self._hooks.reach("engine.head.after")
            self._uncopied.discard(tenant_id)

    def _newest_header(self, tenant_id: str) -> bytes:
        """Return the log's newest header, which another process may have signed."""
        with self._database.read() as connection:
            head = loads.load_head(connection, tenant_id)
            row = loads.load_batch(connection, tenant_id, head.batch)
        return encode(make_envelope(BATCH_TYPE, row.header, row.keyid, row.signature))

    async def _poll(self, tenant_id: str) -> int:
        return await self._run_blocking(self._newest_seq, tenant_id)

    def _newest_seq(self, tenant_id: str) -> int:
        with self._database.read() as connection:
            head = loads.load_head(connection, tenant_id)
        return head.seq if head is not None else 0
