"""What kind of file it is, by its first bytes; its name is what somebody called it, and no proof."""

HEAD_BYTES = 64
"""How many bytes of a file have to be shown, at least."""

UNKNOWN = "application/octet-stream"

_STARTS = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
    (b"<svg", "image/svg+xml"),
)
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"isom": "video/mp4",
    b"mp42": "video/mp4",
    b"qt  ": "video/quicktime",
}


def media_type(head: bytes) -> str:
    """Return the media type of a file that begins with these bytes."""
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], UNKNOWN)
    return UNKNOWN
