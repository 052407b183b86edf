"""The catalogue is complete in itself: every entry says all that a person needs."""

import re

import pytest

from workmate_shared.kernel.catalogue import _ENTRIES, CATALOGUE, Entry, Recorded


def test_no_code_stands_in_the_catalogue_twice() -> None:
    assert len(_ENTRIES) == len(CATALOGUE)


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_an_entry_has_a_stable_code_and_whole_sentences(entry: Entry) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", entry.code)
    for sentence in (entry.happened, entry.safe, entry.todo):
        assert re.fullmatch(r"[A-Z].*\.", sentence)
    assert entry.title
    assert not entry.title.endswith(".")
    assert entry.who


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_the_status_of_an_entry_is_an_error_that_fits_how_it_is_recorded(entry: Entry) -> None:
    assert 400 <= entry.status < 600
    if entry.recorded is Recorded.CONFLICT:
        assert entry.status == 409
    if entry.recorded is Recorded.REJECTED:
        assert entry.status in {403, 422}


@pytest.mark.parametrize(
    ("code", "status", "recorded"),
    [
        ("version_conflict", 409, Recorded.CONFLICT),
        ("chain_broken", 409, Recorded.CONFLICT),
        ("external_id_conflict", 409, Recorded.CONFLICT),
        ("state_not_allowed", 409, Recorded.CONFLICT),
        ("manifest_decided", 409, Recorded.CONFLICT),
        ("history_lost", 409, Recorded.CONFLICT),
        ("self_approval", 403, Recorded.REJECTED),
        ("not_assignee", 403, Recorded.REJECTED),
        ("actor_deactivated", 403, Recorded.REJECTED),
        ("device_revoked", 403, Recorded.REJECTED),
        ("proof_policy_unmet", 422, Recorded.REJECTED),
        ("worker_not_eligible", 422, Recorded.REJECTED),
        ("version_ahead", 409, Recorded.RETRY),
        ("not_found", 404, Recorded.RETRY),
        ("unknown_schema", 409, Recorded.RETRY),
        ("disclosure_missing", 409, Recorded.RETRY),
        ("bytes_missing", 409, Recorded.RETRY),
        ("blocked_by", 409, Recorded.RETRY),
        ("overloaded", 503, Recorded.RETRY),
        ("database_away", 503, Recorded.RETRY),
        ("invalid_command", 400, Recorded.REFUSED),
        ("idempotency_key_reused", 422, Recorded.REFUSED),
        ("expected_version_required", 428, Recorded.REFUSED),
        ("cursor_expired", 410, Recorded.REFUSED),
        ("hash_mismatch", 460, Recorded.REFUSED),
    ],
)
def test_a_promised_code_keeps_its_status_and_its_kind(
    code: str, status: int, recorded: Recorded
) -> None:
    assert (CATALOGUE[code].status, CATALOGUE[code].recorded) == (status, recorded)
