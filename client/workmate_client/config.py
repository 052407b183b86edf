"""Every limit of the device, by name, and where its files lie.

Limits are values that are passed in, so that tests can stand at their edge. Sizes are in bytes,
times in seconds. Changing a limit never makes files that were written under another unreadable.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from platformdirs import user_data_path

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

HOME_VARIABLE = "WORKMATE_HOME"
"""The environment variable that names the profile folder."""


class Settings(Struct, frozen=True, kw_only=True):
    """The limits of one device. All have defaults; nobody has to set any."""

    sealed_piece_bytes: int = MIB
    """Size of an evidence file's separately sealed pieces: what a read from the middle costs."""

    sealed_piece_limit_bytes: int = 16 * MIB
    """The largest piece that a sealed file's header may claim: damage claims no memory."""

    evidence_file_limit_bytes: int = 2 * GIB
    """The largest file that can be taken as evidence."""

    evidence_settle_seconds: float = 0.2
    """A file is taken when two looks at it, this far apart, see the same: nobody writes to it."""

    evidence_settle_timeout_seconds: float = 30.0
    """After this time a file that still grows is refused; it can be taken again later."""

    disk_reserve_bytes: int = 4 * MIB
    """Space that an import leaves free, so that commands can still be saved on a full disk."""

    unfinished_age_seconds: float = 3600.0
    """An unfinished copy older than this belongs to a process that died, and may be removed."""

    unsent_record_limit_bytes: int = 8 * MIB
    """The largest pending command with its values: well over what the server takes at once."""

    file_lock_timeout_seconds: float = 10.0
    """How long a write waits for another process that writes the same file."""

    profile_lock_timeout_seconds: float = 1.0
    """How long starting up waits for a lock that another process may be about to release."""

    database_busy_timeout_seconds: float = 10.0
    """How long a database statement waits for another process's transaction."""

    vault_ops_limit: int = 3
    """Argon2id passes over the memory: libsodium's MODERATE, see `vault_memory_bytes`."""

    vault_memory_bytes: int = 256 * MIB
    """Argon2id memory: libsodium's MODERATE instead of INTERACTIVE (2 passes, 64 MiB).

    Whoever steals the laptop can guess against the vault file for as long as they like, and the
    worker waits for it only once per start: about a second on a small laptop, which also has the
    memory. The vault file names its own parameters, so raising these needs no migration.
    """

    vault_ops_ceiling: int = 16
    """The most passes that a vault file may ask for before it counts as damaged."""

    vault_memory_ceiling_bytes: int = GIB
    """The most memory that a vault file may ask for before it counts as damaged."""

    passphrase_characters_min: int = 8
    """The shortest passphrase that a vault is made with (NIST SP 800-63B, section 5.1.1.1)."""

    autosave_seconds: float = 1.0
    """A change in a form is saved after this time at the latest; two seconds are promised."""

    watchdog_seconds: float = 600.0
    """Pending work and a reachable server without an outcome for this long is said aloud."""

    backoff_first_seconds: float = 1.0
    """The first retry waits a random time up to this; the bound doubles with each failure."""

    backoff_limit_seconds: float = 300.0
    """The bound of the waiting time between two tries never exceeds this."""

    retry_after_limit_seconds: float = 3600.0
    """The longest `Retry-After` (RFC 9110, section 10.2.3) that is believed."""

    connect_timeout_seconds: float = 10.0
    """How long a connection may take to open."""

    stall_timeout_seconds: float = 30.0
    """A transfer without any progress for this long is given up; as a whole it may last."""

    long_poll_seconds: float = 55.0
    """How long the server is asked to hold a request that waits for changes."""

    sync_interval_seconds: float = 60.0
    """The longest time between two syncs while the server can be reached."""

    sync_commands_limit: int = 500
    """The most commands in one request, until the server names its own limit."""

    sync_request_limit_bytes: int = MIB
    """The largest request, until the server names its own limit."""

    answer_limit_bytes: int = 32 * MIB
    """The largest answer that is read, after decompression."""

    upload_chunk_bytes: int = MIB
    """How much of a file goes into one upload request: one sealed piece."""

    evidence_attempts_limit: int = 5
    """A file that cannot be read or is refused this often is set aside and no longer retried."""

    metered_upload_limit_bytes: int = 0
    """The largest file that goes over a metered link by itself; larger ones wait for a choice."""

    clock_doubt_seconds: float = 120.0
    """A clock further off than this and than the round trip explains is flagged as doubtful."""


class ProfilePaths(Struct, frozen=True):
    """Where everything of one worker's profile lies inside its folder."""

    folder: Path

    @property
    def journal(self) -> Path:
        """The durable database: queue, evidence list, drafts, receipts."""
        return self.folder / "journal.db"

    @property
    def replica(self) -> Path:
        """The disposable database: what the server said."""
        return self.folder / "replica.db"

    @property
    def unsent(self) -> Path:
        """The log of pending commands from which a damaged journal is rebuilt."""
        return self.folder / "unsent.log"

    @property
    def evidence(self) -> Path:
        """The folder of sealed evidence files."""
        return self.folder / "evidence"

    @property
    def vault(self) -> Path:
        """The profile's keys under a passphrase, where no keyring keeps them."""
        return self.folder / "keys.vault"

    @property
    def keyring_pointer(self) -> Path:
        """The name under which the system's keyring keeps the profile's keys, where it does."""
        return self.folder / "keys.keyring"

    @property
    def sync_lock(self) -> Path:
        """The lock of the one process that talks to the server."""
        return self.folder / "sync.lock"


def profile_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the worker's profile: `WORKMATE_HOME`, else the platform's data folder.

    The result is absolute; nothing is created.
    """
    named = environment.get(HOME_VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute()
    return user_data_path("workmate", appauthor=False)
