"""A device is enrolled by a receipt that it verified under the key that the code named, or not at all."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from support.laptop import KEYS, machine_for_tests
from support.office import Office, Person, open_office
from workmate_client.bootstrap import open_device, transport_to
from workmate_client.config import ProfilePaths
from workmate_client.journal.keys import ProfileKeys
from workmate_client.service import enrolment, receipts
from workmate_client.service.device import Device, ServiceError
from workmate_client.sync.failures import CutError, RefusedError
from workmate_client.sync.transport import HttpTransport
from workmate_shared.kernel.table import Role
from workmate_shared.principals.enrolment import code_hash, make_code, parse_code
from workmate_shared.wire.messages import EnrolmentOffer, Outcome, SignedCommand


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with open_office(tmp_path / "office") as opened:
        yield opened


@pytest.fixture
async def worker(office: Office) -> Person:
    return await office.hire(Role.WORKER, principal_id="usr_w1")


def new_device(folder: Path, keys: ProfileKeys = KEYS) -> Device:
    return open_device(machine_for_tests(), ProfilePaths(folder), keys)


async def code_for(office: Office, worker: Person) -> str:
    issued = await office.admin.post("/v1/enrolment-codes", {"principal_id": worker.principal_id})
    code: str = issued.json["code"]
    return code


def address(office: Office) -> str:
    return str(office.client.make_url("/")).rstrip("/")


class Unlucky:
    """The way to the server, on which the first replies to `enrol` are lost or changed."""

    def __init__(self, transport: HttpTransport, losses: int = 0) -> None:
        self._transport = transport
        self.losses = losses
        self.offers = 0
        self.sent: list[SignedCommand] = []
        self.change: Callable[[Outcome], Outcome] = lambda outcome: outcome

    async def offer(self, code: str) -> EnrolmentOffer:
        self.offers += 1
        return await self._transport.offer(code)

    async def enrol(self, signed: SignedCommand) -> Outcome:
        self.sent.append(signed)
        outcome = await self._transport.enrol(signed)
        if self.losses:
            self.losses -= 1
            raise CutError("the reply was lost")
        return self.change(outcome)


def assert_nothing_waits(device: Device) -> None:
    assert device.journal.pending() == ()
    counts = device.journal.conservation()
    assert (counts.issued, counts.pending, counts.committed, counts.holds) == (1, 0, 1, True)


async def test_a_device_is_enrolled_with_a_receipt_that_verifies(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    async with transport_to(address(office), device.settings) as transport:
        code = await code_for(office, worker)
        done = await enrolment.enrol(device, transport, address(office), code)
        assert (done.worker_id, done.already) == ("usr_w1", False)
        assert done.display_name == "The usr_w1"
        profile = device.profile()
        assert profile.enrolled
        assert set(profile.pinned_keys) == set(office.log_keys)
        assert profile.newest_header is not None
        report = receipts.verify_receipts(device)
        assert (report.all_proven, report.proven) == (True, 1)
        assert device.journal.conservation().holds
        again = await enrolment.enrol(device, transport, address(office), code)
        assert again.already


async def test_a_lost_reply_burns_nothing_and_the_same_bytes_are_sent_again(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    code = await code_for(office, worker)
    async with transport_to(address(office), device.settings) as transport:
        unlucky = Unlucky(transport, losses=2)
        for _ in range(2):
            with pytest.raises(CutError):
                await enrolment.enrol(device, unlucky, address(office), code)
            assert not device.profile().enrolled
        device.close()
        device = new_device(tmp_path / "profile")
        await enrolment.enrol(device, unlucky, address(office), code)
        assert device.profile().enrolled
        assert unlucky.offers == 1
        assert unlucky.sent == [unlucky.sent[0]] * 3


async def test_with_a_new_code_the_answer_to_the_old_one_is_asked_for_first(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    async with transport_to(address(office), device.settings) as transport:
        unlucky = Unlucky(transport, losses=1)
        with pytest.raises(CutError):
            await enrolment.enrol(device, unlucky, address(office), await code_for(office, worker))
        second = await code_for(office, worker)
        await enrolment.enrol(device, unlucky, address(office), second)
        assert device.profile().enrolled
        assert unlucky.sent[1] == unlucky.sent[0]
        # The second code was not used up.
        other = new_device(tmp_path / "other", ProfileKeys(bytes(32), bytes(32)))
        assert (await enrolment.enrol(other, transport, address(office), second)).worker_id


async def test_a_code_that_expired_before_it_arrived_gives_way_to_a_new_one(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    async with transport_to(address(office), device.settings) as transport:
        old = await code_for(office, worker)
        step = enrolment._prepare(
            device,
            address(office),
            code_hash(old),
            await transport.offer(code_hash(old)),
            parse_code(old)[1],
        )
        office.clock.advance(3600)
        with pytest.raises(RefusedError) as raised:
            await enrolment.enrol(device, transport, address(office), old)
        assert raised.value.code == "enrolment_unknown"
        fresh = await code_for(office, worker)
        await enrolment.enrol(device, transport, address(office), fresh)
        assert device.profile().enrolled
        queue = device.journal.commands()
        assert queue[1].supersedes == step.command.command_id
        assert_nothing_waits(device)


async def test_the_wrong_server_is_found_out_before_it_is_told_anything(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    secret, _ = parse_code(await code_for(office, worker))
    elsewhere = make_code(secret, "ab" * 32)
    async with transport_to(address(office), device.settings) as transport:
        unlucky = Unlucky(transport)
        with pytest.raises(ServiceError) as raised:
            await enrolment.enrol(device, unlucky, address(office), elsewhere)
        assert raised.value.code == "server_key_unknown"
        assert unlucky.sent == []
        assert device.journal.profile() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda outcome: replace(outcome, receipt=None),
        lambda outcome: replace(outcome, status="unchanged"),
        lambda outcome: replace(outcome, receipt=replace(outcome.receipt, leaf_index=1)),
    ],
    ids=["no receipt", "another outcome", "a receipt that does not verify"],
)
async def test_an_answer_without_proof_enrols_nobody(
    office: Office, worker: Person, tmp_path: Path, change: Callable[[Outcome], Outcome]
) -> None:
    device = new_device(tmp_path / "profile")
    code = await code_for(office, worker)
    async with transport_to(address(office), device.settings) as transport:
        unlucky = Unlucky(transport)
        unlucky.change = change
        with pytest.raises(ServiceError) as raised:
            await enrolment.enrol(device, unlucky, address(office), code)
        assert raised.value.code == "receipt_unproven"
        assert not device.profile().enrolled
        unlucky.change = lambda outcome: outcome
        await enrolment.enrol(device, unlucky, address(office), code)
        assert device.profile().enrolled


async def test_a_mistyped_code_is_told_from_one_that_is_unknown(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    code = await code_for(office, worker)
    async with transport_to(address(office), device.settings) as transport:
        for text, expected in (
            (code[:-1], "code_length"),
            (("1" if code[0] != "1" else "2") + code[1:], "code_mistyped"),
            ("U" + code[1:], "code_symbol"),
        ):
            with pytest.raises(ServiceError) as raised:
                await enrolment.enrol(device, transport, address(office), text)
            assert raised.value.code == expected
        unknown = make_code(bytes(16), next(iter(office.log_keys)))
        with pytest.raises(RefusedError) as refused:
            await enrolment.enrol(device, transport, address(office), unknown)
        assert refused.value.code == "enrolment_unknown"
        await enrolment.enrol(device, transport, address(office), code.lower().replace("-", " "))


async def test_an_enrolled_device_does_not_go_to_another_server(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    code = await code_for(office, worker)
    async with transport_to(address(office), device.settings) as transport:
        await enrolment.enrol(device, transport, address(office), code)
        with pytest.raises(ServiceError) as raised:
            await enrolment.enrol(device, transport, "https://other.example", code)
    assert raised.value.code == "enrolled_elsewhere"


async def test_a_spent_code_is_said_to_be_spent_and_a_fresh_one_works_on_the_same_profile(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    spent = await code_for(office, worker)
    device = new_device(tmp_path / "profile")
    other = new_device(tmp_path / "other", ProfileKeys(bytes(32), bytes(32)))
    async with transport_to(address(office), device.settings) as transport:
        secret, prefix = code_hash(spent), parse_code(spent)[1]
        enrolment._prepare(device, address(office), secret, await transport.offer(secret), prefix)
        await enrolment.enrol(other, transport, address(office), spent)
        with pytest.raises(ServiceError) as raised:
            await enrolment.enrol(device, transport, address(office), spent)
        assert raised.value.code == "code_spent"
        assert "ask for a new one" in raised.value.detail
        fresh = await code_for(office, worker)
        await enrolment.enrol(device, transport, address(office), fresh)
        assert device.profile().enrolled
        assert_nothing_waits(device)


async def test_the_same_server_written_in_another_way_is_the_same_server(
    office: Office, worker: Person, tmp_path: Path
) -> None:
    device = new_device(tmp_path / "profile")
    code = await code_for(office, worker)
    async with transport_to(address(office), device.settings) as transport:
        await enrolment.enrol(device, transport, f"{address(office)}/", code)
        assert device.profile().server_url == address(office)
        for text in (address(office), f" {address(office).replace('http', 'HTTP')}// "):
            assert (await enrolment.enrol(device, transport, text, code)).already
