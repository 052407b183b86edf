"""Coordinates as job files write them, turned into integers of 1e-7 degree (WGS 84).

Decimal arithmetic only, rounded half to even at the seventh place, which is about a centimetre.
Absent is "not recorded"; zero and zero is a placeholder and never a place of work.
"""

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

from workmate_server.imports.report import RowError

LATITUDE_MAX = 90
LONGITUDE_MAX = 180

_E7 = 10**7
_DEGREES = re.compile(r"[+-]?\d{1,3}(\.\d{1,40})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)
_PIN = re.compile(r"[A-Z0-9]{6}", re.ASCII)


def read_coordinates(
    latitude: str | None, longitude: str | None, unit: Literal["degrees", "e7"]
) -> dict[str, int]:
    """Return `lat_e7` and `lon_e7`, or nothing where neither cell says anything.

    Raises RowError: `coordinate_incomplete`, `coordinate_invalid`, `coordinate_out_of_range` or
    `coordinate_zero`.
    """
    if latitude is None and longitude is None:
        return {}
    if latitude is None or longitude is None:
        half = "longitude" if latitude is None else "latitude"
        raise RowError("coordinate_incomplete", f"the {half} is missing its other half")
    found = {
        "lat_e7": _read_one("latitude", latitude, LATITUDE_MAX, unit),
        "lon_e7": _read_one("longitude", longitude, LONGITUDE_MAX, unit),
    }
    if not any(found.values()):
        raise RowError("coordinate_zero", "0, 0 stands for no place; leave both cells empty")
    return found


def read_pin(text: str) -> str:
    """Return a Mappls Pin in upper case; raises RowError `pin_invalid`."""
    pin = text.upper()
    if _PIN.fullmatch(pin) is None:
        raise RowError("pin_invalid", f"{text[:20]!r} is not six letters or digits")
    return pin


def position(coordinates: dict[str, int], pin: str | None) -> dict[str, Any]:
    """Return the position that both make, empty where there is none."""
    return {**coordinates, **({} if pin is None else {"mappls_pin": pin})}


def _read_one(what: str, text: str, limit: int, unit: Literal["degrees", "e7"]) -> int:
    pattern = _DEGREES if unit == "degrees" else _INTEGER
    if pattern.fullmatch(text) is None:
        kind = "a decimal number of degrees" if unit == "degrees" else "an integer of 1e-7 degree"
        raise RowError("coordinate_invalid", f"{what} {text[:40]!r} is not {kind}")
    scaled = Decimal(text) * (_E7 if unit == "degrees" else 1)
    value = int(scaled.to_integral_value(ROUND_HALF_EVEN))
    if abs(value) > limit * _E7:
        raise RowError("coordinate_out_of_range", f"{what} {text[:40]} is beyond {limit} degrees")
    return value
