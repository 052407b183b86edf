"""A worker's device in tests of the server: it signs commands and syncs them over HTTP."""

import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import select

from support.office import Answer, Device, Job, Office, Person, disclose
from workmate_server.store.tables import ServerTable
from workmate_shared.kernel.command import Actor
from workmate_shared.kernel.instants import format_instant
from workmate_shared.kernel.table import Role
from workmate_shared.wire.batch import Receipt, check_events, verify_receipt
from workmate_shared.wire.codec import encode
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.dsse import COMMAND_TYPE, sign
from workmate_shared.wire.messages import Outcome, SignedCommand, SyncAnswer
from workmate_shared.wire.registry import COMMAND_TYPES

FIX = {"lat_e7": 405863900, "lon_e7": -739325900, "accuracy_m": 8, "source": "gps"}


class Handheld:
    """One enrolled device with an open session."""

    def __init__(self, office: Office, device: Device, session: Person) -> None:
        self.office = office
        self.device = device
        self.session = session
        self._numbers = itertools.count(1)

    def command(self, name: str, job: Job | str, /, **fields: Any) -> bytes:
        """Return the exact bytes of a command; expects no version unless told."""
        task_id = job if isinstance(job, str) else job.task_id
        given: dict[str, Any] = {
            "schema_version": 1,
            "tenant_id": self.device.tenant_id,
            "aggregate_id": task_id,
            "actor": Actor(self.device.principal_id, Role.WORKER, self.device.device_id),
            "command_id": f"{self.device.device_id}-{next(self._numbers)}",
            "lineage": self.office.tenant.lineage,
            "occurred_at": format_instant(self.office.services.clock.now()),
        }
        return encode(COMMAND_TYPES[name](**(given | fields)))

    def sign(
        self, payload: bytes, disclosures: Mapping[str, Disclosure] | None = None
    ) -> SignedCommand:
        """Return bytes signed with the device's key."""
        envelope = sign(COMMAND_TYPE, payload, self.device.seed)
        return SignedCommand(envelope, dict(disclosures or {}))

    def signed(self, name: str, job: Job | str, /, **fields: Any) -> SignedCommand:
        """Return a signed command; `arrive` brings a fix, `decline` a reason, as they must."""
        values: dict[str, Disclosure] = dict(fields.pop("disclosures", {}))
        if name == "arrive" and "no_fix_reason" not in fields:
            fields["position"], values[fields["position"]] = _disclosed(FIX, values)
        if name == "decline":
            fields = {"reason_code": "other"} | fields
            fields["personal"], values[fields["personal"]] = _disclosed(
                {"reason": "no time"}, values
            )
        if name in ("submit_proof", "hand_over") and "manifest_id" not in fields:
            assert isinstance(job, Job)
            proof = job.proof()
            fields = {name: proof[name] for name in ("manifest", "content_hash")} | fields
        return self.sign(self.command(name, job, **fields), values)

    def chain(self, job: Job, *names: str, version: int) -> list[SignedCommand]:
        """Return commands that build on each other, the first on a version of the job."""
        chained: list[SignedCommand] = []
        after = None
        for name in names:
            command_id = f"{self.device.device_id}-chain-{job.task_id}-{name}"
            chained.append(
                self.signed(name, job, expected_version=version, after=after, command_id=command_id)
            )
            after = command_id
        return chained

    async def post(self, body: Any, **rest: Any) -> Answer:
        """POST a sync request as it is."""
        return await self.session.post("/v1/sync", body, key=None, **rest)

    async def sync(self, *commands: Any, **fields: Any) -> SyncAnswer:
        """Sync and demand an answer."""
        body = {"protocol": 1, "commands": list(commands)} | fields
        answer = await self.post(body)
        assert answer.status == 200, answer.body
        return msgspec.json.decode(answer.body, type=SyncAnswer)

    async def outcomes(self, *commands: Any, **fields: Any) -> list[Outcome]:
        """Sync and return the outcomes."""
        return list((await self.sync(*commands, **fields)).outcomes)

    def prove(self, outcome: Outcome) -> Receipt:
        """Demand that an outcome's receipt verifies and covers its events; return the receipt."""
        assert outcome.receipt is not None
        verified = verify_receipt(outcome.receipt, self.office.log_keys)
        assert verified.leaf.command_id == outcome.command_id
        assert verified.leaf.outcome == outcome.status
        check_events(verified, [event.payload.encode() for event in outcome.events])
        return outcome.receipt


def _disclosed(value: object, known: Mapping[str, Disclosure]) -> tuple[str, Disclosure]:
    return disclose(value, salt=11 + len(known))


async def take_handheld(office: Office, worker: Person, *, number: int = 1) -> Handheld:
    """Enrol a device for a worker and open a session on it."""
    device = await office.enrol(worker, number=number)
    return Handheld(office, device, await office.open_session(device))


def rows_of(office: Office, table: str) -> list[dict[str, Any]]:
    """Return every row of a table of an office's database."""
    found = ServerTable.metadata.tables[table]
    with office.services.database.read() as connection:
        return [dict(row._mapping) for row in connection.execute(select(found))]
