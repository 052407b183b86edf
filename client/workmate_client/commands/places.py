"""A position on the command line: degrees as text, never through a binary fraction."""

import argparse
from decimal import Decimal, InvalidOperation
from typing import get_args

import msgspec

from workmate_client.service.device import ServiceError
from workmate_shared.tasks.values import Fix, FixSource

_E7 = 10**7


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a position, in degrees (WGS 84) and metres."""
    parser.add_argument("--lat", metavar="DEGREES")
    parser.add_argument("--lon", metavar="DEGREES")
    parser.add_argument("--accuracy-m", type=int, metavar="METRES")
    parser.add_argument(
        "--source",
        choices=get_args(FixSource),
        default="manual",
        help="where the position comes from",
    )


def place_of(args: argparse.Namespace, now: str) -> Fix | None:
    """Return the position that was given, or None.

    Raises ServiceError `position_invalid` for half a position or one that is on no globe.
    """
    if args.lat is None and args.lon is None:
        return None
    if args.lat is None or args.lon is None:
        raise ServiceError("position_invalid", "--lat and --lon come together")
    fix = Fix(
        lat_e7=_degrees(args.lat),
        lon_e7=_degrees(args.lon),
        accuracy_m=args.accuracy_m,
        source=args.source,
        at=now,
    )
    try:
        return msgspec.json.decode(msgspec.json.encode(fix), type=Fix)
    except msgspec.ValidationError as error:
        raise ServiceError("position_invalid", str(error)) from error


def _degrees(text: str) -> int:
    try:
        return round(Decimal(text) * _E7)
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ServiceError("position_invalid", f"{text} is not a number of degrees") from error
