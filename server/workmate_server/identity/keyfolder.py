"""The folder `WORKMATE_KEYS`: every secret that the server itself holds, outside its database.

A copy of the database forges nothing and opens nothing, because what signs and what decrypts lies
only here. Folder and files belong to one user (0700, 0600), and are refused when others can read
them. Every write is durable, and every crash leaves the old state or the new one.

    database.key  sealing.key  fingerprint.key     32 random bytes each, written as hex
    log/active.seed                                the Ed25519 seed that signs batch headers now
    log/staged.seed                                its successor, until the log has announced it
    log/<key id>.pub                               public keys of those that went before
    heads/<tenant>.json                            the newest header of each tenant's log
"""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from workmate_server.ports import Entropy
from workmate_server.telemetry.files import (
    PRIVATE_FOLDER,
    checked_name,
    make_folder,
    remove_file,
    sync_folder,
    write_file,
)
from workmate_shared.wire.dsse import key_id, public_key_of

KEY_BYTES = 32
"""Size of every secret and every public key here."""

_DATABASE = Path("database.key")
_SEALING = Path("sealing.key")
_FINGERPRINT = Path("fingerprint.key")
_LOG = Path("log")
_ACTIVE = _LOG / "active.seed"
_STAGED = _LOG / "staged.seed"
_HEADS = Path("heads")
# Stands in the folder until all keys do, so that a creation cut short can be told and done again.
_UNFINISHED = Path("unfinished")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

KeyFolderCode = Literal["keys_missing", "keys_exist", "keys_unsafe_mode", "keys_damaged"]


class KeyFolderError(Exception):
    """The key folder cannot be used as it is; `code` says why, `detail` what to look at."""

    def __init__(self, code: KeyFolderCode, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: KeyFolderCode = code
        self.detail = detail


class LogKey:
    """A key that signs batch headers: the seed (32 bytes), its public key, and the key's id."""

    __slots__ = ("key_id", "public_key", "seed")

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self.public_key = public_key_of(seed)
        self.key_id = key_id(self.public_key)


class KeyFolder:
    """The keys of one server, read once when it is opened.

    `database_key`, `sealing_key` and `fingerprint_key` are 32 bytes each. `log_key` signs;
    `staged_log_key` is its successor during a rotation; `retired_log_keys` holds the public keys
    of earlier ones by key id.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database_key = _read_key(path / _DATABASE)
        self.sealing_key = _read_key(path / _SEALING)
        self.fingerprint_key = _read_key(path / _FINGERPRINT)
        self.log_key = LogKey(_read_key(path / _ACTIVE))
        staged = path / _STAGED
        self.staged_log_key = LogKey(_read_key(staged)) if staged.exists() else None
        self.retired_log_keys: Mapping[str, bytes] = _read_retired(path / _LOG)

    @classmethod
    def create(cls, path: Path, entropy: Entropy) -> Self:
        """Make a folder of new keys at `path`, which may exist if it is empty.

        A creation that was cut short is begun anew. Raises KeyFolderError, `keys_exist`, if there
        is anything else: keys are never overwritten.
        """
        if path.exists() and not (path.is_dir() and _is_blank(path)):
            raise KeyFolderError("keys_exist", f"{path} is there and not an empty folder")
        make_folder(path)
        path.chmod(PRIVATE_FOLDER)
        write_file(path / _UNFINISHED, b"")
        make_folder(path / _LOG)
        make_folder(path / _HEADS)
        for name in (_DATABASE, _SEALING, _FINGERPRINT, _ACTIVE):
            _write_key(path / name, entropy.token_bytes(KEY_BYTES))
        remove_file(path / _UNFINISHED)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the keys at `path`.

        Raises KeyFolderError: `keys_missing`, `keys_unsafe_mode` (someone else may read or change
        an entry) or `keys_damaged` (an entry is gone or is no key).
        """
        if not path.is_dir() or _is_blank(path):
            raise KeyFolderError("keys_missing", f"there are no keys at {path}")
        for entry in (path, *path.rglob("[!.]*")):
            if entry.stat().st_mode & _OTHERS:
                detail = f"{entry} is open to others; folders must be 0700 and files 0600"
                raise KeyFolderError("keys_unsafe_mode", detail)
        return cls(path)

    def stage_log_key(self, entropy: Entropy) -> LogKey:
        """Make and keep the next log key, to be announced in a batch that the active one signs.

        One that is staged already is returned, so that a rotation cut short goes on with it.
        """
        staged = self.path / _STAGED
        if not staged.exists():
            _write_key(staged, entropy.token_bytes(KEY_BYTES))
        self.staged_log_key = LogKey(_read_key(staged))
        return self.staged_log_key

    def activate_staged_log_key(self) -> None:
        """Sign with the staged key from now on; of the one before, only the public key is kept.

        To be called when the log has announced the staged key, durably. Raises ValueError if none
        is staged.
        """
        if self.staged_log_key is None:
            raise ValueError("no log key is staged")
        old = self.log_key
        _write_key(self.path / _LOG / f"{old.key_id}.pub", old.public_key)
        (self.path / _STAGED).replace(self.path / _ACTIVE)
        sync_folder(self.path / _LOG)
        self.retired_log_keys = {**self.retired_log_keys, old.key_id: old.public_key}
        self.log_key, self.staged_log_key = self.staged_log_key, None

    def write_head(self, tenant_id: str, header: bytes) -> None:
        """Keep a copy of a tenant's newest header; it proves a restore of the database.

        Called at most once in `head_copy_interval_seconds`. Raises ValueError for an id that is
        no file name.
        """
        write_file(self.path / _HEADS / f"{checked_name(tenant_id)}.json", header)

    def read_heads(self) -> dict[str, bytes]:
        """Return the copies of the newest headers by tenant id; their signatures are unchecked."""
        files = (self.path / _HEADS).glob("[!.]*.json")
        return {file.name.removesuffix(".json"): file.read_bytes() for file in files}


def _read_retired(folder: Path) -> dict[str, bytes]:
    retired = {}
    for file in folder.glob("[!.]*.pub"):
        public_key = _read_key(file)
        if key_id(public_key) != file.stem:
            raise KeyFolderError("keys_damaged", f"{file} holds another key than it says")
        retired[file.stem] = public_key
    return retired


def _is_blank(path: Path) -> bool:
    return (path / _UNFINISHED).exists() or not any(path.glob("[!.]*"))


def _write_key(path: Path, key: bytes) -> None:
    write_file(path, f"{key.hex()}\n".encode())


def _read_key(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text("ascii"))
    except (FileNotFoundError, ValueError) as error:
        raise KeyFolderError("keys_damaged", f"{path} is gone or is no key") from error
    if len(key) != KEY_BYTES:
        raise KeyFolderError("keys_damaged", f"{path} holds {len(key)} bytes, not {KEY_BYTES}")
    return key
