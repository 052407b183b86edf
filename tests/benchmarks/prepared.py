"""A server with workers, their devices in open sessions, and tasks that are assigned to them.

Everything is committed by the engine itself, in large batches, before any clock is started. Only the
sessions are written straight into their table: over HTTP the server admits so many a minute.
"""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from support import commands as build
from support.server_process import Office, begin
from workmate_server.bootstrap import Parts, open_parts, running_engine
from workmate_server.config import Locations
from workmate_server.engine.engine import Engine
from workmate_server.engine.model import Submission
from workmate_server.engine.tokens import new_session_token
from workmate_server.store import sessions
from workmate_shared.kernel.command import Command
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.instants import format_instant
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import DeviceKey
from workmate_shared.wire.codec import encode
from workmate_shared.wire.commitment import SALT_BYTES, Disclosure, make_disclosure
from workmate_shared.wire.dsse import public_key_of
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import check_message, decode_command

AT_ONCE = 400
"""Commands that are handed to the engine together."""

_OFFICE = "usr_office"
_OFFICE_ROLES = (Role.INTEGRATION, Role.DISPATCHER)

Sayable = tuple[Command, dict[str, Disclosure]]
"""A command and what opens its commitments."""


class Crew(Struct, frozen=True):
    """One worker, the device and the seed of its key, the session's token, the tasks' ids."""

    worker_id: str
    device_id: str
    seed: bytes
    token: str
    tasks: tuple[str, ...]


class Prepared(Struct, frozen=True):
    """An office that stands still, and who works in it."""

    office: Office
    crews: tuple[Crew, ...]

    @property
    def locations(self) -> Locations:
        """Where the office keeps its things."""
        return locations_of(self.office)


def locations_of(office: Office) -> Locations:
    """Return where an office keeps its things."""
    return Locations.from_environment(office.place.environment)


async def prepare_office(folder: Path, workers: int, tasks_each: int) -> Prepared:
    """Begin an office in a folder, with so many workers and tasks assigned to each of them."""
    await asyncio.to_thread(folder.mkdir)
    office = begin(folder)
    with open_parts(locations_of(office)) as parts:
        async with running_engine(parts) as engine:
            writer = Writer(office.tenant_id, office.lineage)
            crews = [_crew(parts, office, number, tasks_each) for number in range(workers)]
            await commit(engine, office.tenant_id, _hirings(writer, crews))
            await commit(engine, office.tenant_id, _tasks(writer, crews))
    return Prepared(office, tuple(crews))


async def commit(engine: Engine, tenant_id: str, said: Iterable[Sayable]) -> None:
    """Commit commands in their order, many at once."""
    waiting = [_submission(tenant_id, *one) for one in said]
    for start in range(0, len(waiting), AT_ONCE):
        for decided in await engine.submit(tenant_id, waiting[start : start + AT_ONCE]):
            assert decided.status == "committed", decided.sentence


def fresh_value(value: object) -> tuple[str, dict[str, Disclosure]]:
    """Return the commitment to a value under a salt of its own, and what opens it."""
    commitment, disclosure = make_disclosure(value, secrets.token_bytes(SALT_BYTES), "contract_7y")
    return commitment, {commitment: disclosure}


class Writer:
    """Writes the commands of the office, each under a key of its own."""

    def __init__(self, tenant_id: str, lineage: str) -> None:
        self._given = {"tenant_id": tenant_id, "lineage": lineage}
        self._count = 0

    def hire(self, principal_id: str, *roles: Role) -> Sayable:
        """Create somebody with these roles."""
        name, opened = fresh_value({"display_name": principal_id})
        system = build.make_actor(Role.SYSTEM)
        return self._write(
            "create_principal", principal_id, opened, actor=system, roles=roles, personal=name
        )

    def equip(self, crew: Crew) -> Sayable:
        """Add a device's key to its worker."""
        key = DeviceKey(credential_id=crew.device_id, public_key=public_key_of(crew.seed).hex())
        system = build.make_actor(Role.SYSTEM)
        return self._write("add_credential", crew.worker_id, {}, actor=system, credential=key)

    def create(self, task_id: str, external_id: str) -> Sayable:
        """Make a job a task."""
        personal, opened = fresh_value(build.PERSONAL["create_task"])
        position, placed = fresh_value(build.SITE)
        return self._write(
            "create_task",
            task_id,
            opened | placed,
            actor=build.make_actor(Role.INTEGRATION, _OFFICE),
            external_id=external_id,
            required_skills=(),
            personal=personal,
            position=position,
        )

    def assign(self, task_id: str, worker_id: str) -> Sayable:
        """Give a new task to a worker."""
        personal, opened = fresh_value(build.PERSONAL["assign"])
        return self._write(
            "assign",
            task_id,
            opened,
            actor=build.make_actor(Role.DISPATCHER, _OFFICE),
            worker_id=worker_id,
            personal=personal,
        )

    def _write(
        self, kind: str, aggregate_id: str, opened: dict[str, Disclosure], **fields: Any
    ) -> Sayable:
        self._count += 1
        fields |= {"aggregate_id": aggregate_id, "command_id": f"office-{self._count}"}
        return build.make_command(kind, **self._given, **fields), opened


def _crew(parts: Parts, office: Office, number: int, tasks: int) -> Crew:
    worker_id, device_id = f"usr_worker_{number}", f"dev-{number}"
    jobs = (_external_id(number, job) for job in range(tasks))
    return Crew(
        worker_id=worker_id,
        device_id=device_id,
        seed=(number + 1).to_bytes(32),
        token=_open_session(parts, office.tenant_id, worker_id, device_id),
        tasks=tuple(task_id_for(office.tenant_id, build.SOURCE, job) for job in jobs),
    )


def _external_id(worker: int, job: int) -> str:
    return f"job-{worker}-{job}"


def _hirings(writer: Writer, crews: Sequence[Crew]) -> Iterable[Sayable]:
    yield writer.hire(_OFFICE, *_OFFICE_ROLES)
    for crew in crews:
        yield writer.hire(crew.worker_id, Role.WORKER)
    for crew in crews:
        yield writer.equip(crew)


def _tasks(writer: Writer, crews: Sequence[Crew]) -> Iterable[Sayable]:
    for number, crew in enumerate(crews):
        for job, task_id in enumerate(crew.tasks):
            yield writer.create(task_id, _external_id(number, job))
    for crew in crews:
        for task_id in crew.tasks:
            yield writer.assign(task_id, crew.worker_id)


def _submission(tenant_id: str, command: Command, opened: dict[str, Disclosure]) -> Submission:
    payload = encode(command)
    return Submission(
        message=check_message(decode_command(payload), opened, tenant_id),
        payload=payload,
        fingerprint=signed_fingerprint(payload),
        disclosures=opened,
    )


def _open_session(parts: Parts, tenant_id: str, worker_id: str, device_id: str) -> str:
    now = parts.clock.now()
    token = new_session_token(parts.entropy)
    device = {
        "tenant_id": tenant_id,
        "device_id": device_id,
        "expires_at": format_instant(now + timedelta(days=1)),
    }
    with parts.database.write() as connection:
        sessions.open_session(
            connection,
            {"nonce": device_id, **device},
            {"token_hash": token.hash, "principal_id": worker_id, **device},
            format_instant(now),
        )
    return token.text
