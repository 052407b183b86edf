"""Receipts: what the server signed about each act, and whether it still proves what it says.

Verified is what a receipt proves under the pinned keys about the very bytes that this device signed;
nothing else counts.
"""

from collections.abc import Mapping

from msgspec import Struct

from workmate_client.journal.rows import Profile, QueuedCommand
from workmate_client.service.device import Device
from workmate_shared.wire.batch import (
    Receipt,
    ReceiptError,
    VerifiedReceipt,
    command_hash,
    payload_hash,
    verify_receipt,
)
from workmate_shared.wire.messages import WireEvent


class HeldReceipt(Struct, frozen=True, kw_only=True):
    """The receipt of one act: how it ended, in which batch, when by the server's clock.

    `fault` says why the receipt does not prove that; None where it does, or was not checked.
    """

    command_id: str
    name: str
    task_id: str
    status: str
    code: str | None
    lineage: str
    batch: int | None = None
    server_time: str | None = None
    key_id: str | None = None
    fault: str | None = None


class ReceiptReport(Struct, frozen=True, kw_only=True):
    """All receipts, each verified again; `proven` of them prove what they say."""

    receipts: tuple[HeldReceipt, ...]
    proven: int

    @property
    def all_proven(self) -> bool:
        """Whether none of them fails."""
        return self.proven == len(self.receipts)


def prove(
    command: QueuedCommand,
    receipt: Receipt | None,
    profile: Profile,
    keys: Mapping[str, bytes],
) -> VerifiedReceipt:
    """Return what a receipt proves of a command of this device.

    Raises ReceiptError, with `receipt_mismatch` for the receipt of another decision.
    """
    if receipt is None:
        raise ReceiptError("receipt_mismatch", "there is no receipt")
    verified = verify_receipt(receipt, keys)
    leaf = verified.leaf
    named = (leaf.tenant_id, leaf.principal_id, leaf.command_id, leaf.aggregate_id)
    wanted = (profile.tenant_id, profile.worker_id, command.command_id, command.aggregate_id)
    if named != wanted or leaf.command_hash != command_hash(command.parts.payload):
        raise ReceiptError("receipt_mismatch", "it is the receipt of another command")
    return verified


def verify_receipts(device: Device) -> ReceiptReport:
    """Verify every stored receipt again, with the pinned keys."""
    profile = device.profile()
    keys = profile.trusted_keys()
    answered = [command for command in device.journal.commands() if command.outcome is not None]
    receipts = tuple(_checked(command, profile, keys) for command in answered)
    return ReceiptReport(receipts=receipts, proven=sum(r.fault is None for r in receipts))


def _checked(command: QueuedCommand, profile: Profile, keys: Mapping[str, bytes]) -> HeldReceipt:
    outcome = command.outcome
    receipt = outcome.receipt if outcome else None
    verified, fault = None, None
    try:
        verified = prove(command, receipt, profile, keys)
        decision = (verified.leaf.outcome, verified.leaf.code)
        if outcome is None or decision != (outcome.status, outcome.code):
            fault = "the receipt is that of another outcome"
        elif not _hashed(verified, outcome.events):
            fault = "an event beside it is not one that it names"
    except ReceiptError as error:
        fault = error.detail
    return HeldReceipt(
        command_id=command.command_id,
        name=command.name,
        task_id=command.aggregate_id,
        status=command.status,
        code=outcome.code if outcome else None,
        lineage=outcome.lineage if outcome else "",
        batch=verified.header.batch if verified else None,
        server_time=verified.header.server_time if verified else None,
        key_id=receipt.header.signatures[0].keyid
        if receipt and receipt.header.signatures
        else None,
        fault=fault,
    )


def _hashed(verified: VerifiedReceipt, events: tuple[WireEvent, ...]) -> bool:
    """Whether every event kept here is one that the leaf names; some may have been withheld."""
    named = {event.payload_hash for event in verified.leaf.events}
    return all(payload_hash(event.payload.encode()) in named for event in events)
