"""Request headers that carry meaning here, read strictly.

`Idempotency-Key` may be quoted or bare, which is one key. `If-Match` names one version as a strong
entity tag (RFC 9110, section 13.1.1); anything that names none, or several, is refused, because a
caller who believes to be protected must be.
"""

import re

from aiohttp import web

from workmate_server.config import Settings
from workmate_server.http.problems import ProblemError

IDEMPOTENCY_KEY = "Idempotency-Key"
LOCATION_PURPOSE = "Location-Purpose"
REPLAYED = "Idempotency-Replayed"

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_VERSION_TAG = re.compile(r'"(0|[1-9][0-9]{0,14})"')
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}")
_ZERO_WEIGHT = re.compile(r"q=0(\.0{0,3})?")


def idempotency_key(request: web.Request, in_body: str | None = None) -> str | None:
    """Return the key of a request, or None where neither header nor body carries one.

    Raises ProblemError: `idempotency_key_mismatch` where two differ, `invalid_request` for text
    that is no key.
    """
    keys = {_unquoted(text) for text in request.headers.getall(IDEMPOTENCY_KEY, ())}
    if in_body is not None:
        keys.add(in_body)
    if len(keys) > 1:
        raise ProblemError("idempotency_key_mismatch")
    key = next(iter(keys), None)
    if key is not None and _KEY.fullmatch(key) is None:
        raise ProblemError(
            "invalid_request", "A key is 1 to 255 visible ASCII characters.", path=IDEMPOTENCY_KEY
        )
    return key


def require_key(key: str | None) -> str:
    """Return the key; raises ProblemError `idempotency_key_missing` where there is none."""
    if key is None:
        raise ProblemError("idempotency_key_missing")
    return key


def expected_version(request: web.Request) -> int | None:
    """Return the version that `If-Match` names, or None without the header.

    Raises ProblemError `invalid_request` for `*`, weak tags, lists and anything else.
    """
    values = request.headers.getall("If-Match", ())
    if not values:
        return None
    found = _VERSION_TAG.fullmatch(values[0].strip()) if len(values) == 1 else None
    if found is None:
        raise ProblemError(
            "invalid_request", 'If-Match names one version, as in "3".', path="If-Match"
        )
    return int(found[1])


def version_tag(version: int) -> str:
    """Return the strong entity tag of a version."""
    return f'"{version}"'


def matches(request: web.Request, version: int) -> bool:
    """Whether `If-None-Match` names the version, so that 304 is the answer.

    Never where a purpose is stated: with it the same version shows more.
    """
    if LOCATION_PURPOSE in request.headers:
        return False
    named = ",".join(request.headers.getall("If-None-Match", ()))
    tags = {tag.strip().removeprefix("W/") for tag in named.split(",")}
    return "*" in tags or version_tag(version) in tags


def location_purpose(request: web.Request, settings: Settings) -> str | None:
    """Return the purpose for which positions are asked for, or None.

    Raises ProblemError `location_purpose_refused` for one that is not allowed.
    """
    purposes = set(request.headers.getall(LOCATION_PURPOSE, ()))
    if not purposes:
        return None
    purpose = purposes.pop().strip()
    if purposes or purpose not in settings.location_purposes:
        raise ProblemError("location_purpose_refused")
    return purpose


def path_id(request: web.Request, name: str) -> str:
    """Return an id from the path; text that can be no id is `not_found`, like one that is none."""
    text: str = request.match_info[name]
    if _IDENTIFIER.fullmatch(text) is None:
        raise ProblemError("not_found")
    return text


def takes_gzip(request: web.Request) -> bool:
    """Whether the caller takes gzip (RFC 9110, section 12.5.3)."""
    for part in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, weight = part.replace(" ", "").partition(";")
        if coding == "gzip":
            return _ZERO_WEIGHT.fullmatch(weight) is None
    return False


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
