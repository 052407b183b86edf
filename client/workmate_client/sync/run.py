"""One run of the sync: look, plan, act, until nothing can be done now.

A failure of the link or of the server ends the run at once; one of a command or a file is noted with
it, and the others go on. Whatever happens, a command is pending until its receipt was verified.
"""

from collections.abc import Sequence

from workmate_client.journal.profile_store import known
from workmate_client.journal.rows import EvidenceItem, Profile, QueuedCommand
from workmate_client.sync.backoff import (
    LINK_UP,
    Reaction,
    longest_delay_seconds,
    reaction_to,
    reaction_to_upload,
)
from workmate_client.sync.evidence import STORE_EVIDENCE, moved_on
from workmate_client.sync.exchange import REQUEST_OVERHEAD_BYTES, Exchanged
from workmate_client.sync.failures import CutError, RefusedError, StalledError, TransportError
from workmate_client.sync.memory import Memory
from workmate_client.sync.parts import SyncParts, seconds_of
from workmate_client.sync.plan import (
    Action,
    EvidenceFile,
    Idle,
    OpenSession,
    PendingCommand,
    Pull,
    RepeatEnrolment,
    SendCommands,
    Situation,
    StoreEvidence,
    Upload,
    WaitUntil,
    next_action,
    smaller_batch,
)
from workmate_client.sync.report import Tally
from workmate_client.sync.upload import EvidenceUnreadableError
from workmate_shared.principals.commands import Enrol
from workmate_shared.tasks import commands as task_commands

ENROL = str(Enrol.__struct_config__.tag)
STOPPED_BY_YOU = "stopped_by_you"
SESSION_TRIES = 2
"""A session that was just opened and is refused again is refused for good, for this run."""


class Run:
    """Carries out the plans of one run.

    `rest` is why it ended, `last` the situation that it ended in, `tally` what it did, `failure`
    what stopped it.
    """

    def __init__(self, parts: SyncParts, memory: Memory, link_bytes: int | None) -> None:
        self._parts = parts
        self._memory = memory
        self._link_bytes = link_bytes
        self._profile: Profile | None = None
        self._pending: tuple[QueuedCommand, ...] = ()
        self._files: tuple[EvidenceFile, ...] | None = None
        self._pull_due = True
        self._pulled_at = parts.clock.monotonic()
        self._refusals = 0
        self.tally = Tally()
        self.rest: WaitUntil | Idle = Idle()
        self.last: Situation | None = None
        self.failure: TransportError | None = None

    async def go(self) -> None:
        """Do all that can be done now. Raises StoreError and StorageError of the device's own disk."""
        while True:
            situation = self.last = await self._parts.run_blocking(self._look)
            action = next_action(situation)
            if isinstance(action, WaitUntil | Idle):
                self.rest = action
                return
            if self._memory.stopping:
                self.rest = WaitUntil(situation.now, STOPPED_BY_YOU)
                return
            await self._act(action)

    def _look(self) -> Situation:
        """Read what there is to do; blocking."""
        parts, memory = self._parts, self._memory
        profile = self._profile = known(parts.journal.profile())
        queue = parts.journal.pending()
        if {c.command_id for c in queue} != {c.command_id for c in self._pending}:
            self._files = None
        self._pending = queue
        if self._files is None:
            self._files = memory.view.files(profile.worker_id)
        limits, settings = profile.limits, parts.settings
        commands_limit = limits.commands if limits else settings.sync_commands_limit
        request_bytes = limits.request_bytes if limits else settings.sync_request_limit_bytes
        return Situation(
            now=parts.now_seconds(),
            session_open=memory.session.token is not None,
            commands_limit=max(min(commands_limit, memory.batch_limit), 1),
            request_bytes=request_bytes - REQUEST_OVERHEAD_BYTES,
            longest_wait_seconds=longest_delay_seconds(settings),
            pull_due=self._pull_is_due(),
            link=memory.link,
            pending=[self._planned(command) for command in queue],
            files=self._files,
            upload_bytes=limits.upload_bytes if limits else None,
            link_bytes=self._link_bytes,
        )

    def _planned(self, command: QueuedCommand) -> PendingCommand:
        return PendingCommand(
            command_id=command.command_id,
            aggregate_id=command.aggregate_id,
            size_bytes=self._memory.size(command),
            after=command.after,
            media=command.name == STORE_EVIDENCE,
            enrols=command.name == ENROL,
            wait_code=command.wait_code,
            blocked_by=command.blocked_by,
            not_before=seconds_of(command.next_attempt_at),
        )

    def _pull_is_due(self) -> bool:
        """Whether to pull: at first, while there is more, and now and then in a long run."""
        if self.tally.pull_refused or self.tally.pull_fault:
            return False
        age = self._parts.clock.monotonic() - self._pulled_at
        return self._pull_due or age >= self._parts.settings.sync_interval_seconds

    async def _act(self, action: Action) -> None:
        match action:
            case OpenSession():
                await self._open_session()
            case RepeatEnrolment(command_id):
                await self._repeat_enrolment(self._named({command_id})[0])
            case SendCommands(command_ids):
                await self._exchange(self._named(set(command_ids)))
            case Pull():
                await self._exchange(())
            case Upload(task_id, content_hash):
                await self._upload(task_id, content_hash)
            case StoreEvidence(task_id, hashes):
                await self._parts.run_blocking(
                    self._parts.author.issue, task_commands.StoreEvidence, task_id, hashes=hashes
                )

    def _named(self, command_ids: set[str]) -> list[QueuedCommand]:
        return [command for command in self._pending if command.command_id in command_ids]

    async def _repeat_enrolment(self, command: QueuedCommand) -> None:
        memory = self._memory
        try:
            status = await memory.exchange.repeat_enrolment(command)
        except RefusedError as error:
            await self._parts.run_blocking(memory.recorder.record_wait, command, error.code)
        except TransportError as error:
            self._stop(error)
        else:
            self.tally.sent.add(command.command_id)
            if status is not None:
                self.tally.count(status)

    async def _open_session(self) -> None:
        try:
            await self._memory.session.open()
        except TransportError as error:
            self._stop(error)

    async def _exchange(self, commands: Sequence[QueuedCommand]) -> None:
        memory = self._memory
        left = [f.size_bytes for f in self._files or () if not (f.uploaded or f.set_aside)]
        try:
            exchanged = await memory.exchange.round_trip(
                memory.session.token or "", commands, self._pending, sum(left)
            )
        except TransportError as error:
            await self._exchange_failed(error, commands)
            return
        self.tally.sent.update(command.command_id for command in commands)
        self._exchanged(exchanged, len(commands))

    def _exchanged(self, exchanged: Exchanged, sent: int) -> None:
        memory = self._memory
        memory.link = exchanged.link
        if sent:
            memory.batch_limit = min(
                max(memory.batch_limit, sent) * 2, self._parts.settings.sync_commands_limit
            )
        self._refusals = 0
        self._pull_due = exchanged.pull.more
        self._pulled_at = self._parts.clock.monotonic()
        self._files = None
        self.tally.add(exchanged)
        answered = len(exchanged.judgement.outcomes)
        waiting = next((c.wait_code for c in self._pending if c.wait_code), None)
        memory.watchdog.answered(self._pulled_at, len(self._pending) - answered, answered, waiting)

    async def _exchange_failed(
        self, error: TransportError, commands: Sequence[QueuedCommand]
    ) -> None:
        reaction = reaction_to(error)
        smaller = smaller_batch(len(commands))
        if reaction is Reaction.RENEW:
            self._renew(error)
        elif reaction is Reaction.SHRINK and smaller is not None:
            self._memory.batch_limit = smaller
        elif reaction is Reaction.SHRINK and commands:
            await self._hold_alone(error, commands[0])
        else:
            self._stop(error)

    async def _hold_alone(self, error: TransportError, command: QueuedCommand) -> None:
        """A command that fails alone waits by itself; the others are tried without it."""
        silent = isinstance(error, StalledError | CutError)
        code = "no_answer" if silent else "too_large"
        await self._parts.run_blocking(self._memory.recorder.record_wait, command, code)
        if silent:
            self._stop(error)

    async def _upload(self, task_id: str, content_hash: str) -> None:
        parts, memory = self._parts, self._memory
        item = await parts.run_blocking(parts.journal.evidence_item, task_id, content_hash)
        if item is None:
            self._files = None
            return
        try:
            sent = await memory.uploader.advance(item, memory.session.token or "")
        except EvidenceUnreadableError as error:
            await self._hold_file(item, error)
        except TransportError as error:
            await self._upload_failed(error, item)
        else:
            memory.link, self._refusals = LINK_UP, 0
            self.tally.uploaded_bytes += sent
            await parts.run_blocking(self._refresh_file, item, sent)

    async def _upload_failed(self, error: TransportError, item: EvidenceItem) -> None:
        reaction = reaction_to_upload(error)
        if reaction is Reaction.RENEW:
            self._renew(error)
        elif reaction is Reaction.ITEM:
            await self._hold_file(item, error)
        elif reaction is Reaction.STOP or not self._memory.uploader.shrink():
            self._stop(error)

    async def _hold_file(
        self, item: EvidenceItem, error: TransportError | EvidenceUnreadableError
    ) -> None:
        run_blocking = self._parts.run_blocking
        if await run_blocking(self._memory.uploader.record_failure, item, error):
            name = item.file_name or item.hash
            await run_blocking(
                self._memory.recorder.tell_once, "evidence_set_aside", f"{name}: {error.detail}"
            )
        await run_blocking(self._refresh_file, item, 0)

    def _refresh_file(self, old: EvidenceItem, sent_bytes: int) -> None:
        """Read one file's row again after a try, and free what waited for its bytes; blocking."""
        item = self._parts.journal.evidence_item(old.task_id, old.hash)
        if item is None or self._files is None:
            return
        self._files = tuple(
            moved_on(file, item) if (file.task_id, file.hash) == (item.task_id, item.hash) else file
            for file in self._files
        )
        if item.upload_done_at is None:
            return
        self.tally.uploaded_files += 1
        if not sent_bytes:
            return
        missing = {file.hash for file in self._files if not file.uploaded}
        for command in self._pending:
            names = self._memory.view.announced_by(command)
            if command.wait_code == "bytes_missing" and not missing.intersection(names):
                self._parts.journal.record_wait(command.command_id, None)

    def _renew(self, error: TransportError) -> None:
        self._memory.session.drop()
        self._refusals += 1
        if self._refusals >= SESSION_TRIES:
            self._stop(error)

    def _stop(self, error: TransportError) -> None:
        self.failure = error
        self._memory.link_failed(error)
