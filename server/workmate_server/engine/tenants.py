"""Begin a tenant: the head of its log and its first batch.

The first batch says who the server is (its log key belongs to the principal `system`) and who may
administer, so that also the beginning is history with a receipt.
"""

from typing import Any

from msgspec import Struct

from workmate_server.engine.engine import Engine
from workmate_server.engine.model import Submission
from workmate_server.engine.tokens import new_token
from workmate_server.engine.workspace import SYSTEM_ID
from workmate_server.ports import Clock, Entropy
from workmate_server.store import appends
from workmate_server.store.database import Database
from workmate_shared.kernel.command import COMMAND_SCHEMA, Actor, Command
from workmate_shared.kernel.instants import format_instant
from workmate_shared.kernel.table import Role
from workmate_shared.principals import commands as c
from workmate_shared.tasks.policy import Retention
from workmate_shared.wire.codec import encode
from workmate_shared.wire.commitment import Disclosure, make_disclosure
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import check_message, decode_command

ADMIN_NAME = "Administrator"


class NewTenant(Struct, frozen=True):
    """What only the one who began the tenant learns; the token is shown once."""

    tenant_id: str
    lineage: str
    admin_id: str
    admin_token: str


class LogKeyNotTakenError(Exception):
    """The first batch was not committed as it should be; the detail says how it ended."""


class TenantFounder:
    """Begins tenants on one server."""

    def __init__(self, database: Database, engine: Engine, clock: Clock, entropy: Entropy) -> None:
        self._database = database
        self._engine = engine
        self._clock = clock
        self._entropy = entropy

    def _stamp(self, tenant_id: str, lineage: str, aggregate_id: str) -> dict[str, Any]:
        return {
            "schema_version": COMMAND_SCHEMA,
            "tenant_id": tenant_id,
            "aggregate_id": aggregate_id,
            "actor": Actor(SYSTEM_ID, Role.SYSTEM),
            "command_id": self._entropy.uuid7(),
            "lineage": lineage,
            "occurred_at": format_instant(self._clock.now()),
        }

    async def found(self, name: str, log_key_id: str, log_public_key: bytes) -> NewTenant:
        """Create the tenant and commit its first batch.

        With the same entropy and clock a second time, what was cut short is finished and the same
        tenant returned. Raises LogKeyNotTakenError if any command did not end committed.
        """
        tenant_id, lineage = self._entropy.uuid7(), self._entropy.uuid7()
        admin_id = self._entropy.uuid7()
        head = {
            "tenant_id": tenant_id,
            "name": name,
            "lineage": lineage,
            "seq": 0,
            "batch": 0,
            "header_hash": None,
        }
        with self._database.write() as connection:
            appends.create_head(self._database, connection, head)
        token = new_token(self._entropy)
        key = c.LogKey(credential_id=log_key_id, public_key=log_public_key.hex())
        access = c.AccessToken(
            credential_id=self._entropy.uuid7(), token_hash=token.hash, roles=(Role.ADMIN,)
        )
        personal, disclosure = make_disclosure(
            c.PrincipalPersonal(display_name=ADMIN_NAME),
            self._entropy.token_bytes(32),
            Retention().personal,
        )
        system = self._stamp(tenant_id, lineage, SYSTEM_ID)
        admin = self._stamp(tenant_id, lineage, admin_id)
        commands: list[Command] = [
            c.CreatePrincipal(**system, kind="service", roles=(Role.SYSTEM,), expected_version=0),
            c.AddCredential(**self._stamp(tenant_id, lineage, SYSTEM_ID), credential=key),
            c.CreatePrincipal(
                **admin,
                kind="person",
                roles=(Role.ADMIN,),
                expected_version=0,
                personal=personal,
            ),
            c.AddCredential(**self._stamp(tenant_id, lineage, admin_id), credential=access),
        ]
        decided = await self._engine.submit(
            tenant_id, [_submission(command, {personal: disclosure}) for command in commands]
        )
        for answer in decided:
            if answer.status != "committed":
                raise LogKeyNotTakenError(f"{answer.command_id}: {answer.sentence}")
        return NewTenant(tenant_id, lineage, admin_id, token.text)


def _submission(command: Command, disclosures: dict[str, Disclosure]) -> Submission:
    payload = encode(command)
    message = check_message(decode_command(payload), disclosures, command.tenant_id)
    return Submission(
        message=message,
        payload=payload,
        fingerprint=signed_fingerprint(payload),
        disclosures=disclosures,
    )
