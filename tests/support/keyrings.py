"""A small keyring that works in every way, and whose entries die with the process."""

from keyring.backend import KeyringBackend


class MemoryKeyring(KeyringBackend):
    """Entries in memory. The library lists every class of backend: this one it never picks."""

    priority = 0.1

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]
