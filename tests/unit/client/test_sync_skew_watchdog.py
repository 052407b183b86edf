"""A slow link is no wrong clock, and a sync that gets nothing done does not go unnoticed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_client.config import Settings
from workmate_client.sync.skew import estimate_skew
from workmate_client.sync.watchdog import Watchdog

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LIMIT = Settings().clock_doubt_seconds


@given(st.floats(0, 3600), st.floats(0, 1))
def test_a_right_clock_is_never_doubted_however_slow_the_link(
    round_trip: float, part: float
) -> None:
    server_time = NOON - timedelta(seconds=round_trip * part)
    estimate = estimate_skew(NOON, round_trip, server_time)
    assert not estimate.is_doubtful(LIMIT)
    assert abs(estimate.certain_seconds) < 1e-3


@given(st.floats(-1e6, 1e6), st.floats(0, 60), st.floats(0, 1))
def test_the_certain_part_never_exceeds_the_real_error(
    error: float, round_trip: float, part: float
) -> None:
    server_time = NOON - timedelta(seconds=round_trip * part) - timedelta(seconds=error)
    estimate = estimate_skew(NOON, round_trip, server_time)
    assert estimate.least_seconds - 1e-3 <= error <= estimate.most_seconds + 1e-3
    assert abs(estimate.certain_seconds) <= abs(error) + 1e-3


def test_another_zone_is_no_wrong_clock() -> None:
    there = datetime.fromisoformat("2026-03-01T17:30:00+05:30")
    assert estimate_skew(there, 0.1, NOON).certain_seconds == 0.0


@pytest.mark.parametrize("year", [1970, 2029])
def test_a_clock_in_another_year_is_doubtful(year: int) -> None:
    wrong = NOON.replace(year=year)
    estimate = estimate_skew(wrong, 20.0, NOON)
    assert estimate.is_doubtful(LIMIT)
    assert (estimate.certain_seconds > 0) == (year > 2026)


def answers(watchdog: Watchdog, times: range, outcomes: int = 0, pending: int = 3) -> None:
    for now in times:
        watchdog.answered(float(now), pending, outcomes, "not_found")


def test_ten_minutes_of_answers_without_an_outcome_raise_the_alarm_with_its_evidence() -> None:
    watchdog = Watchdog(600.0)
    answers(watchdog, range(0, 601, 60))
    alarm = watchdog.alarm(600.0)
    assert alarm is not None
    assert (alarm.quiet_seconds, alarm.pending, alarm.code) == (600.0, 3, "not_found")
    assert alarm.since_answer_seconds == 0.0


def test_an_outcome_or_an_empty_queue_ends_the_quiet() -> None:
    for outcomes, pending in ((1, 3), (0, 0)):
        watchdog = Watchdog(600.0)
        answers(watchdog, range(0, 601, 60))
        answers(watchdog, range(601, 602), outcomes, pending)
        assert watchdog.alarm(700.0) is None


def test_a_server_that_cannot_be_reached_is_no_reason_for_this_alarm() -> None:
    watchdog = Watchdog(600.0)
    assert watchdog.alarm(10_000.0) is None
    answers(watchdog, range(0, 301, 60))
    assert watchdog.alarm(2000.0) is None
    answers(watchdog, range(2000, 2100, 60))
    assert watchdog.alarm(2100.0) is None
