"""What is noted of a device's contacts, and what is not worth a transaction."""

from typing import Any

import msgspec
import pytest

from support.handheld import Handheld, rows_of, take_handheld
from support.office import Office
from workmate_shared.kernel.table import Role


@pytest.fixture
async def handheld(office: Office) -> Handheld:
    return await take_handheld(office, await office.somebody(Role.WORKER))


def contact(office: Office, handheld: Handheld) -> Any:
    """Return the row that says when the device was last heard of."""
    (row,) = (
        row
        for row in rows_of(office, "credential_use")
        if row["credential_id"] == handheld.device.device_id
    )
    return row


def told(office: Office, handheld: Handheld) -> Any:
    return msgspec.json.decode(contact(office, handheld)["report"])


async def test_a_device_that_hands_in_its_queue_is_noted_once_in_the_interval(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    steps = handheld.chain(job, "accept", "start_travel", "arrive", version=job.version)
    for left, step in zip((3, 2, 1), steps, strict=True):
        await handheld.sync(step, device={"build": "1.0", "pending": left})
    assert told(office, handheld) == {"build": "1.0", "pending": 3}


async def test_what_changed_is_noted_again_when_the_interval_is_over(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    steps = handheld.chain(job, "accept", "start_travel", version=job.version)
    await handheld.sync(steps[0], device={"pending": 2})
    office.clock.advance(office.services.settings.token_use_interval_seconds)
    await handheld.sync(steps[1], device={"pending": 1})
    assert told(office, handheld) == {"pending": 1}


async def test_a_device_that_only_pulls_is_noted_as_soon_as_it_says_something_new(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    [step] = handheld.chain(job, "accept", version=job.version)
    await handheld.sync(step, device={"pending": 1})
    await handheld.sync(device={"pending": 0})
    assert told(office, handheld) == {}


async def test_a_sync_notes_the_use_of_a_session_without_a_note_of_its_own(
    office: Office, handheld: Handheld
) -> None:
    await handheld.sync(device={"build": "1.0"})
    noted = contact(office, handheld)
    assert noted["last_used_at"]
    await handheld.session.get("/v1/sync/wait?timeout=0")
    assert told(office, handheld) == {"build": "1.0"}
