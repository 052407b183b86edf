"""The format of a sealed file: a header, then pieces that can each be opened alone.

Layout, integers big-endian: the header (`WMSEALED`, version, two zero bytes, piece size, total
size, file id, salt), then each piece of the content, all of the header's piece size but the last,
as XChaCha20-Poly1305 ciphertext with its 16-byte tag. The key belongs to the file id alone; the
nonce is salt and index; the header, the index and whether it is the last are authenticated with
every piece. So a piece that was changed, moved, repeated, cut off or taken from another file never
opens.
"""

import struct

from blake3 import blake3
from msgspec import Struct

from workmate_client.journal.aead import TAG_BYTES, UnsealError, seal, unseal

FILE_ID_BYTES = 16
SALT_BYTES = 16

_MAGIC = b"WMSEALED"
_VERSION = 1
_HEADER = struct.Struct(f">8sHHIQ{FILE_ID_BYTES}s{SALT_BYTES}s")
_INDEX = struct.Struct(">Q")
_BOUND = struct.Struct(">QB")

HEADER_BYTES = _HEADER.size
"""Size of the header, in bytes; the first piece begins there."""

FILE_KEY_CONTEXT = "workmate 2026 key of one evidence file"


class FormatError(ValueError):
    """Bytes that are no header or no piece of this format, or not of this file."""


class Header(Struct, frozen=True):
    """What the head of a sealed file says: id, piece size, size of the content, salt."""

    file_id: bytes
    piece_bytes: int
    total_bytes: int
    salt: bytes

    @property
    def pieces(self) -> int:
        """How many pieces there are; an empty content has one, which is empty."""
        return max(1, -(-self.total_bytes // self.piece_bytes))

    @property
    def sealed_bytes(self) -> int:
        """Size of the whole sealed file, in bytes."""
        return HEADER_BYTES + self.total_bytes + self.pieces * TAG_BYTES

    def place(self, index: int) -> tuple[int, int]:
        """Return offset and length of a sealed piece in the file, in bytes."""
        content = min(self.piece_bytes, self.total_bytes - index * self.piece_bytes)
        return HEADER_BYTES + index * (self.piece_bytes + TAG_BYTES), content + TAG_BYTES


def encode_header(header: Header) -> bytes:
    """Write a header."""
    fields = (header.piece_bytes, header.total_bytes, header.file_id, header.salt)
    return _HEADER.pack(_MAGIC, _VERSION, 0, *fields)


def decode_header(data: bytes, piece_limit_bytes: int) -> Header:
    """Read a header. Raises FormatError for anything else, or pieces larger than the limit."""
    if len(data) != HEADER_BYTES:
        raise FormatError("too short for a header")
    magic, version, spare, piece_bytes, total_bytes, file_id, salt = _HEADER.unpack(data)
    if magic != _MAGIC or spare:
        raise FormatError("not a sealed file")
    if version != _VERSION:
        raise FormatError(f"sealed in version {version}, which is not known here")
    if not 0 < piece_bytes <= piece_limit_bytes:
        raise FormatError(f"claims pieces of {piece_bytes} bytes")
    return Header(file_id, piece_bytes, total_bytes, salt)


class PieceSealer:
    """Seals and opens the pieces of one file."""

    def __init__(self, evidence_key: bytes, header: Header) -> None:
        material = evidence_key + header.file_id
        self._key = blake3(material, derive_key_context=FILE_KEY_CONTEXT).digest()
        self._header = header
        self._head = encode_header(header)

    def seal(self, index: int, content: bytes) -> bytes:
        """Seal piece number `index`, from 0; no piece may be sealed twice under one salt."""
        return seal(self._key, self._nonce(index), content, self._bound(index))

    def open(self, index: int, sealed: bytes) -> bytes:
        """Return the content of a piece. Raises FormatError if it is not that piece, unchanged."""
        try:
            return unseal(self._key, self._nonce(index), sealed, self._bound(index))
        except UnsealError as error:
            raise FormatError(str(error)) from error

    def _nonce(self, index: int) -> bytes:
        return self._header.salt + _INDEX.pack(index)

    def _bound(self, index: int) -> bytes:
        return self._head + _BOUND.pack(index, index == self._header.pieces - 1)
