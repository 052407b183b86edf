"""A real device in a folder, and its sync engine talking to a scripted server on loopback."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import ParamSpec, TypeVar

from msgspec.structs import replace

from support import commands as build
from support.device import SteppingClock
from support.scripted_server import ScriptedServer, scripted
from support.signing_log import NOW, SigningLog
from workmate_client.bootstrap import Machine, open_device, sync_parts
from workmate_client.config import ProfilePaths, Settings
from workmate_client.journal.files import Hook, PosixFiles, no_hook
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.rows import EvidenceItem, Profile, QueuedCommand
from workmate_client.service.device import Device
from workmate_client.sync.report import SyncReport
from workmate_client.sync.runner import SyncRunner
from workmate_client.sync.transport import HttpTransport
from workmate_client.sync.upload import UploadProgress, no_upload_progress
from workmate_client.system import SystemRandom
from workmate_shared.kernel.command import Command
from workmate_shared.tasks.commands import Accept, Arrive, StartTravel
from workmate_shared.wire.dsse import keys_by_id

P = ParamSpec("P")
T = TypeVar("T")

TENANT = build.TENANT
WORKER = build.ASSIGNEE
QUICK = Settings(
    sealed_piece_bytes=64,
    disk_reserve_bytes=0,
    upload_chunk_bytes=64,
    evidence_attempts_limit=3,
    profile_lock_timeout_seconds=0.0,
)


async def run_inline(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run at once, on the loop's own thread: tests see every step in one order."""
    return function(*args, **kwargs)


class SyncedDevice:
    """One device with its server; every run of `sync` is a new process as far as memory goes."""

    def __init__(self, device: Device, server: ScriptedServer, clock: SteppingClock) -> None:
        self.device = device
        self.journal = device.journal
        self.server = server
        self.clock = clock
        self.progress: UploadProgress = no_upload_progress
        self.runner: SyncRunner | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SyncRunner]:
        """A process of its own: it remembers nothing but what is on disk."""
        async with HttpTransport(self.server.url, self.device.settings, run_inline) as transport:
            parts = replace(sync_parts(self.device, transport), run_blocking=run_inline)
            self.runner = SyncRunner(parts, self.progress)
            yield self.runner

    async def sync(self, link_bytes: int | None = None) -> SyncReport:
        """Run the sync once in a process of its own."""
        async with self.running() as runner:
            return await runner.sync_once(link_bytes=link_bytes)

    def wait(self, seconds: float = 4000.0) -> None:
        """Let time pass for the device; every wait is over after the longest."""
        self.clock.wall += timedelta(seconds=seconds)
        self.clock.seconds += seconds

    def act(self, kind: type[Command] = Accept, task: str = "task-1") -> QueuedCommand:
        """The worker acts."""
        return self.device.author.issue(kind, task)

    def walk(self, tasks: int = 1) -> list[str]:
        """The worker accepts and sets out, on several tasks; returns the ids in their order."""
        kinds = (Accept, StartTravel)
        names = [f"task-{number}" for number in range(tasks)]
        return [self.act(kind, name).command_id for kind in kinds for name in names]

    def capture(self, *contents: bytes, task: str = "task-1") -> QueuedCommand:
        """The worker takes photos and arrives with them; returns the command that names them."""
        hashes = [self.keep(content, task) for content in contents]
        return self.device.author.issue(
            Arrive, task, evidence=tuple(hashes), no_fix_reason="indoors"
        )

    def keep(self, content: bytes, task: str = "task-1") -> str:
        """A photo is sealed and listed, and no command names it yet; returns its hash."""
        sealed = self.device.sealed.import_bytes(content)
        item = EvidenceItem(
            task_id=task,
            hash=sealed.hash,
            size_bytes=sealed.size_bytes,
            sealed_name=sealed.name,
            kind="photo",
            media_type="image/jpeg",
            file_name="Foto.jpg",
            added_at=NOW,
        )
        self.journal.add_evidence(item)
        return sealed.hash

    def items(self) -> Sequence[EvidenceItem]:
        """The files as the journal lists them."""
        return self.journal.evidence()

    def statuses(self) -> dict[str, str]:
        """How every command stands, by id."""
        return {c.command_id: c.status for c in self.journal.commands()}

    def check(self) -> None:
        """What must hold after anything: nothing lost, doubled, changed, or falsely sent."""
        counts = self.journal.conservation()
        assert counts.holds
        assert self.server.differing_tries() == []
        assert all(count == 1 for count in self.server.effects.values())
        decided = set(self.server.outcomes)
        answered = {c.command_id for c in self.journal.commands() if c.outcome}
        assert answered <= decided


@asynccontextmanager
async def synced(
    folder: Path, settings: Settings = QUICK, hook: Hook = no_hook
) -> AsyncIterator[SyncedDevice]:
    """An enrolled device in a new folder, and its server; `hook` hears of the journal's points."""
    clock, random = SteppingClock(), SystemRandom()
    files = PosixFiles(clock=clock)
    machine = Machine(settings=settings, clock=clock, random=random, files=files, hook=hook)
    keys = ProfileKeys.create(random)
    device = open_device(machine, ProfilePaths(folder / "profile"), keys)
    log = SigningLog(TENANT)
    server = ScriptedServer(log, keys_by_id([keys.public_key]))
    async with scripted(server):
        profile = Profile(
            server_url=server.url,
            tenant_id=TENANT,
            worker_id=WORKER,
            device_id=keys.device_id,
            lineage=log.lineage,
            pinned_keys={name: key.hex() for name, key in log.keys.items()},
            enrolled=True,
        )
        device.journal.save_profile(profile)
        try:
            yield SyncedDevice(device, server, clock)
        finally:
            device.close()
