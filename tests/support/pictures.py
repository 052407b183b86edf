"""Small photos with the metadata that a test wants, and real ones where the project has them."""

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image, TiffImagePlugin


def rational(value: str) -> TiffImagePlugin.IFDRational:
    fraction = Fraction(value)
    return TiffImagePlugin.IFDRational(fraction.numerator, fraction.denominator)


def place(
    lat: str, lat_ref: str, lon: str, lon_ref: str, error: str | None = None
) -> dict[int, Any]:
    """GPS tags for degrees, minutes and seconds written as `28 36 50.5`."""
    tags: dict[int, Any] = {
        ExifTags.GPS.GPSLatitudeRef: lat_ref,
        ExifTags.GPS.GPSLatitude: tuple(map(rational, lat.split())),
        ExifTags.GPS.GPSLongitudeRef: lon_ref,
        ExifTags.GPS.GPSLongitude: tuple(map(rational, lon.split())),
    }
    if error is not None:
        tags[ExifTags.GPS.GPSHPositioningError] = rational(error)
    return tags


def satellite_time(day: str, time: str) -> dict[int, Any]:
    """GPS tags for a moment in UTC, `2026:03:01` and `08 30 15`."""
    return {
        ExifTags.GPS.GPSDateStamp: day,
        ExifTags.GPS.GPSTimeStamp: tuple(map(rational, time.split())),
    }


def picture(
    *,
    taken: str | None = None,
    offset: str | None = None,
    gps: dict[int, Any] | None = None,
    kind: str = "JPEG",
    color: int = 0,
) -> bytes:
    """A picture of 8 by 8 points with metadata; pictures of two colours are two files."""
    exif = Image.Exif()
    camera = exif.get_ifd(ExifTags.IFD.Exif)
    if taken is not None:
        camera[ExifTags.Base.DateTimeOriginal] = taken
    if offset is not None:
        camera[ExifTags.Base.OffsetTimeOriginal] = offset
    exif.get_ifd(ExifTags.IFD.GPSInfo).update(gps or {})
    written = io.BytesIO()
    options = {"exif": exif.tobytes()} if taken or offset or gps else {}
    Image.new("RGB", (8, 8), (color, 0, 0)).save(written, kind, **options)
    return written.getvalue()


_REAL = Path(__file__).parents[3] / "shared" / "data" / "photos"

PHOTOS: list[tuple[str, bytes]] = [
    ("made here.jpg", picture(taken="2026:03:01 09:45:00", offset="+01:00")),
    *((path.name, path.read_bytes()) for path in sorted(_REAL.glob("*.jpg"))),
]
"""A photo made here, and those of real cameras where they lie beside the project."""
