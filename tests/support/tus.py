"""A plain tus 1.0.0 client over an office's HTTP."""

import base64
from typing import Any

from blake3 import blake3

from support.office import Answer, Person

VERSION = {"Tus-Resumable": "1.0.0"}
OFFSET_TYPE = "application/offset+octet-stream"


def hash_of(content: bytes) -> str:
    """Return the BLAKE3 hash of some bytes in hex."""
    return blake3(content).hexdigest()


def metadata(**pairs: str) -> str:
    """Write an `Upload-Metadata` header."""
    return ",".join(
        f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in pairs.items()
    )


async def begin(
    person: Person,
    task_id: str,
    content: bytes,
    *,
    named: str | None = None,
    length: int | None = None,
    headers: dict[str, str] | None = None,
    **claims: str,
) -> Answer:
    """Create an upload of some bytes, or of a length and hash that are only claimed."""
    pairs = {"hash": named or hash_of(content), "task_id": task_id} | claims
    sent = {
        "Upload-Length": str(len(content) if length is None else length),
        "Upload-Metadata": metadata(**pairs),
    }
    return await person.call("POST", "/v1/uploads", headers=VERSION | sent | (headers or {}))


async def append(
    person: Person, location: str, offset: int, content: bytes, **headers: str
) -> Answer:
    """Send bytes from an offset on."""
    sent = {"Upload-Offset": str(offset), "Content-Type": OFFSET_TYPE}
    return await person.call("PATCH", location, data=content, headers=VERSION | sent | headers)


async def ask(person: Person, location: str, **headers: str) -> Answer:
    """Ask how much is held."""
    return await person.call("HEAD", location, headers=VERSION | headers)


async def upload(person: Person, task_id: str, content: bytes, **claims: Any) -> str:
    """Upload a whole file in one go; return its hash."""
    begun = await begin(person, task_id, content, **claims)
    assert begun.status == 201, begun.body
    if begun.headers["Upload-Offset"] != str(len(content)):
        sent = await append(person, begun.headers["Location"], 0, content)
        assert sent.status == 204, sent.body
    return hash_of(content)
