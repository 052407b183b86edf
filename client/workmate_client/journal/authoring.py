"""Write and sign commands: whatever this device sends was made here.

Values that are personal leave as salted commitments, each with a fresh salt; the readings of the
device's clocks are taken when the worker acts. A command is signed with its number in the very
transaction that saves it, once, and never made again.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.profile_store import known
from workmate_client.journal.rows import Profile, QueuedCommand, SignedParts
from workmate_client.journal.store import Journal
from workmate_client.ports import Clock, Random
from workmate_shared.kernel.command import COMMAND_SCHEMA, Actor, Command, DeviceReading
from workmate_shared.kernel.table import Role
from workmate_shared.wire.commitment import SALT_BYTES, Disclosure, make_disclosure
from workmate_shared.wire.dsse import COMMAND_TYPE, sign_bytes
from workmate_shared.wire.intake import check_message, decode_command


class Value(Struct, frozen=True):
    """A personal value or a position, and the retention class that it is disclosed under."""

    value: object
    retention_class: str


class Act(Struct, frozen=True, kw_only=True):
    """What is to be done, before it is numbered and signed.

    `disclosures` are those that travel with it besides its own, such as a manifest's. A redo gives
    the readings and the time of the old command; everything else takes the present ones. Without
    `command_id` a fresh one is minted.
    """

    kind: type[Command]
    aggregate_id: str
    fields: Mapping[str, Any] = {}
    expected_version: int | None = None
    after: str | None = None
    supersedes: str | None = None
    personal: Value | None = None
    position: Value | None = None
    disclosures: Mapping[str, Disclosure] = {}
    command_id: str | None = None
    occurred_at: str | None = None
    reading: DeviceReading | None = None


class Written(Struct, frozen=True):
    """A command as it was written, and as it was signed."""

    command: Command
    parts: SignedParts


class Author:
    """Writes in the name of this device's worker, with the device's key."""

    def __init__(self, journal: Journal, keys: ProfileKeys, clock: Clock, random: Random) -> None:
        self._journal = journal
        self._keys = keys
        self._clock = clock
        self._random = random

    def issue(self, kind: type[Command], aggregate_id: str, **fields: Any) -> QueuedCommand:
        """Write, sign and save a command that builds on nothing, such as an annotation.

        `fields` are the command's own. Raises NotEnrolledError, and what `Journal.issue` raises.
        """
        act = Act(kind=kind, aggregate_id=aggregate_id, fields=fields)
        profile = known(self._journal.profile())
        return self._journal.issue(lambda seq: self.write(profile, act, seq).parts)

    def write(self, profile: Profile, act: Act, device_seq: int) -> Written:
        """Write and sign a command under its number; nothing is saved yet.

        Raises MessageError with the path where a field breaks its rule, as the server would.
        """
        disclosures = dict(act.disclosures)
        commitments: dict[str, Any] = {
            name: self._committed(value, disclosures)
            for name, value in (("personal", act.personal), ("position", act.position))
        }
        command = act.kind(
            schema_version=COMMAND_SCHEMA,
            tenant_id=profile.tenant_id,
            aggregate_id=act.aggregate_id,
            actor=Actor(profile.worker_id, Role.WORKER, self._keys.device_id),
            command_id=act.command_id or self._random.uuid7(),
            lineage=profile.lineage,
            occurred_at=act.occurred_at or self.now(),
            expected_version=act.expected_version,
            after=act.after,
            supersedes=act.supersedes,
            device=self._reading(profile, act, device_seq),
            **commitments,
            **act.fields,
        )
        payload = msgspec.json.encode(command)
        # What a struct's constructor lets pass is refused here, before anybody has signed it.
        check_message(decode_command(payload), disclosures, profile.tenant_id)
        key_id, signature = sign_bytes(COMMAND_TYPE, payload, self._keys.device_seed)
        return Written(command, SignedParts(payload, key_id, signature, disclosures))

    def now(self) -> str:
        """Return this clock's time as an instant with the offset of the worker's zone."""
        return self._clock.now().isoformat(timespec="milliseconds")

    def disclose(self, value: Value) -> tuple[str, Disclosure]:
        """Commit to a value under a fresh salt."""
        salt = self._random.token_bytes(SALT_BYTES)
        return make_disclosure(value.value, salt, value.retention_class)

    def _committed(self, value: Value | None, disclosures: dict[str, Disclosure]) -> str | None:
        if value is None:
            return None
        commitment, disclosure = self.disclose(value)
        disclosures[commitment] = disclosure
        return commitment

    def _reading(self, profile: Profile, act: Act, device_seq: int) -> DeviceReading:
        if act.reading is not None:
            return msgspec.structs.replace(act.reading, device_seq=device_seq)
        return DeviceReading(
            device_seq=device_seq,
            monotonic_ms=int(self._clock.monotonic() * 1000),
            boot_id=self._clock.boot_id(),
            last_server_time=profile.last_server_time,
        )
