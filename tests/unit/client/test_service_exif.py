"""What a camera wrote is read where it is there, and absent where it is not; nothing is guessed."""

from datetime import timedelta, timezone

import pytest

from support.pictures import PHOTOS, picture, place, satellite_time
from workmate_client.journal.media import media_type
from workmate_client.service.exif import HEAD_BYTES, CameraFacts, read_camera_facts
from workmate_shared.kernel.instants import parse_instant
from workmate_shared.tasks.values import Fix

INDIA = timezone(timedelta(hours=5, minutes=30))
TAKEN = "2026:03:01 09:45:00"
NOTHING = CameraFacts()


def read(content: bytes, zone: timezone = INDIA) -> CameraFacts:
    return read_camera_facts(content[:HEAD_BYTES], media_type(content), zone)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_time_with_its_own_offset_is_taken_as_it_is_written(kind: str) -> None:
    facts = read(picture(taken=TAKEN, offset="-03:00", kind=kind))
    assert (facts.captured_at, facts.captured_from) == ("2026-03-01T09:45:00-03:00", "exif")


def test_time_without_an_offset_is_the_satellites_if_they_were_heard() -> None:
    facts = read(picture(taken=TAKEN, gps=satellite_time("2026:03:01", "4 15 0")))
    assert (facts.captured_at, facts.captured_from) == ("2026-03-01T04:15:00Z", "exif_gps")


def test_time_without_an_offset_else_is_in_the_workers_zone_and_says_so() -> None:
    facts = read(picture(taken=TAKEN))
    assert facts.captured_at == "2026-03-01T09:45:00+05:30"
    assert facts.captured_from == "exif_zone_assumed"


@pytest.mark.parametrize(
    ("lat", "lat_ref", "lon", "lon_ref", "lat_e7", "lon_e7"),
    [
        ("28 36 50.4", "N", "77 12 32.4", "E", 286140000, 772090000),
        ("33 51 24.12", "S", "151 12 33.48", "E", -338567000, 1512093000),
        ("22 54 0", "S", "43 12 0", "W", -229000000, -432000000),
        ("40 26.7717 0", "N", "79 58.9333 0", "W", 404461950, -799822217),
    ],
)
def test_a_position_is_read_in_every_quarter_of_the_globe(
    lat: str, lat_ref: str, lon: str, lon_ref: str, lat_e7: int, lon_e7: int
) -> None:
    facts = read(picture(gps=place(lat, lat_ref, lon, lon_ref, "7.2")))
    assert facts.fix == Fix(lat_e7=lat_e7, lon_e7=lon_e7, accuracy_m=8, source="exif")


@pytest.mark.parametrize(
    "gps",
    [
        place("0 0 0", "N", "0 0 0", "E"),
        place("28 36 50.4", "", "77 12 32.4", ""),
        place("91 0 0", "N", "77 0 0", "E"),
        place("28 36", "N", "77 12", "E"),
        {key: value for key, value in place("1 2 3", "N", "4 5 6", "E").items() if key < 3},
    ],
    ids=["zero", "no half of the globe", "beyond the pole", "two parts", "half a position"],
)
def test_what_is_no_position_is_not_recorded(gps: dict[int, object]) -> None:
    assert read(picture(gps=gps)).fix is None


@pytest.mark.parametrize("taken", ["0000:00:00 00:00:00", "2026:02:31 10:00:00", "yesterday", " "])
def test_what_is_no_time_is_not_recorded(taken: str) -> None:
    facts = read(picture(taken=taken))
    assert (facts.captured_at, facts.readable) == (None, True)


def test_a_picture_without_metadata_tells_nothing_and_is_whole() -> None:
    assert read(picture()) == NOTHING
    assert read(b"\xff\xd8\xff") == CameraFacts(readable=False)
    assert read(b"%PDF-1.7") == NOTHING


def test_broken_metadata_is_said_and_stops_nobody() -> None:
    content = picture(taken=TAKEN, offset="+01:00", gps=place("28 36 50", "N", "77 12 32", "E"))
    start = content.index(b"Exif\x00\x00") + 6
    for position in range(start, start + 120):
        for value in (0x00, 0x7F, 0xFF):
            data = bytearray(content)
            data[position] = value
            facts = read(bytes(data))
            assert facts.captured_at is None or parse_instant(facts.captured_at).tzinfo
    for length in range(start, len(content), 7):
        read(content[:length])


def test_a_picture_of_absurd_size_is_not_decoded_to_read_its_metadata() -> None:
    content = bytearray(picture(taken=TAKEN, offset="+01:00"))
    frame = content.index(b"\xff\xc0") + 5
    content[frame : frame + 4] = b"\xff\xff\xff\xff"
    assert read(bytes(content)).captured_at == "2026-03-01T09:45:00+01:00"


@pytest.mark.parametrize(("name", "content"), PHOTOS)
def test_whatever_a_camera_wrote_is_read(name: str, content: bytes) -> None:
    facts = read(content)
    assert facts.readable
    if facts.captured_at is not None:
        assert 2000 < parse_instant(facts.captured_at).year < 2030
    if name.startswith("DSCN"):
        # The Nikon was in Arezzo.
        assert facts.fix is not None
        assert (facts.fix.lat_e7 // 10**7, facts.fix.lon_e7 // 10**7) == (43, 11)
        assert facts.captured_from == "exif_gps"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (picture()[:64], "image/jpeg"),
        (picture(kind="PNG")[:64], "image/png"),
        (picture(kind="WEBP")[:64], "image/webp"),
        (picture(kind="TIFF")[:64], "image/tiff"),
        (b"\x00\x00\x00\x18ftypheic", "image/heic"),
        (b"\x00\x00\x00\x18ftypisom", "video/mp4"),
        (b"\x00\x00\x00\x18ftypwhat", "application/octet-stream"),
        (b"<svg xmlns=", "image/svg+xml"),
        (b"hello.jpg", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_type_of_a_file_is_what_its_first_bytes_say(head: bytes, kind: str) -> None:
    assert media_type(head) == kind
