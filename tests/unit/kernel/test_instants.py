"""An instant is text with an offset that names a moment of the calendar, and stays as written."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.kernel.instants import (
    Instant,
    check_instant,
    format_instant,
    parse_instant,
    seconds_between,
)

OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))


def reads(text: str) -> bool:
    """Whether the text passes both the wire's pattern and the calendar."""
    try:
        msgspec.convert(text, Instant)
        check_instant(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T09:00:00Z",
        "2026-03-01T09:00:00+01:00",
        "2026-03-01T09:00:00-23:59",
        "2026-03-01T09:00:00-00:00",
        "2026-03-01T09:00:00.1Z",
        "2026-03-01T09:00:00.123456789+05:45",
        "2024-02-29T23:59:59Z",
        "0001-01-02T00:00:00+23:59",
        "9999-12-30T23:59:59.999999999-23:59",
    ],
)
def test_a_date_time_of_rfc_3339_with_an_offset_is_an_instant(text: str) -> None:
    assert reads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-03-01",
        "2026-03-01T09:00:00",
        "2026-03-01 09:00:00Z",
        "2026-03-01t09:00:00z",
        "2026-03-01T09:00Z",
        "2026-03-01T09:00:60Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T09:00:00.Z",
        "2026-03-01T09:00:00.1234567890Z",
        "2026-03-01T09:00:00+1:00",
        "2026-03-01T09:00:00+0100",
        "2026-03-01T09:00:00+24:00",
        "2026-02-30T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:00-00:01",
        "+2026-03-01T09:00:00Z",
        "2026-03-01T09:00:00Z\n",
        " 2026-03-01T09:00:00Z",
        "\u0662026-03-01T09:00:00Z",
        "2026-W09-7T09:00:00Z",
    ],
)
def test_anything_else_is_no_instant(text: str) -> None:
    assert not reads(text)


def test_no_instant_is_no_fault() -> None:
    check_instant(None)


@given(st.datetimes(timezones=OFFSETS))
def test_every_moment_in_every_zone_is_read_as_it_was_written(moment: datetime) -> None:
    assert reads(moment.isoformat())
    assert parse_instant(moment.isoformat()) == moment


def test_more_digits_than_microseconds_are_cut() -> None:
    assert parse_instant("2026-03-01T09:00:00.1234569Z") == datetime(
        2026, 3, 1, 9, 0, 0, 123456, tzinfo=UTC
    )
    assert parse_instant("2026-03-01T09:00:00.5+01:00").microsecond == 500_000


def test_text_without_an_offset_is_not_parsed() -> None:
    with pytest.raises(ValueError, match="offset"):
        parse_instant("2026-03-01T09:00:00")


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_formatted_is_an_instant_in_utc_to_the_millisecond(moment: datetime) -> None:
    text = format_instant(moment)
    assert reads(text)
    assert text.endswith("Z")
    assert timedelta(0) <= moment - parse_instant(text) < timedelta(milliseconds=1)


def test_seconds_are_counted_across_zones_and_backwards() -> None:
    assert seconds_between("2026-03-01T09:00:00Z", "2026-03-01T10:00:30+01:00") == 30
    assert seconds_between("2026-03-01T09:00:00Z", "2026-03-01T08:00:00Z") == -3600
    assert seconds_between("0001-01-02T00:00:00+23:59", "9999-12-30T23:59:59-23:59") > 0
