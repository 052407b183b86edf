"""What goes into the engine and what comes out: submissions and decided commands."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from workmate_shared.kernel.explain import explain
from workmate_shared.wire.batch import Receipt
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.intake import Message


class Submission(Struct, frozen=True, kw_only=True):
    """One command that passed check 1, with the bytes that are stored for it.

    `payload` are the bytes that the leaf hashes: what the device signed, or what the server wrote
    for the JSON API. `keyid` and `signature` are there for signed commands only. With `fill_version`
    the engine states the present version as the expected one under its lock: for the server's own
    rules, which looked at the present state.
    """

    message: Message
    payload: bytes
    fingerprint: str
    disclosures: Mapping[str, Disclosure] = {}
    keyid: str | None = None
    signature: bytes | None = None
    fill_version: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The idempotency key in its tenant: the actor's id and the command's id."""
        command = self.message.command
        return command.actor.id, command.command_id


class LoggedEvent(Struct, frozen=True):
    """One event as the log holds it."""

    seq: int
    aggregate_version: int
    type: str
    payload: bytes


class Decided(Struct, frozen=True, kw_only=True):
    """How one submission ended.

    `status` is committed, unchanged, conflict, rejected or retry; a retry has neither receipt nor
    version. `replayed` says that the outcome was stored by an earlier copy of the command.
    """

    command_id: str
    status: str
    aggregate_type: str
    aggregate_id: str
    code: str | None = None
    details: Mapping[str, Any] = {}
    version: int | None = None
    events: tuple[LoggedEvent, ...] = ()
    receipt: Receipt | None = None
    command: bytes = b""
    replayed: bool = False
    blocked_by: str | None = None

    @property
    def sentence(self) -> str:
        """The outcome in one plain sentence."""
        return explain(self.status, self.code, self.details)
