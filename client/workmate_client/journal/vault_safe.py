"""The keys in a file, sealed under a passphrase.

Argon2id (RFC 9106) makes a key of the passphrase, XChaCha20-Poly1305 seals the secrets under it.
The file carries its parameters, so that they can be raised later, and a check over everything that
tells damage from a wrong passphrase. It is written at once or not at all, also when the passphrase
changes: at any moment exactly one passphrase opens it.
"""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from nacl.pwhash import argon2id

from workmate_client.config import Settings
from workmate_client.journal.aead import NONCE_BYTES, UnsealError, seal, unseal
from workmate_client.journal.keys import (
    KEY_BYTES,
    KeysExistError,
    KeysMissingError,
    PassphraseTooShortError,
    ProfileKeys,
    SafeName,
    VaultDamagedError,
    VaultMemoryError,
    WrongPassphraseError,
)
from workmate_client.ports import Files, Random, StorageError
from workmate_shared.kernel.hashing import blake3_hex
from workmate_shared.wire.binary import from_base64, to_base64

CHECK_DOMAIN = "workmate.vault.v1"

PassphraseSource = Callable[[], str]
"""Asked for the passphrase once for each operation that needs it: a prompt, or the environment."""


class _Head(msgspec.Struct, frozen=True):
    """What is authenticated and not secret: the format, and how the key is made."""

    format: Literal["workmate-vault"]
    version: Literal[1]
    kdf: Literal["argon2id13"]
    ops_limit: int
    memory_bytes: int
    salt: str


class _Vault(msgspec.Struct, frozen=True):
    head: _Head
    nonce: str
    sealed: str
    check: str


def _check(head: _Head, nonce: bytes, sealed: bytes) -> str:
    return blake3_hex(CHECK_DOMAIN, msgspec.json.encode(head), nonce, sealed)


def _stretched(passphrase: str, head: _Head) -> bytes:
    # One passphrase, however the keyboard composes its letters (RFC 8265, section 4.2).
    password = unicodedata.normalize("NFC", passphrase).encode()
    salt = from_base64(head.salt)
    try:
        return argon2id.kdf(KEY_BYTES, password, salt, head.ops_limit, head.memory_bytes)
    except RuntimeError as error:
        raise VaultMemoryError(f"{head.memory_bytes} bytes are needed") from error


class VaultSafe:
    """The `Safe` for one profile in a vault file."""

    name: SafeName = "vault"

    def __init__(
        self,
        path: Path,
        passphrase_source: PassphraseSource,
        files: Files,
        *,
        random: Random,
        settings: Settings,
    ) -> None:
        self._path = path
        self._passphrase_source = passphrase_source
        self._files = files
        self._random = random
        self._settings = settings

    def load(self) -> ProfileKeys:
        """Return the keys. Takes about a second and much memory: never on an event loop.

        Raises KeysMissingError, VaultDamagedError, WrongPassphraseError, VaultMemoryError or
        StorageError; the passphrase is asked for only if there is a whole vault to open.
        """
        vault = self._read()
        key = _stretched(self._passphrase_source(), vault.head)
        try:
            secrets = unseal(
                key,
                from_base64(vault.nonce),
                from_base64(vault.sealed),
                msgspec.json.encode(vault.head),
            )
        except UnsealError as error:
            raise WrongPassphraseError("the vault does not open under this passphrase") from error
        return ProfileKeys.from_bytes(secrets)

    def create(self, keys: ProfileKeys) -> None:
        """Keep the keys. Raises KeysExistError, PassphraseTooShortError or StorageError."""
        # Asked before the passphrase is, and once more by the file system when it is written.
        if self._files.state(self._path) is not None:
            raise KeysExistError(f"{self._path} is there already")
        sealed = self._sealed(keys, self._passphrase_source())
        try:
            self._files.write_new(self._path, [sealed], label="vault")
        except StorageError as error:
            if error.code == "file_exists":
                raise KeysExistError(f"{self._path} is there already") from error
            raise

    def change_passphrase(self, new_passphrase: str) -> None:
        """Seal the keys anew, under another passphrase, at once. Raises what `load` raises too."""
        sealed = self._sealed(self.load(), new_passphrase)
        self._files.replace(self._path, [sealed], label="vault")

    def remove(self) -> None:
        """Remove the vault file for good."""
        self._files.remove(self._path, label="vault_removal")

    def _sealed(self, keys: ProfileKeys, passphrase: str) -> bytes:
        least = self._settings.passphrase_characters_min
        if len(passphrase) < least:
            raise PassphraseTooShortError(f"at least {least} characters are needed")
        head = _Head(
            format="workmate-vault",
            version=1,
            kdf="argon2id13",
            ops_limit=self._settings.vault_ops_limit,
            memory_bytes=self._settings.vault_memory_bytes,
            salt=to_base64(self._random.token_bytes(argon2id.SALTBYTES)),
        )
        nonce = self._random.token_bytes(NONCE_BYTES)
        key = _stretched(passphrase, head)
        sealed = seal(key, nonce, keys.to_bytes(), msgspec.json.encode(head))
        check = _check(head, nonce, sealed)
        return msgspec.json.encode(_Vault(head, to_base64(nonce), to_base64(sealed), check))

    def _read(self) -> _Vault:
        try:
            raw = self._files.read(self._path)
        except StorageError as error:
            if error.code == "file_missing":
                raise KeysMissingError(f"{self._path} is not there") from error
            raise
        try:
            vault = msgspec.json.decode(raw, type=_Vault)
            salt, nonce, sealed = map(from_base64, (vault.head.salt, vault.nonce, vault.sealed))
        except ValueError as error:
            raise VaultDamagedError(f"{self._path} cannot be read") from error
        # One spelling only: what was changed and still reads the same was changed all the same.
        if msgspec.json.encode(vault) != raw or vault.check != _check(vault.head, nonce, sealed):
            raise VaultDamagedError(f"{self._path} was changed")
        head, limits = vault.head, self._settings
        if not (
            argon2id.OPSLIMIT_MIN <= head.ops_limit <= limits.vault_ops_ceiling
            and argon2id.MEMLIMIT_MIN <= head.memory_bytes <= limits.vault_memory_ceiling_bytes
            and (len(salt), len(nonce)) == (argon2id.SALTBYTES, NONCE_BYTES)
        ):
            raise VaultDamagedError(f"{self._path} asks for what no vault of ours does")
        return vault
