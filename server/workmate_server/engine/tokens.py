"""Access tokens and session tokens: text shown once, of which only a hash is kept."""

from msgspec import Struct

from workmate_server.ports import Entropy
from workmate_shared.kernel.hashing import blake3_hex

TOKEN_DOMAIN = "workmate.token.v1"  # noqa: S105 - a domain tag
SESSION_DOMAIN = "workmate.session-token.v1"
TOKEN_PREFIX = "wmt_"  # noqa: S105 - how a token begins
SESSION_PREFIX = "wms_"
TOKEN_BYTES = 32


class NewToken(Struct, frozen=True):
    """The text of a new token and the hash that is kept of it."""

    text: str
    hash: str


def new_token(entropy: Entropy) -> NewToken:
    """Make an access token of 256 random bits."""
    text = TOKEN_PREFIX + entropy.token_bytes(TOKEN_BYTES).hex()
    return NewToken(text, token_hash(text))


def new_session_token(entropy: Entropy) -> NewToken:
    """Make a device session's token of 256 random bits."""
    text = SESSION_PREFIX + entropy.token_bytes(TOKEN_BYTES).hex()
    return NewToken(text, session_hash(text))


def token_hash(text: str) -> str:
    """Return the hash under which an access token is known."""
    return blake3_hex(TOKEN_DOMAIN, text.encode())


def session_hash(text: str) -> str:
    """Return the hash under which a session token is known."""
    return blake3_hex(SESSION_DOMAIN, text.encode())
