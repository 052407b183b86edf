"""What kind of file some bytes are, told by their first bytes and never by their name or a claim.

Only kinds that people and devices send as evidence are known; everything else is plain bytes.
"""

UNKNOWN = "application/octet-stream"

HEAD_BYTES = 512
"""How much of a file is looked at, in bytes."""

SHOWN = frozenset(
    {"image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/avif"}
)
"""Kinds that hold pixels only; a browser that is told to show one runs nothing."""

_MAGIC = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heic",
    b"avif": "image/avif",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def media_type_of(head: bytes) -> str:
    """Return the media type of a file by its first `HEAD_BYTES` bytes, or as many as it has."""
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    return "image/svg+xml" if _is_svg(head) else UNKNOWN


def _is_svg(head: bytes) -> bool:
    text = head.removeprefix(_BYTE_ORDER_MARK).lstrip().lower()
    return text.startswith(b"<svg") or (text.startswith(b"<?xml") and b"<svg" in text)
