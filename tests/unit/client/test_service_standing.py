"""A device or worker that the office no longer trusts is told so, and nothing is done in vain."""

from pathlib import Path

import pytest

from support.laptop import TASK, Laptop, laptop
from workmate_client.service import acts, outbox
from workmate_client.service.device import ServiceError
from workmate_client.service.enrolment import enrol
from workmate_client.service.notices import NOTICES
from workmate_client.service.redo import redo
from workmate_client.service.standing import NO_LONGER_ABLE
from workmate_shared.principals.enrolment import make_code
from workmate_shared.wire.messages import EnrolmentOffer, Outcome, SignedCommand


@pytest.fixture
def it(tmp_path: Path) -> Laptop:
    return laptop(tmp_path / "profile")


class Nobody:
    """A server that must not be asked."""

    async def offer(self, code_hash: str) -> EnrolmentOffer:
        raise AssertionError(code_hash)

    async def enrol(self, signed: SignedCommand) -> Outcome:
        raise AssertionError(signed)


@pytest.mark.parametrize("code", sorted(NO_LONGER_ABLE))
def test_while_the_office_refuses_a_device_status_says_so_and_no_act_is_done_again(
    it: Laptop, code: str
) -> None:
    acts.accept(it.device, TASK)
    it.story.tell("amend")
    it.answer_all()
    it.pull()
    (lost,) = it.device.journal.commands()
    it.device.journal.update_profile(pull_refused=code)
    standing = outbox.device_status(it.device).standing
    assert standing is not None
    assert (standing.code, standing.sentence) == (code, NO_LONGER_ABLE[code])
    assert "new profile folder" in standing.todo
    with pytest.raises(ServiceError) as raised:
        redo(it.device, lost.command_id)
    assert raised.value.code == code
    assert it.device.journal.pending() == ()
    it.device.journal.update_profile(pull_refused=None)
    assert outbox.device_status(it.device).standing is None
    redo(it.device, lost.command_id)
    with pytest.raises(ServiceError, match="done again already"):
        redo(it.device, lost.command_id)


async def test_a_profile_that_is_refused_is_not_enrolled_again_and_says_what_to_do(
    it: Laptop,
) -> None:
    it.device.journal.update_profile(pull_refused="device_revoked")
    code = make_code(bytes(16), "ab" * 32)
    with pytest.raises(ServiceError) as raised:
        await enrol(it.device, Nobody(), "http://127.0.0.1:1", code)
    assert raised.value.code == "profile_retired"


def test_an_order_to_wipe_is_told_in_words_and_wipes_nothing(it: Laptop) -> None:
    it.device.journal.add_notice("wipe_ordered", "")
    it.device.journal.add_notice("wipe_ordered", "")
    assert outbox.device_status(it.device).notices == (NOTICES["wipe_ordered"],)
    assert it.device.replica.task(TASK) is not None


def test_a_list_of_jobs_that_is_gone_is_said_to_be_fetched_again(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    it.device.journal.update_profile(last_contact_at="2026-03-01T09:00:00+00:00")
    it.device.close()
    for path in it.folder.glob("replica.db*"):
        path.unlink()
    it.reopen()
    with pytest.raises(ServiceError) as raised:
        acts.start_travel(it.device, TASK)
    assert raised.value.code == "jobs_not_fetched"
    assert len(it.device.journal.pending()) == 1
    assert any("list of jobs was gone" in told for told in outbox.device_status(it.device).notices)
    it.pull()
    assert acts.start_travel(it.device, TASK).state == "en_route"


def test_the_stores_are_for_their_owner_alone(it: Laptop) -> None:
    acts.accept(it.device, TASK)
    stores = [path for path in it.folder.iterdir() if path.name.startswith(("journal", "replica"))]
    modes = {path.name: path.stat().st_mode & 0o077 for path in stores if path.suffix != ".lock"}
    assert len(modes) >= 2
    assert set(modes.values()) == {0}
