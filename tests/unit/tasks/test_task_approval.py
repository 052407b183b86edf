"""An approval demands of the proof, as the server holds it, everything that the policy declares."""

from typing import Any

import pytest

from support.commands import (
    ANSWERS,
    DRAWING,
    FIXES,
    MANIFEST_ID,
    PHOTO,
    SITE,
    disclose,
    make_command,
    make_manifest,
    make_policy,
    manifest_fields,
)
from support.contexts import OPENED, Story, decide, story_to
from workmate_shared.kernel.decision import Committed, Rejection
from workmate_shared.kernel.lifecycle import Blob
from workmate_shared.tasks.policy import PhotoSlot, policy_version
from workmate_shared.tasks.values import SitePosition

STRICT = make_policy(
    photos=(
        PhotoSlot(slot="after", prompt="?", max=4, max_age_seconds=3600, position_required=True),
    ),
    geofence_enforce=True,
)
MANIFEST = make_manifest(policy_version=policy_version(STRICT))
HELD = {name: Blob(verified=True) for name in (PHOTO, DRAWING)}
FAR_AWAY = SitePosition(lat_e7=0, lon_e7=0)


def submit(**fields: Any) -> Story:
    """A proof for the strict policy, submitted."""
    story = story_to("in_progress", proof_policy=STRICT)
    story.tell("submit_proof", **(manifest_fields(MANIFEST) | fields))
    return story


def approve(story: Story, **facts: Any) -> tuple[str, ...]:
    """Return the codes of what the approval finds; none where it completes the task."""
    command = make_command("approve_proof", expected_version=story.state.version)
    given: dict[str, Any] = {"manifest": MANIFEST, "opened": OPENED, "blobs": HELD}
    decision = decide(story.state, command, **(given | facts))
    if isinstance(decision, Committed):
        return ()
    assert isinstance(decision, Rejection)
    assert decision.code == "proof_policy_unmet"
    assert decision.details["manifest_id"] == MANIFEST_ID
    return tuple(finding["code"] for finding in decision.details["findings"])


def test_a_proof_that_meets_its_policy_is_approved() -> None:
    assert approve(submit()) == ()


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        (ANSWERS, ("answer_missing", "answer_missing", "name_missing", "name_missing")),
        (FIXES, ("photo_without_position",)),
        (SITE, ()),
    ],
)
def test_values_that_are_gone_prove_nothing(value: dict[str, Any], codes: tuple[str, ...]) -> None:
    gone = disclose(value)[0]
    left = {commitment: opened for commitment, opened in OPENED.items() if commitment != gone}
    assert approve(submit(), opened=left) == codes


def test_a_fix_is_judged_against_the_site_of_the_task() -> None:
    moved = {**OPENED, disclose(SITE)[0]: FAR_AWAY}
    assert approve(submit(), opened=moved) == ("outside_fence",)


@pytest.mark.parametrize(
    "blobs", [{PHOTO: Blob(verified=True)}, HELD | {DRAWING: Blob(verified=False)}, {}]
)
def test_an_approval_waits_for_every_file(blobs: dict[str, Blob]) -> None:
    assert set(approve(submit(), blobs=blobs)) == {"file_missing"}


def test_a_submission_does_not_wait_for_files() -> None:
    assert submit(facts={"blobs": {}}).state.state == "proof_pending"


@pytest.mark.parametrize(
    ("occurred_at", "codes"),
    [("2026-03-01T10:45:00+01:00", ()), ("2026-03-01T10:45:00.1+01:00", ("photo_too_old",))],
)
def test_the_age_of_a_photo_is_that_at_submission_and_not_at_approval(
    occurred_at: str, codes: tuple[str, ...]
) -> None:
    assert approve(submit(occurred_at=occurred_at), now="2027-01-01T00:00:00.000Z") == codes


def test_a_proof_made_for_another_policy_is_not_approved() -> None:
    other = make_manifest(policy_version=policy_version(make_policy()))
    story = submit(**manifest_fields(other))
    assert approve(story, manifest=other) == ("policy_differs",)
