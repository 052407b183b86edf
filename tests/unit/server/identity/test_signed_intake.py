"""Check 1 of signed commands: key, device, actor and bytes belong together, or nothing is taken."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from support.commands import make_command, make_manifest, manifest_fields
from support.office import Device, Office, disclose, open_office
from workmate_server.engine.model import Submission
from workmate_server.identity.devices import intake_signed, read_devices, verify_signed
from workmate_shared.kernel.command import Actor, Command
from workmate_shared.kernel.table import Role
from workmate_shared.wire.binary import from_base64, to_base64
from workmate_shared.wire.codec import encode
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.dsse import COMMAND_TYPE, SESSION_TYPE, Envelope, sign
from workmate_shared.wire.fingerprint import signed_fingerprint
from workmate_shared.wire.intake import MessageError
from workmate_shared.wire.messages import SignedCommand


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with open_office(tmp_path) as opened:
        yield opened


@pytest.fixture
async def device(office: Office) -> Device:
    return await office.enrol(await office.somebody(Role.WORKER))


def command_of(device: Device, kind: str = "accept", **fields: Any) -> Command:
    actor = Actor(device.principal_id, Role.WORKER, device.device_id)
    given = {"tenant_id": device.tenant_id, "actor": actor, "aggregate_id": "task"}
    return make_command(kind, **(given | fields))


def signed_by(
    device: Device, command: Command, disclosures: dict[str, Disclosure] | None = None
) -> SignedCommand:
    return SignedCommand(sign(COMMAND_TYPE, encode(command), device.seed), disclosures or {})


def take(office: Office, *commands: SignedCommand) -> list[Submission | MessageError]:
    with office.services.database.read() as connection:
        return intake_signed(connection, office.tenant.tenant_id, commands)


def refusal(office: Office, signed: SignedCommand) -> MessageError:
    [result] = take(office, signed)
    assert isinstance(result, MessageError)
    return result


async def test_a_signed_command_is_taken_with_the_bytes_that_were_signed(
    office: Office, device: Device
) -> None:
    signed = signed_by(device, command_of(device))
    [result] = take(office, signed)
    assert isinstance(result, Submission)
    assert result.payload == from_base64(signed.envelope.payload)
    assert result.fingerprint == signed_fingerprint(result.payload)
    [signature] = signed.envelope.signatures
    assert result.keyid == signature.keyid
    assert result.signature == from_base64(signature.sig)


async def test_a_bad_command_between_good_ones_costs_only_itself(
    office: Office, device: Device
) -> None:
    good = [signed_by(device, command_of(device, command_id=f"k{n}")) for n in range(3)]
    bad = SignedCommand(replace(good[0].envelope, payload=to_base64(b"[]")))
    results = take(office, good[0], bad, good[1], good[2])
    assert [isinstance(result, Submission) for result in results] == [True, False, True, True]


async def test_only_what_a_message_commits_to_is_kept_of_its_values(
    office: Office, device: Device
) -> None:
    personal, answers = disclose({"notes": "done"})
    stray, unnamed = disclose({"notes": "of nothing"}, 9)
    manifest = make_manifest(task_id="task", personal=personal, position=None)
    command = command_of(device, "submit_proof", **manifest_fields(manifest))
    [result] = take(office, signed_by(device, command, {personal: answers, stray: unnamed}))
    assert isinstance(result, Submission)
    assert set(result.disclosures) == {personal}


async def test_a_revoked_devices_command_is_taken_for_the_engine_to_refuse(
    office: Office, device: Device
) -> None:
    await office.admin.post(f"/v1/devices/{device.device_id}/revoke", {"wipe": True})
    [result] = take(office, signed_by(device, command_of(device)))
    assert isinstance(result, Submission)
    [decided] = await office.services.engine.submit(office.tenant.tenant_id, [result])
    assert decided.status == "retry", "the task is not there"


async def test_another_key_than_the_devices_proves_nothing(office: Office, device: Device) -> None:
    forger = msgspec.structs.replace(device, seed=bytes(32))
    assert refusal(office, signed_by(forger, command_of(device))).code == "signature_invalid"


async def test_another_persons_device_cannot_sign_for_somebody(
    office: Office, device: Device
) -> None:
    other = await office.enrol(await office.hire(Role.WORKER))
    stolen = command_of(device, actor=Actor(device.principal_id, Role.WORKER, other.device_id))
    error = refusal(office, signed_by(other, stolen))
    assert (error.code, error.path) == ("signature_invalid", "$.actor")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"device_id": "dev-none"}, "signature_invalid"),
        ({"device_id": None}, "invalid_command"),
        ({"tenant_id": "other"}, "tenant_mismatch"),
        ({"schema_version": 99}, "unknown_schema"),
        ({"type": "dance"}, "unknown_schema"),
        ({"occurred_at": "never"}, "invalid_command"),
        ({"unknown": 1}, "invalid_command"),
        ({"personal": "aa" * 32}, "disclosure_missing"),
    ],
)
async def test_what_is_signed_and_still_wrong_is_refused_by_its_code(
    office: Office, device: Device, change: dict[str, Any], code: str
) -> None:
    fields = msgspec.json.decode(encode(command_of(device)))
    if "device_id" in change:
        fields["actor"]["device_id"] = change["device_id"]
    else:
        fields |= change
    envelope = sign(COMMAND_TYPE, msgspec.json.encode(fields), device.seed)
    assert refusal(office, SignedCommand(envelope)).code == code


async def test_an_enrolled_device_enrols_no_more(office: Office, device: Device) -> None:
    command = command_of(device, "enrol", aggregate_id=device.principal_id)
    assert refusal(office, signed_by(device, command)).code == "invalid_command"


async def test_a_signature_over_another_kind_of_message_is_none(
    office: Office, device: Device
) -> None:
    envelope = sign(SESSION_TYPE, encode(command_of(device)), device.seed)
    passed_off = Envelope(envelope.payload, COMMAND_TYPE, envelope.signatures)
    for wrong in (envelope, passed_off):
        assert refusal(office, SignedCommand(wrong)).code == "signature_invalid"


async def test_another_tenants_device_is_unknown(office: Office, device: Device) -> None:
    tenant, _ = await office.found_tenant()
    signed = signed_by(device, command_of(device, tenant_id=tenant.tenant_id))
    with office.services.database.read() as connection:
        [result] = intake_signed(connection, tenant.tenant_id, [signed])
        devices = read_devices(connection, office.tenant.tenant_id, [device.device_id])
    assert isinstance(result, MessageError)
    assert result.code == "signature_invalid"
    with pytest.raises(MessageError, match="tenant_mismatch"):
        verify_signed(signed, devices.get, office.tenant.tenant_id)
