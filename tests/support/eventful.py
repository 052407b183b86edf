"""One log in which everything has happened, made once and copied for each use.

Tasks stand in every state; a device that enrolled with a key of its own signed a chain; there are a
conflict, a rejection, an unchanged, hand-overs, a proof sent back and one approved, a revoked device
and a deactivated worker.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import text

from support import commands as build
from support.log import Log, open_log
from workmate_server.engine.model import Decided, Submission
from workmate_shared.kernel.command import Command
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import EnrolmentCode
from workmate_shared.principals.enrolment import code_check
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.dsse import COMMAND_TYPE, public_key_of, sign_bytes

DEVICE_SEED = bytes(range(32))
CODE_HASH = "0d" * 32
NEVER = "2999-01-01T00:00:00.000Z"


def task_of(log: Log, external_id: str) -> str:
    """Return the id of the task of one upstream job."""
    return task_id_for(log.tenant_id, build.SOURCE, external_id)


def worker(principal_id: str = build.ASSIGNEE, device_id: str | None = None) -> Any:
    """Return an actor who is a worker."""
    return build.make_actor(Role.WORKER, principal_id, device_id)


def signed(log: Log, command: Command, seed: bytes = DEVICE_SEED) -> Submission:
    """Return a command as its device sends it."""
    submission = log.submission(command)
    keyid, signature = sign_bytes(COMMAND_TYPE, submission.payload, seed)
    return replace(submission, keyid=keyid, signature=signature)


class Story:
    """Tells what happens to one task; every command has a key of its own and the present version."""

    def __init__(self, log: Log, external_id: str) -> None:
        self.log = log
        self.task_id = task_of(log, external_id)
        self.external_id = external_id
        self.version = 0

    def make(self, kind: str, **fields: Any) -> Command:
        """Return the next command of this task."""
        given: dict[str, Any] = {
            "aggregate_id": self.task_id,
            "command_id": f"{self.external_id}-{kind}-{self.version}",
            "expected_version": self.version,
        }
        if kind == "create_task":
            given["external_id"] = self.external_id
        if kind in ("submit_proof", "hand_over") and "manifest_id" not in fields:
            given |= self.manifest()
        return self.log.make(kind, **(given | fields))

    def manifest(self, manifest_id: str = build.MANIFEST_ID) -> dict[str, Any]:
        """Return the fields by which a command carries a manifest of this task."""
        manifest = build.make_manifest(task_id=self.task_id, manifest_id=manifest_id)
        return build.manifest_fields(manifest)

    async def tell(
        self, kind: str, *, values: Mapping[str, Disclosure] | None = None, **fields: Any
    ) -> Decided:
        """Let a command happen, whatever becomes of it; `values` open its commitments."""
        submission = self.log.submission(self.make(kind, **fields), dict(values or {}))
        (answer,) = await self.log.engine.submit(self.log.tenant_id, [submission])
        self.version = answer.version or self.version
        return answer

    async def reach(self, state: str, worker_id: str = build.ASSIGNEE) -> "Story":
        """Go the straight way to a state."""
        way = ("unassigned", "assigned", "accepted", "en_route", "in_progress", "proof_pending")
        acting = {"actor": worker(worker_id)}
        kinds: Sequence[tuple[str, dict[str, Any]]] = (
            ("create_task", {}),
            ("assign", {"worker_id": worker_id}),
            ("accept", acting),
            ("start_travel", acting),
            ("arrive", acting),
            ("submit_proof", acting),
        )
        for kind, fields in kinds[: way.index(state) + 1]:
            answer = await self.tell(kind, **fields)
            assert answer.status == "committed", answer
        return self


async def _administrate(log: Log, kind: str, number: int, **fields: Any) -> None:
    actor = build.make_actor(Role.SYSTEM)
    name = f"office-{kind}-{number}"
    await log.run(log.make(kind, actor=actor, command_id=name, expected_version=None, **fields))


def hold_files(log: Log, task_id: str) -> None:
    """Hold the example's files, verified and uploaded by the assignee for a task."""
    times = {"tenant": log.tenant_id, "at": build.NOW}
    files = {
        build.PHOTO: ("image/jpeg", build.make_photo("after-1").size),
        build.DRAWING: ("image/svg+xml", build.make_signature("sig-worker").size),
        build.OTHER_FILE: ("image/png", 9),
    }
    with log.database.write() as connection:
        for name, (media_type, size) in files.items():
            connection.execute(
                text("INSERT OR IGNORE INTO blob VALUES (:tenant, :hash, :size, :type, :at, NULL)"),
                {"hash": name, "type": media_type, "size": size, **times},
            )
            connection.execute(
                text("INSERT INTO blob_link VALUES (:tenant, :hash, :task, :who, :at)"),
                {"hash": name, "task": task_id, "who": build.ASSIGNEE, **times},
            )


async def _tell_of_a_device(log: Log) -> None:
    code = EnrolmentCode(credential_id="code-1", code_check=code_check(CODE_HASH), expires_at=NEVER)
    await _administrate(log, "add_credential", 1, aggregate_id=build.ASSIGNEE, credential=code)
    by_device = {"actor": worker(device_id=build.DEVICE)}
    key = public_key_of(DEVICE_SEED)
    enrol = log.make(
        "enrol",
        aggregate_id=build.ASSIGNEE,
        command_id=CODE_HASH,
        public_key=key.hex(),
        server_key_id=log.keys.log_key.key_id,
        expected_version=None,
        **by_device,
    )
    (enrolled,) = await log.engine.submit(log.tenant_id, [signed(log, enrol)])
    assert enrolled.status == "committed", enrolled
    story = await Story(log, "by-device").reach("assigned")
    chain: list[Submission] = []
    after = None
    for number, kind in enumerate(("accept", "start_travel", "arrive", "submit_proof"), 1):
        reading = build.make_reading(number)
        command = story.make(kind, after=after, device=reading, **by_device)
        after = command.command_id
        chain.append(signed(log, command))
    answers = await log.engine.submit(log.tenant_id, chain)
    assert [answer.status for answer in answers] == ["committed"] * 4, answers
    await _administrate(
        log, "revoke_credential", 2, aggregate_id=build.ASSIGNEE, credential_id=build.DEVICE
    )
    late = story.make("store_evidence", command_id="late", expected_version=6, **by_device)
    hold_files(log, story.task_id)
    (refused,) = await log.engine.submit(log.tenant_id, [signed(log, late)])
    assert refused.code == "device_revoked", refused
    assert [event.type for event in refused.events] == ["evidence.stored"]


async def _tell_of_proofs(log: Log) -> None:
    story = await Story(log, "completed").reach("proof_pending")
    hold_files(log, story.task_id)
    stored = await story.tell("store_evidence")
    assert (await story.tell("reject_proof")).status == stored.status == "committed"
    again = story.manifest("manifest-2")
    assert (await story.tell("submit_proof", **again)).status == "committed"
    approved = await story.tell("approve_proof", manifest_id="manifest-2")
    assert approved.status == "committed", approved
    assert (await story.tell("approve_proof", manifest_id="manifest-2")).status == "unchanged"


async def _tell_of_hand_overs(log: Log) -> None:
    story = await Story(log, "taken-over").reach("in_progress", build.FORMER)
    for kind in ("release", "assign"):
        assert (await story.tell(kind)).status == "committed"
    late = await story.tell("submit_proof", actor=worker(build.FORMER), expected_version=5)
    assert (late.status, [event.type for event in late.events]) == (
        "conflict",
        ["evidence.handed_over"],
    )
    for kind in ("accept", "start_travel", "arrive"):
        await story.tell(kind)
    supervisor = build.make_actor(Role.SUPERVISOR)
    taken = await story.tell(
        "submit_proof",
        actor=supervisor,
        override=build.FORMER,
        manifest_id=build.MANIFEST_ID,
        manifest=None,
        content_hash=None,
        personal=build.disclose(build.OVERRIDE_REASON)[0],
    )
    assert taken.status == "committed", taken
    other = await Story(log, "dismissed").reach("accepted")
    await other.tell("hand_over")
    assert (await other.tell("dismiss_handover")).status == "committed"
    assert (await other.tell("decline")).status == "committed"


async def prepare(folder: Path) -> None:
    """Make the log in a new folder; the database is one file afterwards."""
    async with open_log(folder) as log:
        for state in ("unassigned", "assigned", "accepted", "en_route", "in_progress"):
            await Story(log, state).reach(state)
        await (await Story(log, "proof_pending").reach("proof_pending")).tell("observe")
        await _tell_of_a_device(log)
        await _tell_of_proofs(log)
        await _tell_of_hand_overs(log)
        story = await Story(log, "cancelled").reach("assigned", build.STRANGER)
        moved, value = build.disclose({"site_name": "Depot 8"}, salt=2)
        amended = await story.tell("amend", priority=1, personal=moved, values={moved: value})
        assert amended.status == "committed", amended
        assert (await story.tell("amend", actor=worker(build.STRANGER))).status == "rejected"
        assert (await story.tell("cancel")).status == "committed"
        assert (await story.tell("cancel", expected_version=1)).status == "conflict"
        several = [Story(log, "assigned"), Story(log, "accepted"), Story(log, "en_route")]
        await log.submit(*(one.make("observe", actor=worker()) for one in several))
        await _administrate(log, "deactivate_principal", 3, aggregate_id=build.STRANGER)
        await _administrate(log, "change_principal", 4, aggregate_id=build.FORMER, skills=())
        gone = await story.tell("observe", actor=worker(build.STRANGER))
        assert gone.code == "actor_deactivated", gone
        log.database.checkpoint()
