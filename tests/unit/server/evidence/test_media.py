"""What kind of file some bytes are."""

import pytest

from workmate_server.evidence.media import SHOWN, media_type_of


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\xff\xd8\xff\xe1\x00\x10Exif", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "image/png"),
        (b"GIF89a\x01", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"RIFF\x00\x00\x00\x00ABCD", "application/octet-stream"),
        (b"\x00\x00\x00\x18ftypheic\x00", "image/heic"),
        (b"\x00\x00\x00\x18ftypisom\x00", "video/mp4"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<SVG/>", "image/svg+xml"),
        (b"<?xml version='1.0'?><html/>", "application/octet-stream"),
        (b"<html><body>", "application/octet-stream"),
        (b"", "application/octet-stream"),
        (b"\xff", "application/octet-stream"),
    ],
)
def test_the_first_bytes_say_what_a_file_is(head: bytes, media_type: str) -> None:
    assert media_type_of(head) == media_type


def test_nothing_that_a_browser_could_run_is_shown() -> None:
    assert not SHOWN & {"image/svg+xml", "application/pdf", "text/html", "application/xml"}
