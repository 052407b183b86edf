"""What devices did offline: commands signed beforehand, and the sync requests that carry them.

A worker accepts, sets out and arrives on one task after the other, each act building on the one
before. A request is put together as a device does it: with the cursor and the newest header of the
last answer, packed with gzip.
"""

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Raw, Struct

from benchmarks.prepared import Crew, fresh_value
from support import commands as build
from support.server_process import Office
from workmate_shared.kernel.command import Actor, DeviceReading
from workmate_shared.kernel.instants import format_instant
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.commands import Accept, Arrive, StartTravel
from workmate_shared.wire.codec import encode
from workmate_shared.wire.dsse import COMMAND_TYPE, sign
from workmate_shared.wire.messages import DeviceReport, SignedCommand

CHAIN = (Accept, StartTravel, Arrive)
_ASSIGNED = 2
_PACKED_FAST = 1
_GZIP = 31


class _Receipt(Struct):
    header: Raw


class _Outcome(Struct):
    status: str
    receipt: _Receipt | None = None


class _Pull(Struct):
    cursor: str


class Answer(Struct):
    """What a device takes over from an answer before it sends the next request."""

    pull: _Pull
    outcomes: list[_Outcome]


class Device:
    """One device with signed commands to send, and what it heard last."""

    def __init__(self, crew: Crew, office: Office) -> None:
        self.token = crew.token
        self.waiting = [encode(one) for one in _signed(crew, office)]
        self._cursor: str | None = None
        self._header: bytes = b"null"

    def request(self, count: int) -> bytes:
        """Return the packed body that carries the next commands, which wait no longer."""
        report = DeviceReport(build="benchmark", pending=len(self.waiting))
        sent, self.waiting = self.waiting[:count], self.waiting[count:]
        body = b'{"protocol":1,"newest_header":%b,"cursor":%b,"device":%b,"commands":[%b]}' % (
            self._header,
            encode(self._cursor),
            encode(report),
            b",".join(sent),
        )
        packer = zlib.compressobj(_PACKED_FAST, wbits=_GZIP)
        return packer.compress(body) + packer.flush()

    def hear(self, data: bytes, sent: int) -> None:
        """Take an answer over; every command must have been committed."""
        answer = _ANSWERS.decode(data)
        ended = [outcome.status for outcome in answer.outcomes]
        assert ended == ["committed"] * sent, ended
        self._cursor = answer.pull.cursor
        if answer.outcomes and answer.outcomes[-1].receipt is not None:
            self._header = bytes(answer.outcomes[-1].receipt.header)


_ANSWERS = msgspec.json.Decoder(Answer)


def _signed(crew: Crew, office: Office) -> Iterator[SignedCommand]:
    begun = datetime.now(UTC) - timedelta(hours=8)
    actor = Actor(crew.worker_id, Role.WORKER, crew.device_id)
    number = 0
    for task_id in crew.tasks:
        after = None
        for kind in CHAIN:
            number += 1
            position, opened = fresh_value(build.FIX) if kind is Arrive else (None, {})
            command = kind(
                schema_version=1,
                tenant_id=office.tenant_id,
                aggregate_id=task_id,
                actor=actor,
                command_id=f"{crew.device_id}-{number:06d}-0000-7000-8000-000000000000",
                lineage=office.lineage,
                occurred_at=format_instant(begun + timedelta(seconds=number)),
                expected_version=_ASSIGNED,
                after=after,
                device=DeviceReading(
                    device_seq=number, monotonic_ms=1000 * number, boot_id=crew.device_id
                ),
                position=position,
            )
            after = command.command_id
            yield SignedCommand(sign(COMMAND_TYPE, encode(command), crew.seed), opened)
