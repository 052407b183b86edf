"""The engine against the real server: the two sides say and hear the same."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.device import SteppingClock
from support.office import Office, Person, open_office
from support.syncing import QUICK
from workmate_client.bootstrap import Machine, open_device, sync_parts
from workmate_client.config import ProfilePaths
from workmate_client.journal.authoring import Act
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.rows import EvidenceItem, QueuedCommand
from workmate_client.service import enrolment
from workmate_client.service.acts import accept, start_travel
from workmate_client.service.device import Device
from workmate_client.sync.report import SyncReport
from workmate_client.sync.runner import SyncRunner
from workmate_client.sync.session import DeviceSession
from workmate_client.sync.transport import HttpTransport
from workmate_client.system import SystemRandom
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.commands import Accept, Arrive
from workmate_shared.wire.messages import PROTOCOL, SyncRequest


class Laptop:
    """A real device that talks to the real server over HTTP."""

    def __init__(self, device: Device, office: Office, worker: Person, url: str) -> None:
        self.device = device
        self.office = office
        self.worker = worker
        self.url = url

    async def sync(self) -> SyncReport:
        """Run the sync once."""
        async with HttpTransport(self.url, self.device.settings) as transport:
            return await SyncRunner(sync_parts(self.device, transport)).sync_once()

    def state(self, task_id: str) -> str:
        """The state of a task as the device last heard it."""
        found = self.device.replica.task(task_id)
        assert found is not None
        return found.task.state


@asynccontextmanager
async def laptop(folder: Path) -> AsyncIterator[Laptop]:
    """A device that has enrolled for a worker of a new office."""
    async with open_office(folder / "office") as office:
        worker = await office.somebody(Role.WORKER)
        body = {"principal_id": worker.principal_id}
        code = (await office.admin.post("/v1/enrolment-codes", body)).json["code"]
        url = str(office.client.make_url("/")).rstrip("/")
        clock = SteppingClock()
        clock.wall = office.clock.now()
        files = PosixFiles(clock=clock)
        machine = Machine(settings=QUICK, clock=clock, random=SystemRandom(), files=files)
        keys = ProfileKeys.create(machine.random)
        device = open_device(machine, ProfilePaths(folder / "profile"), keys)
        try:
            async with HttpTransport(url, QUICK) as transport:
                await enrolment.enrol(device, transport, url, code)
            yield Laptop(device, office, worker, url)
        finally:
            device.close()


async def test_a_job_goes_down_and_acts_and_evidence_go_up(tmp_path: Path) -> None:
    async with laptop(tmp_path) as it:
        job = await it.office.job("assigned", worker=it.worker)
        report = await it.sync()
        assert (report.pulled, report.stopped, report.pull_refused) == (1, None, None)
        assert it.state(job.task_id) == "assigned"

        accept(it.device, job.task_id)
        start_travel(it.device, job.task_id)
        content = bytes(range(200))
        arrive_with(it.device, job.task_id, content)
        report = await it.sync()

        assert report.conservation.holds
        assert [(w.name, w.code) for w in report.waiting] == []
        assert report.committed == 4
        assert report.uploaded_bytes == len(content)
        assert it.state(job.task_id) == "in_progress"
        (kept,) = it.device.journal.evidence()
        assert kept.verified_at is not None
        assert it.device.profile().newest_batch > 0


def arrive_with(device: Device, task_id: str, content: bytes) -> QueuedCommand:
    """The worker takes a photo and arrives with it, right after what he did last."""
    sealed = device.sealed.import_bytes(content)
    item = EvidenceItem(
        task_id=task_id,
        hash=sealed.hash,
        size_bytes=sealed.size_bytes,
        sealed_name=sealed.name,
        kind="photo",
        media_type="image/jpeg",
        added_at=device.now(),
    )
    device.journal.add_evidence(item)
    held = device.replica.task(task_id)
    assert held is not None
    act = Act(
        kind=Arrive,
        aggregate_id=task_id,
        expected_version=held.task.version,
        after=device.journal.pending()[-1].command_id,
        fields={"evidence": (sealed.hash,), "no_fix_reason": "indoors"},
    )
    profile = device.profile()
    return device.journal.issue(lambda seq: device.author.write(profile, act, seq).parts)


async def test_a_reply_that_is_lost_has_its_effect_once_and_its_receipt_at_the_second_try(
    tmp_path: Path,
) -> None:
    async with laptop(tmp_path) as it:
        job = await it.office.job("assigned", worker=it.worker)
        await it.sync()
        accept(it.device, job.task_id)
        commands = tuple(command.signed() for command in it.device.journal.pending())
        async with HttpTransport(it.url, QUICK) as transport:
            session = DeviceSession(sync_parts(it.device, transport))
            await session.open()
            request = SyncRequest(protocol=PROTOCOL, commands=commands)
            await transport.sync(session.token or "", request)
        report = await it.sync()
        assert report.committed == 1
        history = await it.worker.get(f"/v1/tasks/{job.task_id}/events")
        types = [event["type"] for event in history.json["events"]]
        assert types.count("task.accepted") == 1


async def test_a_conflict_comes_with_its_proof_and_the_present_state(tmp_path: Path) -> None:
    async with laptop(tmp_path) as it:
        job = await it.office.job("assigned", worker=it.worker)
        await it.sync()
        accept(it.device, job.task_id)
        other = await it.office.hire(Role.WORKER)
        dispatcher = await it.office.somebody(Role.DISPATCHER)
        body = {"worker_id": other.principal_id, "personal": {"selection_reason": "nearer"}}
        answer = await dispatcher.command("assign", job, body)
        assert answer.status == 200, answer.body
        report = await it.sync()
        assert report.conflicts + report.rejected == 1
        assert report.waiting == ()
        assert report.conservation.holds


async def test_what_was_queued_before_the_account_ended_is_decided_and_nothing_is_pulled(
    tmp_path: Path,
) -> None:
    async with laptop(tmp_path) as it:
        job = await it.office.job("assigned", worker=it.worker)
        await it.sync()
        accept(it.device, job.task_id)
        path = f"/v1/principals/{it.worker.principal_id}/deactivate"
        answer = await it.office.admin.post(path, {})
        assert answer.status == 200, answer.body
        report = await it.sync()
        assert (report.rejected, report.pull_refused) == (1, "actor_deactivated")
        assert it.device.profile().pull_refused == "actor_deactivated"


async def test_a_revoked_device_hears_of_it_with_a_proof_and_the_order_to_wipe(
    tmp_path: Path,
) -> None:
    async with laptop(tmp_path) as it:
        it.device.author.issue(Accept, "no-such-task")
        path = f"/v1/devices/{it.device.keys.device_id}/revoke"
        answer = await it.office.admin.post(path, {"wipe": True})
        assert answer.status == 200, answer.body
        report = await it.sync()
        assert report.pull_refused == "device_revoked"
        assert report.wipe_ordered


async def test_a_job_of_somebody_else_waits_and_holds_up_nothing(tmp_path: Path) -> None:
    async with laptop(tmp_path) as it:
        job = await it.office.job("assigned", worker=it.worker)
        await it.sync()
        it.device.author.issue(Accept, "no-such-task")
        accept(it.device, job.task_id)
        report = await it.sync()
        assert [(w.aggregate_id, w.code) for w in report.waiting] == [("no-such-task", "not_found")]
        assert report.committed == 1
        assert it.state(job.task_id) == "accepted"
