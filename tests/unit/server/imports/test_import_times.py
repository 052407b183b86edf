"""Local times become instants of their zone, and what cannot be meant is refused."""

import pytest

from workmate_server.imports.mapping import MappingError, Times
from workmate_server.imports.report import RowError
from workmate_server.imports.times import TimeReader

PORTAL = Times(formats=("%m/%d/%Y %I:%M:%S %p",), zone="America/New_York")
OURS = Times(formats=("rfc3339",))


def read(text: str, times: Times = PORTAL) -> str:
    return TimeReader(times).read("due", text)


def rule_of(text: str, times: Times = PORTAL) -> str:
    with pytest.raises(RowError) as refused:
        read(text, times)
    return refused.value.rule


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("04/19/2019 05:55:45 AM", "2019-04-19T05:55:45-04:00"),
        ("01/05/2011 12:00:00 AM", "2011-01-05T00:00:00-05:00"),
        ("01/05/2011 12:00:00 PM", "2011-01-05T12:00:00-05:00"),
        ("02/29/2020 11:59:59 PM", "2020-02-29T23:59:59-05:00"),
    ],
)
def test_a_local_time_gets_the_offset_that_its_zone_had_then(text: str, instant: str) -> None:
    assert read(text) == instant


def test_a_local_time_that_came_twice_is_taken_as_the_first() -> None:
    assert read("11/03/2019 01:30:00 AM") == "2019-11-03T01:30:00-04:00"


def test_a_local_time_that_did_not_come_is_refused() -> None:
    assert rule_of("03/10/2019 02:30:00 AM") == "time_nonexistent"


@pytest.mark.parametrize("text", ["02/30/2019 01:00:00 AM", "19/04/2019 05:55:45 AM", "soon", "0"])
def test_what_is_no_time_of_the_formats_is_refused(text: str) -> None:
    assert rule_of(text) == "time_invalid"


@pytest.mark.parametrize("text", ["01/01/1900 12:00:00 AM", "01/01/9999 12:00:00 AM"])
def test_a_placeholder_far_from_any_work_is_refused(text: str) -> None:
    assert rule_of(text) == "time_out_of_range"


@pytest.mark.parametrize("text", ["2019-04-19T05:55:45Z", "2019-04-19T05:55:45.120+05:30"])
def test_an_instant_with_its_offset_is_kept_letter_for_letter(text: str) -> None:
    assert read(text, OURS) == text


@pytest.mark.parametrize(
    "text", ["2019-04-19T05:55:45", "2019-04-19", "2019-02-30T05:55:45Z", "2019-04-19 05:55:45Z"]
)
def test_an_instant_without_offset_or_day_is_refused(text: str) -> None:
    assert rule_of(text, OURS) == "time_invalid"


def test_formats_are_tried_in_their_order() -> None:
    either = Times(formats=("rfc3339", "%Y-%m-%d %H:%M"), zone="Europe/Berlin")
    assert read("2026-07-01 08:00", either) == "2026-07-01T08:00:00+02:00"
    assert read("2026-07-01T08:00:00Z", either) == "2026-07-01T08:00:00Z"


def test_hours_are_hours_that_pass_whatever_the_clocks_do() -> None:
    assert TimeReader(PORTAL).later("2019-03-09T12:00:00-05:00", 24) == "2019-03-10T13:00:00-04:00"


@pytest.mark.parametrize(
    ("formats", "zone"), [(["%Q"], "UTC"), (["%H:%M %"], "UTC"), (["%H:%M"], "Mars/Olympus")]
)
def test_a_format_or_zone_that_is_none_is_an_error_of_the_mapping(
    formats: list[str], zone: str
) -> None:
    with pytest.raises(MappingError):
        TimeReader(Times(formats=tuple(formats), zone=zone))
