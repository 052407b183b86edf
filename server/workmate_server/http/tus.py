"""The headers of tus 1.0.0: what an upload client says and what it is told.

Core protocol and the creation extension. A header that is missing or makes no sense is refused,
because a wrong offset or length costs a worker's photo.
"""

import base64
import binascii
import re
from collections.abc import Mapping

from aiohttp import web

from workmate_server.evidence.uploads import Announced
from workmate_server.http.problems import ProblemError
from workmate_server.store.uploads import Upload

VERSION = "1.0.0"
EXTENSIONS = "creation"
OFFSET_TYPE = "application/offset+octet-stream"

RESUMABLE = "Tus-Resumable"
OFFSET = "Upload-Offset"
LENGTH = "Upload-Length"
METADATA = "Upload-Metadata"
OVERRIDE = "X-HTTP-Method-Override"

_NUMBER = re.compile(r"[0-9]{1,15}")
_KEY = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_HASH = re.compile(r"[0-9a-f]{64}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}")
_CLAIM_CHARACTERS_MAX = 255


def require_version(request: web.Request) -> None:
    """Raise ProblemError `upload_protocol` unless the client speaks tus 1.0.0."""
    if request.headers.get(RESUMABLE) != VERSION:
        raise ProblemError("upload_protocol", headers={"Tus-Version": VERSION})


def number(request: web.Request, header: str) -> int:
    """Return a header that is a whole number. Raises ProblemError `invalid_request`."""
    text = request.headers.get(header, "")
    if _NUMBER.fullmatch(text) is None:
        raise _invalid(header, "It is a whole number of bytes.")
    return int(text)


def announced(request: web.Request) -> Announced:
    """Return what a creation announces. Raises ProblemError `invalid_request`."""
    if "Upload-Defer-Length" in request.headers:
        raise _invalid("Upload-Defer-Length", "The length must be known.")
    size = number(request, LENGTH)
    given = read_metadata(request.headers.get(METADATA, ""))
    blob_hash, task_id = given.get("hash", ""), given.get("task_id", "")
    if _HASH.fullmatch(blob_hash) is None:
        raise _invalid(METADATA, "hash is a BLAKE3 hash, 64 lower-case hex digits.")
    if _IDENTIFIER.fullmatch(task_id) is None:
        raise _invalid(METADATA, "task_id is the id of a task.")
    return Announced(
        hash=blob_hash,
        size=size,
        task_id=task_id,
        filename=_claim(given.get("filename", "")),
        media_type=_claim(given.get("filetype", "")),
    )


def read_metadata(text: str) -> dict[str, str]:
    """Return the pairs of an `Upload-Metadata` header: names, and values out of base64.

    Raises ProblemError `invalid_request` for one that the protocol does not allow.
    """
    pairs: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        name, _, value = part.strip().partition(" ")
        if _KEY.fullmatch(name) is None or name in pairs:
            raise _invalid(METADATA, "Each name comes once, without spaces or commas.")
        try:
            pairs[name] = base64.b64decode(value.strip(), validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise _invalid(METADATA, "Values are text in base64.") from error
    return pairs


def write_metadata(pairs: Mapping[str, str]) -> str:
    """Return an `Upload-Metadata` header; a name without a value stands alone."""
    return ",".join(
        f"{name} {base64.b64encode(value.encode()).decode()}" if value else name
        for name, value in pairs.items()
    )


def progress_headers(upload: Upload, offset: int) -> dict[str, str]:
    """Return what a client asks for before it goes on."""
    pairs = {
        "hash": upload.hash,
        "task_id": upload.task_id,
        "filename": upload.filename,
        "filetype": upload.media_type,
    }
    return {
        OFFSET: str(offset),
        LENGTH: str(upload.size),
        METADATA: write_metadata({name: value for name, value in pairs.items() if value}),
        "Cache-Control": "no-store",
    }


def _claim(text: str) -> str:
    """Keep what is printable of a claim: a label for people, never a path or a header."""
    return "".join(c for c in text if c.isprintable())[:_CLAIM_CHARACTERS_MAX]


def _invalid(header: str, detail: str) -> ProblemError:
    return ProblemError("invalid_request", detail, path=header)
