"""What the engine asks of whoever keeps the server's keys."""

from typing import Protocol


class LogKey(Protocol):
    """A key that signs batch headers: its id, its seed and public key (32 bytes each)."""

    @property
    def key_id(self) -> str:
        """The key's id."""

    @property
    def seed(self) -> bytes:
        """The Ed25519 seed."""

    @property
    def public_key(self) -> bytes:
        """The raw public key."""


class LogKeys(Protocol):
    """The active log key, and the copies of the newest headers beside it."""

    @property
    def log_key(self) -> LogKey:
        """The key that signs now."""

    def write_head(self, tenant_id: str, header: bytes) -> None:
        """Keep a copy of a tenant's newest header, durably."""

    def read_heads(self) -> dict[str, bytes]:
        """Return the copies of the newest headers by tenant id."""
