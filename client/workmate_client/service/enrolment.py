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
from workmate_client.service.standing import standing_of
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


class CodeSpentError(ServiceError):
    """The code was used up by another device."""

    def __init__(self) -> None:
        detail = "this code has been used on another laptop; ask for a new one"
        super().__init__("code_spent", detail)


_CODE_OF_NO_USE = frozenset({"enrolment_unknown", "code_spent"})
"""With these the command of an earlier try can never go through, and a new code may."""


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

    Raises ServiceError (`code_length`, `code_symbol`, `code_mistyped`, `code_spent`,
    `enrolled_elsewhere`, `profile_retired`, `server_key_unknown`, `receipt_unproven`, or the code
    with which the server decided against it), TransportError, StoreError, StorageError.
    """
    try:
        code_hash = codes.code_hash(code)
        _, prefix = codes.parse_code(code)
    except codes.CodeError as error:
        raise ServiceError(error.code, error.detail) from error
    server_url = normal_url(server_url)
    profile = await run_blocking(device.journal.profile)
    if profile is not None and not _may_enrol(profile, server_url):
        return _bound(profile, server_url)
    step = await run_blocking(_unfinished, device, profile)
    if step is not None:
        # The reply to an earlier try may have been lost: its command is sent again first.
        try:
            outcome = await _sent(transport, step)
        except (TransportError, CodeSpentError) as error:
            if error.code not in _CODE_OF_NO_USE or step.command.command_id == code_hash:
                raise
        else:
            return _enrolled(await run_blocking(_finish, device, step, outcome))
    offer = await transport.offer(code_hash)
    step = await run_blocking(_prepare, device, server_url, code_hash, offer, prefix)
    outcome = await _sent(transport, step)
    return _enrolled(await run_blocking(_finish, device, step, outcome))


def normal_url(server_url: str) -> str:
    """Return a server's address as it is kept: scheme and host in lower case, no slash at its end.

    By RFC 3986, section 6.2.2, these ways of writing it name the same server.
    """
    scheme, mark, rest = server_url.strip().partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{mark}{host.lower()}{slash}{path}".rstrip("/")


async def _sent(transport: EnrolmentTransport, step: _Step) -> Outcome:
    """Send a step's command. Raises TransportError, CodeSpentError."""
    try:
        return await transport.enrol(step.command.signed())
    except TransportError as error:
        if error.code != "idempotency_key_reused":
            raise
        # A code is the key of its enrolment: other content under it is another device's.
        raise CodeSpentError from error


def _may_enrol(profile: Profile, server_url: str) -> bool:
    return not profile.enrolled and normal_url(profile.server_url) == server_url


def _bound(profile: Profile, server_url: str) -> Enrolled:
    if normal_url(profile.server_url) != server_url:
        raise ServiceError("enrolled_elsewhere", f"this device belongs to {profile.server_url}")
    refused = standing_of(profile)
    if refused is not None:
        raise ServiceError("profile_retired", f"{refused.sentence}; it cannot be enrolled again")
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
