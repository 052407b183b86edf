"""What a camera wrote about a photo: when it was taken, and where. Absent is absent, never a guess.

Only the head of the file is looked at and no picture is decoded, so neither a huge image nor broken
metadata can take more than that. Exif 2.32 (CIPA DC-008) says what the tags mean.
"""

import io
import threading
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from fractions import Fraction
from typing import Any

from msgspec import Struct
from PIL import ExifTags, Image, JpegImagePlugin, PngImagePlugin

from workmate_shared.tasks.values import Fix

HEAD_BYTES = 1024 * 1024
"""How much of a file is read for its metadata; cameras write it before the picture."""

_E7 = 10**7
_UNITS = (1, 60, 3600)
_ACCURACY_LIMIT_M = 10**7

# What Pillow raises on metadata whose offsets, counts or types are wrong.
_BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    MemoryError,
)
# Warning filters belong to the whole process.
_QUIET = threading.Lock()


class CameraFacts(Struct, frozen=True):
    """What is known of a photo: `captured_at` with the source it was read from, and the position.

    `captured_from`: `exif` names its own offset, `exif_gps` is the satellites' time, `exif_zone_assumed`
    took the worker's zone. `readable` is false where there is metadata that cannot be read.
    """

    captured_at: str | None = None
    captured_from: str | None = None
    fix: Fix | None = None
    readable: bool = True


def read_camera_facts(head: bytes, media_type: str, zone: tzinfo | None) -> CameraFacts:
    """Return what the first bytes of a JPEG or PNG file tell; nothing for other types."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exif = _exif(head, media_type)
            if exif is None:
                return CameraFacts()
            camera = dict(exif.get_ifd(ExifTags.IFD.Exif))
            gps = dict(exif.get_ifd(ExifTags.IFD.GPSInfo))
        except _BROKEN:
            return CameraFacts(readable=False)
    heard = _satellite_time(gps)
    captured_at, captured_from = _capture_time(camera, heard, zone)
    return CameraFacts(captured_at, captured_from, _fix(gps, heard))


def _exif(head: bytes, media_type: str) -> Image.Exif | None:
    """Return the metadata; the classes are opened directly, so that no size counts as a bomb."""
    if media_type == "image/jpeg":
        data = JpegImagePlugin.JpegImageFile(io.BytesIO(head)).info.get("exif")
    elif media_type == "image/png":
        # Metadata behind the picture is not looked for: that would decode it.
        data = PngImagePlugin.PngImageFile(io.BytesIO(head)).info.get("exif")
    else:
        data = None
    if data is None:
        return None
    exif = Image.Exif()
    exif.load(data)
    return exif


def _capture_time(
    camera: Mapping[int, Any], heard: str | None, zone: tzinfo | None
) -> tuple[str | None, str | None]:
    tags = ExifTags.Base
    written = _moment(camera.get(tags.DateTimeOriginal) or camera.get(tags.DateTimeDigitized))
    if written is None:
        return (heard, "exif_gps") if heard else (None, None)
    offset = _offset(camera.get(tags.OffsetTimeOriginal) or camera.get(tags.OffsetTimeDigitized))
    if offset is not None:
        return f"{written}{offset}", "exif"
    if heard is not None:
        return heard, "exif_gps"
    local = datetime.fromisoformat(written).replace(tzinfo=zone or UTC)
    return local.isoformat(timespec="seconds"), "exif_zone_assumed"


def _moment(text: object) -> str | None:
    """Return `YYYY:MM:DD HH:MM:SS` as the beginning of an instant, if the calendar has it."""
    if not isinstance(text, str):
        return None
    day, _, time = text.strip("\x00 ").partition(" ")
    try:
        moment = datetime.fromisoformat(f"{day.replace(':', '-')}T{time}")
    except ValueError:
        return None
    return moment.isoformat(timespec="seconds") if moment.tzinfo is None else None


def _offset(text: object) -> str | None:
    """Return `+05:30` as it stands in an instant, if it is one."""
    if not isinstance(text, str):
        return None
    cleaned = text.strip("\x00 ")
    if cleaned == "Z":
        return cleaned
    try:
        moment = datetime.fromisoformat(f"2000-01-01T00:00:00{cleaned}")
    except ValueError:
        return None
    return cleaned if moment.tzinfo is not None and len(cleaned) == len("+05:30") else None


def _satellite_time(gps: Mapping[int, Any]) -> str | None:
    """Return GPSDateStamp and GPSTimeStamp, which are in UTC, as an instant."""
    day, time = gps.get(ExifTags.GPS.GPSDateStamp), gps.get(ExifTags.GPS.GPSTimeStamp)
    parts = _rationals(time)
    if not isinstance(day, str) or parts is None:
        return None
    hours, minutes, seconds = (int(part) for part in parts)
    written = _moment(f"{day} {hours:02}:{minutes:02}:{seconds:02}")
    return f"{written}Z" if written else None


def _fix(gps: Mapping[int, Any], heard: str | None) -> Fix | None:
    tags = ExifTags.GPS
    lat = _degrees(gps.get(tags.GPSLatitude), gps.get(tags.GPSLatitudeRef), "N", "S", 90)
    lon = _degrees(gps.get(tags.GPSLongitude), gps.get(tags.GPSLongitudeRef), "E", "W", 180)
    # Zero and zero is what a camera without reception writes; nobody works out there.
    if lat is None or lon is None or lat == lon == 0:
        return None
    error = _rationals((gps.get(tags.GPSHPositioningError),))
    accuracy = -int(-error[0] // 1) if error else None
    if accuracy is not None and not 0 <= accuracy <= _ACCURACY_LIMIT_M:
        accuracy = None
    return Fix(lat_e7=lat, lon_e7=lon, accuracy_m=accuracy, source="exif", at=heard)


def _degrees(
    value: object, reference: object, positive: str, negative: str, limit: int
) -> int | None:
    """Return degrees, minutes and seconds as 1e-7 degree; without its half of the globe, nothing."""
    parts = _rationals(value)
    side = reference.strip("\x00 ").upper() if isinstance(reference, str) else ""
    if parts is None or len(parts) != len(_UNITS) or side not in (positive, negative):
        return None
    whole = round(sum(part / unit for part, unit in zip(parts, _UNITS, strict=True)) * _E7)
    if not 0 <= whole <= limit * _E7:
        return None
    return whole if side == positive else -whole


def _rationals(value: object) -> list[Fraction] | None:
    """Return Exif rationals as fractions, or None if one of them is no number."""
    if not isinstance(value, tuple):
        return None
    try:
        return [Fraction(part.numerator, part.denominator) for part in value]
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return None
