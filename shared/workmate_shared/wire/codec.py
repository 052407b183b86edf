"""The bounded JSON codec: every byte from outside is decoded here, every byte of ours encoded here.

JSON (RFC 8259) is narrowed until a text has one meaning for every reader, as I-JSON (RFC 7493) asks:
strict UTF-8 without a byte order mark, no duplicate keys, no lone surrogates, no NaN, no integers
beyond 64 bits, no floats unless the caller allows them, and bounds on size and nesting that hold
before any parser runs. Whether unknown fields are refused is said by the structs themselves.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, overload

import msgspec

T = TypeVar("T")

MAX_DEPTH = 32
"""How deep arrays and objects may be nested unless the caller says otherwise."""

MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1
_ALWAYS_FITS = 18
"""So many digits fit into 64 bits whatever they are."""

MAX_DETAIL = 200
"""Length at which path and explanation are cut, in characters; they may quote what was sent."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_PATH = re.compile(r"(?P<detail>.*) - at (?P<key>`key` in )?`(?P<path>\$[^`]*)`", re.DOTALL)

MalformedCode = Literal["invalid_command", "too_large"]


class MalformedError(Exception):
    """Bytes that are no message of the kind expected: why (`code`), where (`path`) and how.

    `path` reads like `$.items[0].size`; `$` is the whole message.
    """

    def __init__(self, code: MalformedCode, path: str, detail: str) -> None:
        super().__init__(f"{code} at {path}: {detail}")
        self.code: MalformedCode = code
        self.path = path
        self.detail = detail


@overload
def decode(
    data: bytes, kind: type[T], *, max_bytes: int, max_depth: int = ..., floats: bool = ...
) -> T: ...


@overload
def decode(
    data: bytes, kind: Any, *, max_bytes: int, max_depth: int = ..., floats: bool = ...
) -> Any: ...


def decode(
    data: bytes, kind: Any, *, max_bytes: int, max_depth: int = MAX_DEPTH, floats: bool = False
) -> Any:
    """Decode and validate one JSON message of a type, or of a union of tagged structs.

    Raises MalformedError: `too_large` beyond `max_bytes`, else `invalid_command` with the path.
    """
    if len(data) > max_bytes:
        raise MalformedError("too_large", "$", f"more than {max_bytes} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _malformed("$", f"not UTF-8 at byte {error.start}") from error
    _check_depth(data, max_depth)
    _check_meaning(text, floats=floats)
    try:
        return _decoder(kind).decode(data)
    except msgspec.DecodeError as error:
        raise _malformed(*_split_path(str(error))) from error


def decode_part(data: bytes, kind: Any, *, max_bytes: int, max_depth: int = MAX_DEPTH) -> Any:
    """Decode one message within its bounds as `decode` does, without judging what parsers may differ on.

    Only for bytes that can hold nothing of the kind, that `decode` has judged as part of a larger
    message, or that it will judge before anything is done with them. Raises MalformedError.
    """
    if len(data) > max_bytes:
        raise MalformedError("too_large", "$", f"more than {max_bytes} bytes")
    _check_depth(data, max_depth)
    try:
        return _decoder(kind).decode(data)
    except msgspec.DecodeError as error:
        raise _malformed(*_split_path(str(error))) from error


def encode(value: object) -> bytes:
    """Encode a value as compact UTF-8 JSON, members in the order of the struct or mapping."""
    return msgspec.json.encode(value)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _malformed(path: str, detail: str) -> MalformedError:
    return MalformedError("invalid_command", path[:MAX_DETAIL], detail[:MAX_DETAIL])


def _split_path(message: str) -> tuple[str, str]:
    """Take apart what msgspec says: path and explanation."""
    found = _PATH.fullmatch(message)
    if found is None:
        return "$", message
    return found["path"], ("a key here: " if found["key"] else "") + found["detail"]


def _check_depth(data: bytes, max_depth: int) -> None:
    """Refuse deep nesting without parsing; brackets within strings do not count."""
    if data.count(b"{") + data.count(b"[") <= max_depth:
        return
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    depth = 0
    for bracket in outside_strings.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"{[" else -1
        if depth > max_depth:
            raise _malformed("$", f"nested deeper than {max_depth}")


class _Fault(NamedTuple):
    """Stands in a parsed value where something is wrong, until its path is known."""

    detail: str


class _FaultError(Exception):
    """Something is wrong somewhere; raised by the fast pass, which does not know where."""


def _refuse(detail: str) -> NoReturn:
    raise _FaultError(detail)


def _reader(fault: Callable[[str], object], *, floats: bool) -> json.JSONDecoder:
    """Return a plain JSON reader that calls `fault` wherever a value is ambiguous."""

    def members(pairs: list[tuple[str, object]]) -> object:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        return fault(f"duplicate key {twice!r}")

    def integer(digits: str) -> object:
        if len(digits) <= _ALWAYS_FITS or (
            len(digits) <= _ALWAYS_FITS + 2 and MIN_INTEGER <= int(digits) <= MAX_INTEGER
        ):
            return int(digits)
        return fault("an integer beyond 64 bits")

    def number(digits: str) -> object:
        if not floats:
            return fault("a number with fraction or exponent")
        value = float(digits)
        return value if isfinite(value) else fault("a number out of range")

    def constant(name: str) -> object:
        return fault(f"{name} is not JSON")

    return json.JSONDecoder(
        object_pairs_hook=members, parse_int=integer, parse_float=number, parse_constant=constant
    )


_FAST = {allowed: _reader(_refuse, floats=allowed) for allowed in (False, True)}
_LOCATING = {allowed: _reader(_Fault, floats=allowed) for allowed in (False, True)}


def _check_meaning(text: str, *, floats: bool) -> None:
    """Refuse what JSON parsers read differently; msgspec would take or skip it silently."""
    try:
        try:
            value = _FAST[floats].decode(text)
            if _SURROGATE_ESCAPE.search(text) is None:
                return
        except _FaultError:
            value = _LOCATING[floats].decode(text)
    except json.JSONDecodeError as error:
        raise _malformed("$", f"{error.msg} (character {error.pos})") from error
    fault = _find_fault(value, "$")
    if fault is not None:
        raise _malformed(*fault)


def _find_fault(value: object, path: str) -> tuple[str, str] | None:
    """Return path and explanation of the first fault in a parsed value, depth first."""
    match value:
        case _Fault():
            return path, value.detail
        case str():
            return (path, "a lone surrogate") if _SURROGATE.search(value) else None
        case dict():
            if _SURROGATE.search("".join(value)):
                return path, "a lone surrogate in a key"
            children = ((member, f"{path}.{key}") for key, member in value.items())
        case list():
            children = ((item, f"{path}[{index}]") for index, item in enumerate(value))
        case _:
            return None
    for child, child_path in children:
        fault = _find_fault(child, child_path)
        if fault is not None:
            return fault
    return None
