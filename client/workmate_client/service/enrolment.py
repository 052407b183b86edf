"""Bind this device to a worker and a server, once, with a one-time code.

The code's own digits name the server's key, so the device knows whom to trust before it trusts it.
Keys, profile and the signed command are durable before the command is sent, so a lost reply burns
nothing: enrolling again with the same code sends the same bytes. Only a receipt that verifies under
the pinned key makes the device enrolled.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from workmate_client.journal.authoring import Act
from workmate_client.journal.rows import Profile, QueuedCommand
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.receipts import prove
from workmate_client.sync.blocking import RunBlocking, run_in_thread
from workmate_client.sync.failures import TransportError
from workmate_shared.kernel.explain import explain
from workmate_shared.principals import enrolment as codes
from workmate_shared.principals.commands import Enrol
from workmate_shared.wire.batch import ReceiptError
from workmate_shared.wire.dsse import key_id
from workmate_shared.wire.messages import EnrolmentOffer, Outcome, SignedCommand


class EnrolmentTransport(Protocol):
    """How an enrolment reaches the server.

    Both raise a TransportError: with the catalogue's code where the server refused, else for an
    answer that did not come or is not the server's; the same may be sent again.
    """

    async def offer(self, code_hash: str) -> EnrolmentOffer:
        """Ask whom the code enrols and by which keys the server signs."""
        ...

    async def enrol(self, signed: SignedCommand) -> Outcome:
        """Send the signed `enrol` command; the answer is not verified here."""
        ...


class Enrolled(Struct, frozen=True, kw_only=True):
    """Who works with this device from now on; `already` if that was so before."""

    server_url: str
    tenant_id: str
    worker_id: str
    display_name: str | None
    device_id: str
    already: bool = False


class _Step(Struct, frozen=True):
    """The signed command that waits to be sent, and for whom."""

    profile: Profile
    command: QueuedCommand


async def enrol(
    device: Device,
    transport: EnrolmentTransport,
    server_url: str,
    code: str,
    *,
    run_blocking: RunBlocking = run_in_thread,
) -> Enrolled:
    """Enrol this device at a server with a code; may be repeated after any failure.

    Raises ServiceError (`code_length`, `code_symbol`, `code_mistyped`, `enrolled_elsewhere`,
    `server_key_unknown`, `receipt_unproven`, or the code with which the server decided against
    it), TransportError, StoreError, StorageError.
    """
    try:
        code_hash = codes.code_hash(code)
        _, prefix = codes.parse_code(code)
    except codes.CodeError as error:
        raise ServiceError(error.code, error.detail) from error
    profile = await run_blocking(device.journal.profile)
    if profile is not None and (profile.enrolled or profile.server_url != server_url):
        return _bound(profile, server_url)
    step = await run_blocking(_unfinished, device, profile)
    if step is not None:
        # The reply to an earlier try may have been lost: its command is sent again first.
        try:
            outcome = await transport.enrol(step.command.signed())
        except TransportError as error:
            if error.code != "enrolment_unknown" or step.command.command_id == code_hash:
                raise
        else:
            return _enrolled(await run_blocking(_finish, device, step, outcome))
    offer = await transport.offer(code_hash)
    step = await run_blocking(_prepare, device, server_url, code_hash, offer, prefix)
    outcome = await transport.enrol(step.command.signed())
    return _enrolled(await run_blocking(_finish, device, step, outcome))


def _bound(profile: Profile, server_url: str) -> Enrolled:
    if profile.server_url != server_url:
        raise ServiceError("enrolled_elsewhere", f"this device belongs to {profile.server_url}")
    return _enrolled(profile, already=True)


def _unfinished(device: Device, profile: Profile | None) -> _Step | None:
    """Return what an earlier try left unanswered, or None."""
    waiting = _waiting(device) if profile is not None else []
    return _Step(profile, waiting[-1]) if profile is not None and waiting else None


def _waiting(device: Device) -> list[QueuedCommand]:
    name = str(Enrol.__struct_config__.tag)
    return [command for command in device.journal.pending() if command.name == name]


def _prepare(
    device: Device, server_url: str, code_hash: str, offer: EnrolmentOffer, prefix: bytes
) -> _Step:
    """Pin the server's key, and make everything durable that the enrolment needs."""
    pinned = _pinned(offer.server_keys, prefix)
    profile = Profile(
        server_url=server_url,
        tenant_id=offer.tenant_id,
        worker_id=offer.principal_id,
        display_name=offer.display_name,
        device_id=device.keys.device_id,
        lineage=offer.lineage,
        pinned_keys=pinned,
        last_server_time=offer.server_time,
    )
    device.journal.save_profile(profile)
    earlier = _waiting(device)
    act = Act(
        kind=Enrol,
        aggregate_id=offer.principal_id,
        command_id=code_hash,
        supersedes=earlier[-1].command_id if earlier else None,
        fields={
            "public_key": device.keys.public_key.hex(),
            "server_key_id": next(iter(pinned)),
        },
    )
    command = device.journal.issue(lambda seq: device.author.write(profile, act, seq).parts)
    return _Step(profile, command)


def _pinned(server_keys: Mapping[str, str], prefix: bytes) -> dict[str, str]:
    """Return the one key that the code names, under its own id."""
    for key in server_keys.values():
        try:
            name = key_id(bytes.fromhex(key))
        except ValueError:
            continue
        if codes.key_matches(name, prefix):
            return {name: key}
    raise ServiceError("server_key_unknown", "this is not the server that the code was made for")


def _finish(device: Device, step: _Step, outcome: Outcome) -> Profile:
    profile = step.profile
    if outcome.status == "retry":
        sentence = explain("retry", outcome.code, outcome.details)
        raise ServiceError(outcome.code or "overloaded", sentence)
    try:
        proven = prove(step.command, outcome.receipt, profile, profile.trusted_keys())
    except ReceiptError as error:
        raise ServiceError("receipt_unproven", error.detail) from error
    if (proven.leaf.outcome, proven.leaf.code) != (outcome.status, outcome.code):
        raise ServiceError("receipt_unproven", "the receipt is that of another outcome")
    device.journal.record_outcome(step.command.command_id, outcome)
    if outcome.status not in ("committed", "unchanged"):
        sentence = explain(outcome.status, outcome.code, outcome.details)
        raise ServiceError(outcome.code or outcome.status, sentence)
    header = proven.header
    receipt = outcome.receipt
    changes = replace(
        profile,
        enrolled=True,
        last_server_time=header.server_time,
        last_contact_at=device.now(),
        newest_header=receipt.header if receipt else None,
        newest_batch=header.batch,
    )
    device.journal.save_profile(changes)
    return changes


def _enrolled(profile: Profile, *, already: bool = False) -> Enrolled:
    return Enrolled(
        server_url=profile.server_url,
        tenant_id=profile.tenant_id,
        worker_id=profile.worker_id,
        display_name=profile.display_name,
        device_id=profile.device_id,
        already=already,
    )
