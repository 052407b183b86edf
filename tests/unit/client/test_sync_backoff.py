"""Waiting times stay in their bounds, and a failure means what the rules say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_client.config import Settings
from workmate_client.sync.backoff import (
    DELAY_MIN_SECONDS,
    LINK_UP,
    Link,
    Reaction,
    asked_to_wait,
    backoff_bound_seconds,
    delay_seconds,
    longest_delay_seconds,
    reaction_to,
    reaction_to_upload,
)
from workmate_client.sync.failures import (
    CutError,
    RefusedError,
    StalledError,
    TransportError,
    UnreachableError,
    UnreadableAnswerError,
)

SETTINGS = Settings()
fractions = st.floats(0.0, 1.0, exclude_max=True)


@given(st.integers(1, 10**6), fractions)
def test_a_delay_lies_under_the_doubled_bound_and_never_at_zero(
    failures: int, fraction: float
) -> None:
    delay = delay_seconds(failures, fraction, SETTINGS)
    assert DELAY_MIN_SECONDS <= delay <= SETTINGS.backoff_limit_seconds
    assert delay <= max(backoff_bound_seconds(failures, SETTINGS), DELAY_MIN_SECONDS)


@given(st.integers(1, 100), fractions, st.floats(-10, 10**9))
def test_what_the_server_asks_for_is_honoured_up_to_the_limit(
    failures: int, fraction: float, asked: float
) -> None:
    delay = delay_seconds(failures, fraction, SETTINGS, asked)
    assert delay >= min(asked, SETTINGS.retry_after_limit_seconds)
    assert delay <= longest_delay_seconds(SETTINGS)


def test_the_bound_doubles_from_the_first_to_the_limit() -> None:
    bounds = [backoff_bound_seconds(failures, SETTINGS) for failures in range(1, 12)]
    assert bounds[:4] == [1.0, 2.0, 4.0, 8.0]
    assert bounds[-1] == SETTINGS.backoff_limit_seconds


def test_jitter_is_full_so_that_two_draws_differ_over_the_whole_bound() -> None:
    assert delay_seconds(9, 0.25, SETTINGS) == 64.0
    assert delay_seconds(9, 0.75, SETTINGS) == 192.0


def test_each_failure_of_the_link_counts_and_contact_resets_it() -> None:
    link = LINK_UP
    for failures in (1, 2, 3):
        link = link.failed(UnreachableError("no route"), 1000.0, 0.5, SETTINGS)
        assert link.failures == failures
        assert link.not_before == 1000.0 + 0.5 * 2 ** (failures - 1)
    assert link.code == "server_unreachable"
    assert asked_to_wait(0.0, 1000.0, SETTINGS) == LINK_UP


def test_a_server_that_asks_for_a_pause_gets_it_without_counting_as_a_failure() -> None:
    assert asked_to_wait(30.0, 1000.0, SETTINGS) == Link(0, "server_busy", 1030.0)


REFUSED = {status: RefusedError("some_code", status, "detail") for status in (400, 401, 404, 413)}
REFUSED |= {status: RefusedError("some_code", status, "detail") for status in (429, 460, 500, 503)}


@pytest.mark.parametrize(
    ("error", "for_sync", "for_upload"),
    [
        (StalledError(""), Reaction.SHRINK, Reaction.SHRINK),
        (CutError(""), Reaction.SHRINK, Reaction.SHRINK),
        (UnreachableError(""), Reaction.STOP, Reaction.STOP),
        (UnreadableAnswerError("portal", 200), Reaction.STOP, Reaction.STOP),
        (UnreadableAnswerError("a proxy's page", 401), Reaction.STOP, Reaction.STOP),
        (UnreadableAnswerError("a proxy's page", 413), Reaction.SHRINK, Reaction.ITEM),
        (UnreadableAnswerError("a proxy's page", 502), Reaction.STOP, Reaction.STOP),
        (REFUSED[400], Reaction.STOP, Reaction.ITEM),
        (REFUSED[401], Reaction.RENEW, Reaction.RENEW),
        (REFUSED[404], Reaction.STOP, Reaction.ITEM),
        (REFUSED[413], Reaction.SHRINK, Reaction.ITEM),
        (REFUSED[429], Reaction.STOP, Reaction.STOP),
        (REFUSED[460], Reaction.STOP, Reaction.ITEM),
        (REFUSED[500], Reaction.STOP, Reaction.STOP),
        (REFUSED[503], Reaction.STOP, Reaction.STOP),
    ],
)
def test_each_failure_has_its_reaction(
    error: TransportError, for_sync: Reaction, for_upload: Reaction
) -> None:
    assert reaction_to(error) is for_sync
    assert reaction_to_upload(error) is for_upload
