"""Enrolment codes: what an administrator reads out and a worker types, once, to bind a device.

A code holds 128 random bits, which are the secret, and 80 bits of the server's key id, by which the
device knows the right server before it trusts it. It is Crockford's base 32, so that no two symbols
look alike, in groups of four. Two check symbols tell a slip of the finger from a code that is wrong
or spent: any single wrong symbol and any two that changed places are always found.
"""

from typing import Literal

from workmate_shared.kernel.hashing import blake3_hex

CODE_DOMAIN = "workmate.enrolment-code.v1"
CHECK_DOMAIN = "workmate.enrolment-check.v1"

SECRET_BYTES = 16
"""Random bytes in a code."""
KEY_PREFIX_BYTES = 10
"""Bytes of the server's key id in a code."""

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_IGNORED = "- \t\r\n\u00a0\u2010\u2011\u2013\u2014"
_READ_AS = str.maketrans("abcdefghjkmnpqrstvwxyzoOiIlL", "ABCDEFGHJKMNPQRSTVWXYZ001111", _IGNORED)
_CONTENT_BITS = 8 * (SECRET_BYTES + KEY_PREFIX_BYTES)
_CONTENT_SYMBOLS = -(-_CONTENT_BITS // 5)
_CHECK_SYMBOLS = 2
_CODE_SYMBOLS = _CONTENT_SYMBOLS + _CHECK_SYMBOLS
_GROUP = 4
# The largest prime below 2^10 of which no such difference is a multiple, wherever the symbols stand.
_CHECK_PRIME = 1019

CodeFault = Literal["code_length", "code_symbol", "code_mistyped"]


class CodeError(ValueError):
    """Text that is no enrolment code, whoever issued it; `code` says why."""

    def __init__(self, code: CodeFault, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: CodeFault = code
        self.detail = detail


def make_code(secret: bytes, server_key_id: str) -> str:
    """Write 16 random bytes and the server's key id (hex) as a code: eleven groups of four.

    Raises ValueError for a secret of another length or an id that is no hex of ten bytes or more.
    """
    prefix = _key_prefix(server_key_id)
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"an enrolment code is made of {SECRET_BYTES} random bytes")
    content = int.from_bytes(secret + prefix, "big")
    symbols = _write(content, _CONTENT_SYMBOLS) + _write(content % _CHECK_PRIME, _CHECK_SYMBOLS)
    return "-".join(symbols[start : start + _GROUP] for start in range(0, _CODE_SYMBOLS, _GROUP))


def parse_code(text: str) -> tuple[bytes, bytes]:
    """Return the secret (16 bytes) and the start of the server's key id (10 bytes) of a code.

    Lower case, spaces and dashes of any kind, O for 0 and I or L for 1 are read as they were meant.
    Raises CodeError: `code_length`, `code_symbol` or `code_mistyped`.
    """
    symbols = text.translate(_READ_AS)
    strange = sorted(set(symbols) - set(_ALPHABET))
    if strange:
        raise CodeError("code_symbol", f"{strange[0]!r} is in no enrolment code")
    if len(symbols) != _CODE_SYMBOLS:
        detail = f"a code has {_CODE_SYMBOLS} letters and digits, this one {len(symbols)}"
        raise CodeError("code_length", detail)
    content = _read(symbols[:_CONTENT_SYMBOLS])
    check = _read(symbols[_CONTENT_SYMBOLS:])
    if content >> _CONTENT_BITS or check != content % _CHECK_PRIME:
        raise CodeError("code_mistyped", "a letter or digit is wrong or out of place")
    whole = content.to_bytes(SECRET_BYTES + KEY_PREFIX_BYTES, "big")
    return whole[:SECRET_BYTES], whole[SECRET_BYTES:]


def code_hash(text: str) -> str:
    """Return the hash (hex) under which a code is stored and its enrolment is keyed.

    Only the secret counts, however it was typed. Raises CodeError.
    """
    secret, _ = parse_code(text)
    return blake3_hex(CODE_DOMAIN, secret)


def code_check(hashed: str) -> str:
    """Return what the log keeps of a code's hash, as hex: enough to know it, not to use it.

    The hash itself enrols a device, and events reach readers who must not be able to.
    """
    return blake3_hex(CHECK_DOMAIN, hashed.encode())


def key_matches(server_key_id: str, prefix: bytes) -> bool:
    """Whether a server's key id (hex) is the one that a code's ten bytes were taken from.

    Raises ValueError for an id that is no hex of ten bytes or more.
    """
    return _key_prefix(server_key_id) == prefix


def _key_prefix(server_key_id: str) -> bytes:
    prefix = bytes.fromhex(server_key_id)[:KEY_PREFIX_BYTES]
    if len(prefix) != KEY_PREFIX_BYTES:
        raise ValueError(f"a key id has at least {KEY_PREFIX_BYTES} bytes")
    return prefix


def _write(number: int, symbols: int) -> str:
    places = range(5 * (symbols - 1), -1, -5)
    return "".join(_ALPHABET[(number >> place) & 0b11111] for place in places)


def _read(symbols: str) -> int:
    number = 0
    for symbol in symbols:
        number = number << 5 | _ALPHABET.index(symbol)
    return number
