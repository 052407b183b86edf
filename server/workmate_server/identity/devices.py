"""Commands that devices signed: check 1 for each of them, whoever carried it here.

The key is looked up by the device that the command names, and nothing of the command is believed
before that key's signature over its exact bytes has been verified. A revoked device's commands are
verified like all others: that they end rejected is for the engine to decide and to record.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

from msgspec import Struct

from workmate_server.engine.model import Submission
from workmate_server.store import reads_identity
from workmate_server.store.database import Connection
from workmate_shared.kernel.command import Command
from workmate_shared.principals.commands import Enrol
from workmate_shared.wire.codec import MalformedError, decode, decode_part
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.dsse import (
    COMMAND_TYPE,
    Envelope,
    SignatureError,
    key_id,
    split_envelope,
    verify_bytes,
)
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import (
    MAX_COMMAND_BYTES,
    Message,
    MessageError,
    check_message,
    decode_command,
)
from workmate_shared.wire.messages import SignedCommand

P = ParamSpec("P")
T = TypeVar("T")


class DeviceKeyRow(Struct, frozen=True):
    """A device as the log knows it: its id, whose it is, and its raw public key."""

    device_id: str
    principal_id: str
    public_key: bytes


class _Claimed(Struct, frozen=True):
    """What an unproven command says of its sender: good for looking a key up, for nothing else."""

    actor: "_ClaimedActor"


class _ClaimedActor(Struct, frozen=True):
    id: str
    device_id: str | None = None


class _Opened(Struct, frozen=True):
    """A command's envelope taken apart, nothing of it proven, and the device that it names."""

    payload: bytes
    keyid: str
    signature: bytes
    device_id: str


Lookup = Callable[[str], DeviceKeyRow | None]
"""Gives the device with an id, or None."""


def verify_signed(signed: SignedCommand, lookup: Lookup, tenant_id: str) -> Submission:
    """Return the submission of a signed command after its check 1.

    Raises MessageError: `signature_invalid` where bytes, key, device and actor do not belong
    together, else what `decode_command` and `check_message` refuse.
    """
    return _verify(signed, _open(signed.envelope), lookup, tenant_id)


def _verify(signed: SignedCommand, opened: _Opened, lookup: Lookup, tenant_id: str) -> Submission:
    payload, keyid, signature = opened.payload, opened.keyid, opened.signature
    device = lookup(opened.device_id)
    if device is None:
        raise MessageError("signature_invalid", "$.envelope", "No such device is enrolled.")
    command = _verified(payload, keyid, signature, device.public_key)
    if (command.actor.device_id, command.actor.id) != (device.device_id, device.principal_id):
        raise MessageError("signature_invalid", "$.actor", "The device is another person's.")
    if isinstance(command, Enrol):
        raise MessageError("invalid_command", "$.type", "A device that is enrolled enrols no more.")
    return _submission(signed, payload, keyid, signature, command, tenant_id)


def verify_enrolment(signed: SignedCommand) -> tuple[Submission, Enrol]:
    """Return the submission of an `enrol` command, proven by the key that it brings, and itself.

    Raises MessageError like `verify_signed`.
    """
    payload, keyid, signature = _split(signed.envelope)
    try:
        claimed = decode(payload, _ClaimedKey, max_bytes=MAX_COMMAND_BYTES)
        public_key = bytes.fromhex(claimed.public_key)
    except (MalformedError, ValueError) as error:
        raise MessageError("invalid_command", "$.envelope", "Not an enrolment.") from error
    command = _verified(payload, keyid, signature, public_key)
    if not isinstance(command, Enrol):
        raise MessageError("invalid_command", "$.type", "Not an enrolment.")
    if command.actor.device_id is None:
        raise MessageError("invalid_command", "$.actor.device_id", "A device has an id.")
    tenant_id = command.tenant_id
    return _submission(signed, payload, keyid, signature, command, tenant_id), command


def intake_signed(
    connection: Connection, tenant_id: str, commands: Sequence[SignedCommand]
) -> list[Submission | MessageError]:
    """Verify many commands, in order; each stands alone. Blocks, and belongs in a worker thread."""
    opened = [_or_refusal(_open, signed.envelope) for signed in commands]
    named = (one.device_id for one in opened if isinstance(one, _Opened))
    lookup = read_devices(connection, tenant_id, named).get
    return [
        one
        if isinstance(one, MessageError)
        else _or_refusal(_verify, signed, one, lookup, tenant_id)
        for signed, one in zip(commands, opened, strict=True)
    ]


def _or_refusal(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | MessageError:
    try:
        return step(*args, **kwargs)
    except MessageError as error:
        return error


def read_devices(
    connection: Connection, tenant_id: str, device_ids: Iterable[str]
) -> dict[str, DeviceKeyRow]:
    """Return those of the devices that the log knows, by id, revoked ones too."""
    rows = reads_identity.device_keys(connection, tenant_id, set(device_ids))
    return {
        name: DeviceKeyRow(name, row.principal_id, bytes.fromhex(row.lookup))
        for name, row in rows.items()
    }


class _ClaimedKey(Struct, frozen=True):
    public_key: str


def _split(envelope: Envelope) -> tuple[bytes, str, bytes]:
    try:
        return split_envelope(envelope, COMMAND_TYPE)
    except SignatureError as error:
        raise MessageError("signature_invalid", "$.envelope", error.detail) from error


def _open(envelope: Envelope) -> _Opened:
    payload, keyid, signature = _split(envelope)
    try:
        # The payload is judged once it has been proven; here it only names a device.
        claimed = decode_part(payload, _Claimed, max_bytes=MAX_COMMAND_BYTES)
    except MalformedError as error:
        raise MessageError(error.code, error.path, error.detail) from error
    if claimed.actor.device_id is None:
        raise MessageError("invalid_command", "$.actor.device_id", "A signed command names one.")
    return _Opened(payload, keyid, signature, claimed.actor.device_id)


def _verified(payload: bytes, keyid: str, signature: bytes, public_key: bytes) -> Command:
    try:
        verify_bytes(COMMAND_TYPE, payload, keyid, signature, {key_id(public_key): public_key})
    except (SignatureError, ValueError) as error:
        raise MessageError("signature_invalid", "$.envelope", str(error)) from error
    return decode_command(payload)


def _submission(
    signed: SignedCommand,
    payload: bytes,
    keyid: str,
    signature: bytes,
    command: Command,
    tenant_id: str,
) -> Submission:
    message = check_message(command, signed.disclosures, tenant_id)
    return Submission(
        message=message,
        payload=payload,
        fingerprint=signed_fingerprint(payload),
        disclosures=_named(message, signed.disclosures),
        keyid=keyid,
        signature=signature,
    )


def _named(message: Message, given: dict[str, Disclosure]) -> dict[str, Disclosure]:
    """Return the values that the message commits to; what nothing commits to is not kept."""
    named = message.command.commitments()
    if message.manifest is not None:
        named += message.manifest.commitments()
    return {name: given[name] for name in named}
