"""Sealing bytes under a key: XChaCha20-Poly1305 with 24-byte nonces, by libsodium.

What is bound to the sealed bytes is authenticated and not kept with them; whoever opens them must
know it. A nonce may be random; no two different contents may ever share key and nonce.
"""

import nacl.bindings
from nacl.exceptions import CryptoError

NONCE_BYTES = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
TAG_BYTES = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_ABYTES
"""What sealing adds to the content's length, in bytes."""


class UnsealError(ValueError):
    """The bytes, the key, the nonce and what was bound to them do not belong together."""


def seal(key: bytes, nonce: bytes, content: bytes, bound: bytes) -> bytes:
    """Return the content sealed under a 32-byte key, `TAG_BYTES` longer than it was."""
    return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(content, bound, nonce, key)


def unseal(key: bytes, nonce: bytes, sealed: bytes, bound: bytes) -> bytes:
    """Return the content that `seal` was given. Raises UnsealError if anything differs."""
    # The binding fails in ways of its own on what is too short to have a tag.
    if len(sealed) < TAG_BYTES:
        raise UnsealError("too short to have been sealed")
    try:
        return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, bound, nonce, key)
    except CryptoError as error:
        raise UnsealError("changed, or sealed under another key") from error
