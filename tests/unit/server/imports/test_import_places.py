"""Coordinates become integers by decimal arithmetic, and half of one is none."""

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workmate_server.imports.places import read_coordinates, read_pin
from workmate_server.imports.report import RowError


def rule_of(latitude: str | None, longitude: str | None) -> str:
    with pytest.raises(RowError) as refused:
        read_coordinates(latitude, longitude, "degrees")
    return refused.value.rule


@pytest.mark.parametrize(
    ("text", "e7"),
    [
        ("40.5863974", 405863974),
        ("-73.95955540938948", -739595554),
        ("40.69113738107441", 406911374),
        ("0.00000005", 0),
        ("0.00000015", 2),
        ("+7", 70000000),
        ("-90", -900000000),
        ("90.00000000", 900000000),
    ],
)
def test_degrees_become_integers_of_a_ten_millionth_rounded_half_to_even(
    text: str, e7: int
) -> None:
    assert read_coordinates(text, "1", "degrees")["lat_e7"] == e7


def test_no_float_is_between_the_text_and_the_integer() -> None:
    @given(st.decimals(min_value=-180, max_value=180, places=20))
    def holds(longitude: Decimal) -> None:
        found = read_coordinates("1", f"{longitude:f}", "degrees")["lon_e7"]
        assert found == int((longitude * 10**7).to_integral_value(ROUND_HALF_EVEN))

    holds()


def test_neither_cell_is_not_recorded() -> None:
    assert read_coordinates(None, None, "degrees") == {}


@pytest.mark.parametrize(("latitude", "longitude"), [("40.5", None), (None, "-73.9")])
def test_half_a_coordinate_is_refused(latitude: str | None, longitude: str | None) -> None:
    assert rule_of(latitude, longitude) == "coordinate_incomplete"


@pytest.mark.parametrize(
    "text", ["40,58", "4e1", "nan", "inf", "0x10", "40.5 N", "١٢", "4 0", "--1"]
)
def test_what_is_no_decimal_number_is_refused(text: str) -> None:
    assert rule_of(text, "1") == "coordinate_invalid"


@pytest.mark.parametrize(
    ("latitude", "longitude"),
    [("90.0000001", "1"), ("-91", "1"), ("1", "180.0000001"), ("1", "-999")],
)
def test_a_place_beyond_the_globe_is_refused(latitude: str, longitude: str) -> None:
    assert rule_of(latitude, longitude) == "coordinate_out_of_range"


def test_zero_and_zero_is_a_placeholder_and_refused() -> None:
    assert rule_of("0.0", "-0") == "coordinate_zero"
    assert read_coordinates("0", "6.6", "degrees") == {"lat_e7": 0, "lon_e7": 66000000}


def test_integers_are_taken_as_they_are() -> None:
    found = read_coordinates("405863974", "-739325913", "e7")
    assert found == {"lat_e7": 405863974, "lon_e7": -739325913}
    with pytest.raises(RowError):
        read_coordinates("40.5", "1", "e7")


def test_a_pin_is_six_letters_or_digits_in_upper_case() -> None:
    assert read_pin("3f45cb") == "3F45CB"
    for text in ("3F45C", "3F45CBX", "3F-5CB", "3F45ÇB"):
        with pytest.raises(RowError):
            read_pin(text)
