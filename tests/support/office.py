"""An office over HTTP: the whole API on real SQLite, with people who hold tokens, and their jobs.

Everything goes through the API, as a stranger's program would do it. The clock is the host's, and
can be moved forward.
"""

import io
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web_app
from aiohttp.test_utils import TestClient, TestServer
from msgspec import Struct

from workmate_server.config import Settings
from workmate_server.engine.blocking import WorkerThreads
from workmate_server.engine.engine import Engine
from workmate_server.engine.tenants import NewTenant, TenantFounder
from workmate_server.evidence.folder_blobs import FolderBlobStore
from workmate_server.http.app import SERVER_OPTIONS, build_app
from workmate_server.http.services import Services
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.store.sqlite import SqliteDatabase
from workmate_server.telemetry.system import NoHooks, SystemClock, SystemEntropy
from workmate_shared.kernel.catalogue import CATALOGUE, Recorded
from workmate_shared.kernel.command import Actor
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.instants import format_instant
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import Enrol
from workmate_shared.principals.enrolment import code_hash
from workmate_shared.tasks.manifest import Manifest, content_hash, encode_manifest
from workmate_shared.tasks.policy import ProofPolicy, policy_version
from workmate_shared.wire.batch import Receipt
from workmate_shared.wire.binary import to_base64
from workmate_shared.wire.codec import encode
from workmate_shared.wire.commitment import Disclosure, make_disclosure
from workmate_shared.wire.dsse import COMMAND_TYPE, public_key_of, sign
from workmate_shared.wire.messages import SignedCommand
from workmate_shared.wire.session import Challenge, sign_challenge

SOURCE = "svc_upstream"
SITE = {"lat_e7": 405863974, "lon_e7": -739325913, "mappls_pin": "3F45CB"}
PERSONAL = {
    "client": "Frau Müller",
    "site_name": "Depot 7",
    "address": "Lange Gasse 1",
    "instructions": "Ring twice.",
}
FIX = {"lat_e7": 405863900, "lon_e7": -739325900, "accuracy_m": 8, "source": "gps"}
STATES = ("unassigned", "assigned", "accepted", "en_route", "in_progress", "proof_pending")
"""States in the order in which a job walks through them."""


class OfficeClock(SystemClock):
    """The host's clock, as far ahead as a test has moved it."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_seconds)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_seconds

    def advance(self, seconds: float) -> None:
        self.ahead_seconds += seconds


class Answer(Struct, frozen=True):
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        code: str | None = self.json.get("code")
        return code

    @property
    def receipt(self) -> Receipt:
        return msgspec.convert(self.json["receipt"], Receipt)


class Person:
    """Somebody with a bearer token (or none) who calls the API."""

    def __init__(self, office: "Office", principal_id: str, token: str | None) -> None:
        self.office = office
        self.principal_id = principal_id
        self.token = token

    async def call(
        self,
        method: str,
        path: str,
        *,
        json_body: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        version: int | None = None,
        purpose: str | None = None,
    ) -> Answer:
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if key is not None:
            sent["Idempotency-Key"] = f'"{key}"'
        if version is not None:
            sent["If-Match"] = f'"{version}"'
        if purpose is not None:
            sent["Location-Purpose"] = purpose
        if json_body is not None:
            data = msgspec.json.encode(json_body)
            sent.setdefault("Content-Type", "application/json")
        body = None if data is None else io.BytesIO(data)
        async with self.office.client.request(
            method, path, data=body, headers=sent, allow_redirects=False
        ) as response:
            return Answer(response.status, response.headers.copy(), await response.read())

    async def get(self, path: str, **rest: Any) -> Answer:
        return await self.call("GET", path, **rest)

    async def post(self, path: str, json_body: Any = None, **rest: Any) -> Answer:
        """POST a body; a key is made unless one is given, or refused with `key=None`."""
        if "key" not in rest:
            rest["key"] = self.office.make_key()
        body = {} if json_body is None and "data" not in rest else json_body
        return await self.call("POST", path, json_body=body, **rest)

    async def command(self, name: str, job: "Job", json_body: Any = None, **rest: Any) -> Answer:
        """Issue a command on a job, by default on the version that the job has now."""
        rest.setdefault("version", job.version)
        path = f"/v1/tasks/{job.task_id}/{name.replace('_', '-')}"
        answer = await self.post(path, json_body, **rest)
        if answer.status == 200 and answer.json["outcome"] == "committed":
            job.version = answer.json["version"]
        return answer


class Device(Struct, frozen=True):
    """A device that a worker has enrolled."""

    tenant_id: str
    principal_id: str
    device_id: str
    seed: bytes


class Job:
    """A task as a test follows it."""

    def __init__(self, task_id: str, worker: Person, policy: ProofPolicy) -> None:
        self.task_id = task_id
        self.worker = worker
        self.policy = policy
        self.version = 1
        self.manifest_id = f"manifest-{task_id}"

    def manifest(self, **changes: Any) -> Manifest:
        fields: dict[str, Any] = {
            "manifest_id": self.manifest_id,
            "task_id": self.task_id,
            "task_version": self.version,
            "capture_time": "2026-03-01T09:50:00+01:00",
            "policy_version": policy_version(self.policy),
        }
        return Manifest(**(fields | changes))

    def proof(
        self, disclosures: Mapping[str, Disclosure] | None = None, **changes: Any
    ) -> dict[str, Any]:
        """Return the body that submits or hands over a manifest."""
        data = encode_manifest(self.manifest(**changes))
        return {
            "manifest": to_base64(data),
            "content_hash": content_hash(data),
            "disclosures": dict(disclosures or {}),
        }


class Office:
    """The API of one server, with one tenant at first."""

    def __init__(self, services: Services, client: Any, founder: TenantFounder) -> None:
        self.services = services
        self.client = client
        self._founder = founder
        self._numbers = itertools.count(1)
        self._people: dict[tuple[Role, ...], Person] = {}
        self.tenant: NewTenant
        self.admin: Person

    @property
    def clock(self) -> OfficeClock:
        clock = self.services.clock
        assert isinstance(clock, OfficeClock)
        return clock

    @property
    def log_keys(self) -> dict[str, bytes]:
        key = self.services.keys.log_key
        return {key.key_id: key.public_key}

    @property
    def stranger(self) -> Person:
        """Somebody without a token."""
        return Person(self, "nobody", None)

    def make_key(self) -> str:
        return f"key-{next(self._numbers)}"

    async def found_tenant(self) -> tuple[NewTenant, Person]:
        """Begin another tenant; return it with its administrator."""
        key = self.services.keys.log_key
        tenant = await self._founder.found("Stadtwerke", key.key_id, key.public_key)
        return tenant, Person(self, tenant.admin_id, tenant.admin_token)

    async def hire(
        self,
        *roles: Role,
        principal_id: str | None = None,
        skills: tuple[str, ...] = (),
        admin: Person | None = None,
    ) -> Person:
        """Create a principal with these roles, and a token for it."""
        admin = admin or self.admin
        name = principal_id or f"usr_{roles[0] if roles else 'none'}_{next(self._numbers)}"
        created = await admin.post(
            "/v1/principals",
            {
                "principal_id": name,
                "kind": "person",
                "display_name": f"The {name}",
                "roles": roles,
                "skills": skills,
            },
        )
        assert created.status == 201, created.body
        return await self.give_token(name, admin=admin)

    async def give_token(
        self, principal_id: str, *, admin: Person | None = None, **fields: Any
    ) -> Person:
        """Issue a token for a principal."""
        answer = await (admin or self.admin).post(
            "/v1/tokens", {"principal_id": principal_id, **fields}
        )
        assert answer.status == 200, answer.body
        return Person(self, principal_id, answer.json["token"])

    async def somebody(self, *roles: Role) -> Person:
        """Return always the same person with these roles."""
        if roles not in self._people:
            self._people[roles] = await self.hire(*roles)
        return self._people[roles]

    async def create(self, integration: Person | None = None, **fields: Any) -> tuple[Answer, str]:
        """Create a task; return the answer and the task's id."""
        sender = integration or await self.somebody(Role.INTEGRATION)
        body = {"external_id": f"job-{next(self._numbers)}", "source": SOURCE} | fields
        answer = await sender.post("/v1/tasks", body, key=fields.get("idempotency_key"))
        tenant_id = self.tenant.tenant_id
        return answer, task_id_for(tenant_id, body["source"], body["external_id"])

    async def job(
        self, state: str = "unassigned", *, worker: Person | None = None, **fields: Any
    ) -> Job:
        """Create a task and walk it to a state, everything over HTTP."""
        worker = worker or await self.somebody(Role.WORKER)
        given: dict[str, Any] = {"personal": PERSONAL, "position": SITE} | fields
        answer, task_id = await self.create(**given)
        assert answer.status == 201, answer.body
        policy = msgspec.convert(given.get("proof_policy", {}), ProofPolicy)
        job = Job(task_id, worker, policy)
        if state in ("completed", "cancelled"):
            await self._end(job, state)
        else:
            await self._walk(job, STATES.index(state))
        return job

    async def _walk(self, job: Job, steps: int) -> None:
        dispatcher, worker = await self.somebody(Role.DISPATCHER), job.worker
        assigned = {
            "worker_id": worker.principal_id,
            "personal": {"selection_reason": "nearest with the skill"},
        }
        walk: list[tuple[Person, str, Any]] = [
            (dispatcher, "assign", assigned),
            (worker, "accept", None),
            (worker, "start_travel", None),
            (worker, "arrive", {"position": FIX}),
            (worker, "submit_proof", None),
        ]
        for person, name, body in walk[:steps]:
            sent = job.proof() if name == "submit_proof" else body
            answer = await person.command(name, job, sent)
            assert answer.status == 200, answer.body

    async def _end(self, job: Job, state: str) -> None:
        if state == "cancelled":
            dispatcher = await self.somebody(Role.DISPATCHER)
            body = {"personal": {"reason": "the client withdrew"}}
            answer = await dispatcher.command("cancel", job, body)
        else:
            await self._walk(job, len(STATES) - 1)
            supervisor = await self.somebody(Role.SUPERVISOR)
            named = {"manifest_id": job.manifest_id}
            answer = await supervisor.command("approve_proof", job, named)
        assert answer.status == 200, answer.body

    async def enrol(self, worker: Person, *, number: int = 1) -> Device:
        """Enrol a device for a worker with a fresh code."""
        device, signed = await self.prepare_enrolment(worker, number=number)
        answer = await self.stranger.post("/v1/enrolments", signed, key=None)
        assert answer.status == 200, answer.body
        return device

    async def prepare_enrolment(
        self, worker: Person, *, number: int = 1, code: str | None = None
    ) -> tuple[Device, SignedCommand]:
        """Return a device and the signed command that enrols it, not sent yet."""
        if code is None:
            issued = await self.admin.post(
                "/v1/enrolment-codes", {"principal_id": worker.principal_id}
            )
            code = issued.json["code"]
        seed = number.to_bytes(32)
        device = Device(
            self.tenant.tenant_id,
            worker.principal_id,
            f"dev-{worker.principal_id}-{number}",
            seed,
        )
        command = Enrol(
            schema_version=1,
            tenant_id=device.tenant_id,
            aggregate_id=worker.principal_id,
            actor=Actor(worker.principal_id, Role.WORKER, device.device_id),
            command_id=code_hash(code or ""),
            lineage=self.tenant.lineage,
            occurred_at=format_instant(self.services.clock.now()),
            public_key=public_key_of(seed).hex(),
            server_key_id=self.services.keys.log_key.key_id,
        )
        return device, SignedCommand(sign(COMMAND_TYPE, encode(command), seed))

    async def open_session(self, device: Device) -> Person:
        """Open a session for a device; the person returned calls with its token."""
        named = {"tenant_id": device.tenant_id, "device_id": device.device_id}
        asked = await self.stranger.post("/v1/sessions/nonce", named, key=None)
        challenge = Challenge(
            purpose="workmate.session",
            server_key_id=asked.json["server_key_id"],
            tenant_id=device.tenant_id,
            device_id=device.device_id,
            nonce=asked.json["nonce"],
        )
        opened = await self.stranger.post(
            "/v1/sessions", sign_challenge(challenge, device.seed), key=None
        )
        assert opened.status == 200, opened.body
        return Person(self, device.principal_id, opened.json["token"])


def disclose(value: object, salt: int = 7) -> tuple[str, Disclosure]:
    """Return the commitment to a value under a fixed salt, and its disclosure."""
    return make_disclosure(value, bytes([salt]) * 32, "contract_7y")


async def make_office(folder: Path, settings: Settings | None = None) -> Office:
    """Start a server in a new folder and found a tenant; `close_office` ends it."""
    limits, entropy, clock = settings or Settings(), SystemEntropy(), OfficeClock()
    keys = KeyFolder.create(folder / "keys", entropy)
    database = SqliteDatabase(folder / "office.db", keys.database_key)
    database.migrate()
    run_blocking = WorkerThreads(limits.worker_threads)
    engine = Engine(database, keys, limits, clock, NoHooks(), run_blocking)
    await engine.start()
    services = Services(
        database=database,
        engine=engine,
        blobs=FolderBlobStore(folder / "blobs", NoHooks(), limits.blob_read_bytes),
        keys=keys,
        settings=limits,
        clock=clock,
        entropy=entropy,
        run_blocking=run_blocking,
    )
    server = TestServer(build_app(services))
    await server.start_server(None, **SERVER_OPTIONS)
    client: Any = TestClient(server)
    await client.start_server()
    office = Office(services, client, TenantFounder(database, engine, clock, entropy))
    office.tenant, office.admin = await office.found_tenant()
    return office


async def close_office(office: Office) -> None:
    """End the server and everything behind it."""
    await office.client.close()
    await office.services.engine.stop()
    run_blocking = office.services.run_blocking
    assert isinstance(run_blocking, WorkerThreads)
    run_blocking.close()
    office.services.database.close()
    # aiohttp remembers the last thousand handlers with their applications, and so their databases.
    web_app._cached_build_middleware.cache_clear()


@asynccontextmanager
async def open_office(folder: Path, settings: Settings | None = None) -> AsyncIterator[Office]:
    """Run an office for the length of a block."""
    office = await make_office(folder, settings)
    try:
        yield office
    finally:
        await close_office(office)


def assert_problem(answer: Answer, code: str) -> dict[str, Any]:
    """Demand the problem that the catalogue has for a code; return its members."""
    entry = CATALOGUE[code]
    problem: dict[str, Any] = answer.json
    assert problem["code"] == code, answer.body[:500]
    assert answer.status == entry.status == problem["status"]
    assert answer.headers["Content-Type"].partition(";")[0] == "application/problem+json"
    assert problem["type"] == f"urn:workmate:problem:{code}"
    assert problem["title"] == entry.title
    assert problem["detail"]
    assert b"Traceback" not in answer.body
    recorded = entry.recorded in (Recorded.CONFLICT, Recorded.REJECTED)
    assert ("receipt" in problem) == ("outcome" in problem) == recorded
    assert ("Retry-After" in answer.headers) == (entry.status in (429, 503))
    return problem
