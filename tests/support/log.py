"""A tenant's log on real SQLite, with an engine that commits to it and the people that act in it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import select, text

from support import commands as build
from workmate_server.config import Settings
from workmate_server.engine.blocking import WorkerThreads
from workmate_server.engine.engine import Engine
from workmate_server.engine.model import Decided, Submission
from workmate_server.engine.tenants import TenantFounder
from workmate_server.engine.verify import VerifyReport, verify
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.ports import Hooks
from workmate_server.store.sqlite import SqliteDatabase
from workmate_server.store.tables import ServerTable
from workmate_server.telemetry.system import NoHooks, SystemClock, SystemEntropy
from workmate_shared.kernel.command import Command
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.table import Role
from workmate_shared.wire.codec import encode
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import check_message, decode_command
from workmate_shared.wire.registry import kind_of_command

PEOPLE: dict[str, tuple[Role, ...]] = {
    "svc_nyc311": (Role.INTEGRATION,),
    build.DISPATCHER: (Role.DISPATCHER,),
    build.SUPERVISOR: (Role.SUPERVISOR,),
    build.OTHER_SUPERVISOR: (Role.SUPERVISOR,),
    build.ASSIGNEE: (Role.WORKER,),
    build.FORMER: (Role.WORKER,),
    build.STRANGER: (Role.WORKER,),
}


class Log:
    """One tenant's log; commands are the examples of `support.commands`, moved to this tenant."""

    def __init__(
        self, folder: Path, database: SqliteDatabase, keys: KeyFolder, engine: Engine
    ) -> None:
        self.folder = folder
        self.database = database
        self.keys = keys
        self.engine = engine
        self.tenant_id = ""
        self.lineage = ""

    @property
    def public_keys(self) -> dict[str, bytes]:
        """The log's public keys by id."""
        key = self.keys.log_key
        return {key.key_id: key.public_key, **self.keys.retired_log_keys}

    def make(self, kind: str, **fields: Any) -> Command:
        """Return an example command of this tenant."""
        given: dict[str, Any] = {"tenant_id": self.tenant_id, "lineage": self.lineage}
        if kind_of_command(kind).name == "task":
            given["aggregate_id"] = self.task_id
        if kind in ("submit_proof", "hand_over"):
            given |= build.manifest_fields(build.make_manifest(task_id=self.task_id))
        return build.make_command(kind, **(given | fields))

    @property
    def task_id(self) -> str:
        """The example task's id in this tenant."""
        return task_id_for(self.tenant_id, build.SOURCE, build.EXTERNAL_ID)

    def submission(
        self, command: Command, disclosures: dict[str, Disclosure] | None = None
    ) -> Submission:
        """Return what the engine takes for a command; its values are those of the builders."""
        payload = encode(command)
        values = build.DISCLOSURES | (disclosures or {})
        message = check_message(decode_command(payload), values, self.tenant_id)
        return Submission(
            message=message,
            payload=payload,
            fingerprint=signed_fingerprint(payload),
            disclosures=values,
        )

    async def submit(self, *commands: Command) -> list[Decided]:
        """Submit commands in one request."""
        return await self.engine.submit(self.tenant_id, [self.submission(c) for c in commands])

    async def run(self, *commands: Command) -> list[Decided]:
        """Submit commands one request each and demand that each is committed."""
        answers = []
        for command in commands:
            (answer,) = await self.submit(command)
            assert answer.status == "committed", (command.name, answer.code, answer.details)
            answers.append(answer)
        return answers

    async def walk(self, state: str, *, worker_id: str = build.ASSIGNEE) -> int:
        """Bring the example task to a state; return its version."""
        steps = ("unassigned", "assigned", "accepted", "en_route", "in_progress", "proof_pending")
        worker = build.make_actor(Role.WORKER, worker_id)
        kinds: Sequence[tuple[str, dict[str, Any]]] = (
            ("create_task", {}),
            ("assign", {"worker_id": worker_id}),
            ("accept", {"actor": worker}),
            ("start_travel", {"actor": worker}),
            ("arrive", {"actor": worker}),
            ("submit_proof", {"actor": worker}),
        )
        count = steps.index(state) + 1
        for version, (kind, fields) in enumerate(kinds[:count]):
            await self.run(self.make(kind, expected_version=version, **fields))
        return count

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return every row of a table."""
        found = ServerTable.metadata.tables[table]
        with self.database.read() as connection:
            return [dict(row._mapping) for row in connection.execute(select(found))]

    def tamper(self, statement: str, **values: Any) -> int:
        """Change the database behind the engine's back, triggers off; return the rows changed."""
        with self.database.write() as connection:
            names = connection.execute(
                text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            ).all()
            for name, _ in names:
                connection.execute(text(f"DROP TRIGGER {name}"))
            changed = connection.execute(text(statement), values).rowcount
            for _, sql in names:
                connection.execute(text(sql))
        return changed

    def verify(self) -> VerifyReport:
        """Verify the log as the server's command does."""
        return verify(self.database, self.keys, self.public_keys)


@asynccontextmanager
async def open_log(
    folder: Path, *, hooks: Hooks | None = None, settings: Settings | None = None
) -> AsyncIterator[Log]:
    """Found a tenant with its people in a new folder, or open the one that is there."""
    clock, entropy, run_blocking = SystemClock(), SystemEntropy(), WorkerThreads(4)
    limits = replace(settings or Settings(), relay_poll_seconds=0.05)
    new = not (folder / "keys").exists()
    keys = KeyFolder.create(folder / "keys", entropy) if new else KeyFolder.open(folder / "keys")
    database = SqliteDatabase(folder / "office.db", keys.database_key)
    database.migrate()
    engine = Engine(database, keys, limits, clock, hooks or NoHooks(), run_blocking)
    await engine.start()
    log = Log(folder, database, keys, engine)
    try:
        if new:
            founder = TenantFounder(database, engine, clock, entropy)
            key = keys.log_key
            tenant = await founder.found("Stadtwerke", key.key_id, key.public_key)
            log.tenant_id, log.lineage = tenant.tenant_id, tenant.lineage
            await log.run(*(_person(log, name, roles) for name, roles in PEOPLE.items()))
        else:
            (head,) = log.rows("tenant_head")
            log.tenant_id, log.lineage = head["tenant_id"], head["lineage"]
        yield log
    finally:
        await engine.stop()
        run_blocking.close()
        database.close()


def _person(log: Log, name: str, roles: tuple[Role, ...]) -> Command:
    return log.make(
        "create_principal",
        aggregate_id=name,
        actor=build.make_actor(Role.SYSTEM),
        command_id=f"create-{name}",
        roles=roles,
        skills=("electrical",),
    )
