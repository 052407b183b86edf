"""Every limit of the server by name, and where its database, bytes and keys are.

Limits are values of one frozen struct, so that a test or an operator's tool can hand in others; no
number of this kind stands anywhere else. Sizes are in bytes, times in seconds, as the names say.
Locations come from a mapping, which is the environment in a real process: `WORKMATE_DATABASE`,
`WORKMATE_BLOBS`, `WORKMATE_KEYS`. Nothing here touches a file or opens a connection.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self
from urllib.parse import unquote, urlsplit

import platformdirs
from msgspec import Struct

from workmate_shared.wire.codec import MAX_DEPTH

KIB = 1024
MIB = 1024 * KIB
MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR

OBJECT_SCHEMES = frozenset({"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"})
"""Blob store URLs that name a bucket or container: S3 and its kin, Google, Azure."""


class Settings(Struct, frozen=True, kw_only=True):
    """The limits of one server process; what each bounds, and its value unless said otherwise.

    Raises ValueError for a limit that is not above zero, or two that contradict each other.
    """

    request_bytes_max: int = MIB
    """Largest body of any request but an upload, measured after unpacking."""
    sync_commands_max: int = 500
    """Most commands in one sync request; devices are told, and halve on 413."""
    command_bytes_max: int = 640 * KIB
    """Largest single command with its disclosures."""
    json_depth_max: int = MAX_DEPTH
    """How deep arrays and objects of a message may be nested."""
    list_page_default: int = 50
    """Items on a page of a list when the caller names no `limit`."""
    list_page_max: int = 500
    """Most items on a page of a list or of a sync pull."""
    list_page_bytes_max: int = 8 * MIB
    """Stored bytes on a page of a list, after which it ends early; one item always fits."""
    answer_compressed_bytes_min: int = 2 * KIB
    """Smallest answer that is compressed for callers that take gzip."""
    long_poll_max_seconds: float = 55.0
    """Longest that `/v1/sync/wait` stays open: under the minute after which proxies give up."""
    retry_after_seconds: float = 2.0
    """What 429 and 503 tell the caller to wait."""
    shutdown_grace_seconds: float = 10.0
    """How long requests under way may take to end once the process is told to stop."""

    upload_bytes_max: int = 512 * MIB
    """Largest file of evidence."""
    upload_read_bytes: int = 256 * KIB
    """What one read takes from the body of an upload."""
    upload_piece_bytes: int = 8 * MIB
    """Gathered in memory before it is made durable; what a cut connection costs at most."""
    upload_life_seconds: float = 7 * DAY
    """How long an unfinished upload is kept after its last byte came."""
    upload_sweep_seconds: float = HOUR
    """How often a serving process looks for unfinished uploads that are too old."""
    blob_read_bytes: int = 256 * KIB
    """What one read takes from a blob, for hashing and for answering."""
    blob_store_timeout_seconds: float = 30.0
    """How long an object store may fail before the caller hears of it."""

    batch_commands_max: int = 500
    """Most commands decided, signed and committed in one transaction."""
    batch_bytes_max: int = 4 * MIB
    """Most bytes of commands in one transaction; one command always fits."""
    commit_queue_max: int = 5_000
    """Commands waiting for the committer before the server says `overloaded`."""
    commit_attempts_max: int = 5
    """Tries of one transaction against serialisation failures and deadlocks."""
    commit_backoff_base_seconds: float = 0.01
    """First ceiling of the jittered wait between those tries; it doubles each time."""
    worker_threads: int = 8
    """Threads for database, signatures, hashing and files."""
    head_copy_interval_seconds: float = 1.0
    """Shortest time between two copies of a tenant's newest header beside the keys."""

    enrolment_code_life_seconds: float = 15 * MINUTE
    """How long an enrolment code can be used."""
    nonce_life_seconds: float = 2 * MINUTE
    """How long the challenge for a device session can be answered."""
    session_life_seconds: float = 15 * MINUTE
    """How long a device session lasts; devices renew by themselves."""
    token_life_seconds: float = 90 * DAY
    """How long an access token lasts when its maker names no end."""
    token_use_interval_seconds: float = MINUTE
    """Shortest time between two notes of when a credential was last used."""
    attempts_window_seconds: float = MINUTE
    """The window in which attempts of one network address are counted."""
    enrolment_attempts_max: int = 60
    """Most requests about enrolment from one address in that window."""
    session_attempts_max: int = 240
    """Most requests about device sessions from one address in that window."""
    token_failures_max: int = 60
    """Unknown tokens from one address in that window, after which it is told to wait."""
    addresses_counted_max: int = 10_000
    """Addresses whose attempts are remembered; the one not seen for longest is forgotten."""
    location_purposes: tuple[str, ...] = ("dispatch", "review", "audit")
    """Purposes for which precise positions are shown, as `Location-Purpose` names them."""

    keep_from_age_seconds: float = 30 * DAY
    """Devices keep what was acknowledged within this time, in case the server is restored."""

    relay_claim_max: int = 100
    """Most outbox rows claimed at once."""
    relay_in_flight_max: int = 8
    """Most deliveries under way at once for one subscription."""
    relay_lease_seconds: float = MINUTE
    """How long a relay owns a subscription without renewing its lease."""
    relay_poll_seconds: float = 1.0
    """How long a relay without work waits before it looks again."""
    webhook_timeout_seconds: float = 15.0
    """How long a webhook's receiver may take."""
    webhook_answer_bytes_max: int = 64 * KIB
    """What is read of a receiver's answer; less of it is kept."""
    webhook_attempts_max: int = 12
    """Tries before a delivery becomes a dead letter."""
    webhook_backoff_base_seconds: float = 5.0
    """First ceiling of the full-jitter wait between tries; it doubles each time."""
    webhook_backoff_max_seconds: float = 6 * HOUR
    """Last ceiling of that wait, and the longest `Retry-After` that is honoured."""

    import_file_bytes_max: int = 64 * MIB
    """Largest job file; a larger one is split by whoever exports it."""
    import_cell_chars_max: int = 64 * KIB
    """Longest cell of a job file that a mapping reads."""
    import_in_flight_max: int = 8
    """Jobs under way at once while a file is handed in over HTTP."""
    import_attempts_max: int = 5
    """Tries of one job over HTTP before the import stops."""
    import_timeout_seconds: float = 30.0
    """How long the server may take to answer one job of an import."""

    def __post_init__(self) -> None:
        """Refuse limits under which nothing could work."""
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if isinstance(limit, int | float) and limit <= 0:
                raise ValueError(f"{name} must be above zero")
        for smaller, larger in (
            ("command_bytes_max", "request_bytes_max"),
            ("command_bytes_max", "batch_bytes_max"),
            ("list_page_default", "list_page_max"),
            ("batch_commands_max", "commit_queue_max"),
            ("upload_read_bytes", "upload_piece_bytes"),
            ("webhook_backoff_base_seconds", "webhook_backoff_max_seconds"),
        ):
            if getattr(self, smaller) > getattr(self, larger):
                raise ValueError(f"{smaller} must not be above {larger}")


ConfigCode = Literal[
    "database_missing", "database_unsupported", "blobs_missing", "blobs_unsupported"
]


class ConfigError(Exception):
    """A location that is not said, or that the server cannot use; `code` says which."""

    def __init__(self, code: ConfigCode, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: ConfigCode = code
        self.detail = detail


class Locations(Struct, frozen=True):
    """Where one server keeps things: two URLs and a folder."""

    database: str
    blobs: str
    keys: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the three `WORKMATE_` variables; an empty one counts as unset.

        Bytes and keys default to `<database file>.blobs/` and `<database file>.keys/` beside a
        SQLite file; with PostgreSQL the bytes must be named, and keys default to the platform's
        data folder. Raises ConfigError.
        """
        database = environment.get("WORKMATE_DATABASE", "")
        if not database:
            raise ConfigError("database_missing", "set WORKMATE_DATABASE or give --database")
        file = database_file(database)
        blobs = environment.get("WORKMATE_BLOBS", "")
        if not blobs:
            if file is None:
                raise ConfigError("blobs_missing", "set WORKMATE_BLOBS or give --blobs")
            blobs = file.absolute().with_name(f"{file.name}.blobs").as_uri()
        blob_folder(blobs)
        keys = environment.get("WORKMATE_KEYS", "")
        return cls(database, blobs, Path(keys) if keys else default_key_folder(database))


def database_file(url: str) -> Path | None:
    """Return the file of a SQLite URL; None for PostgreSQL.

    `sqlite:///office.db` is relative to the working folder, `sqlite:////srv/office.db` is not.
    Raises ConfigError, `database_unsupported`, for anything else, and for SQLite in memory, which
    would keep nothing.
    """
    scheme = urlsplit(url).scheme.partition("+")[0]
    if scheme == "postgresql":
        return None
    path = url.partition("///")[2].partition("?")[0]
    if scheme != "sqlite" or not path or path == ":memory:":
        raise ConfigError(
            "database_unsupported", "a database is sqlite:///FILE or postgresql://HOST/NAME"
        )
    return Path(path)


def default_key_folder(database_url: str) -> Path:
    """Return where the keys of a database lie unless the operator says otherwise.

    Beside a SQLite file, else in the platform's data folder under the database's name. Raises
    ConfigError like `database_file`.
    """
    file = database_file(database_url)
    if file is not None:
        return file.with_name(f"{file.name}.keys")
    name = unquote(urlsplit(database_url).path).strip("/").replace("/", "_") or "postgresql"
    return platformdirs.user_data_path("workmate-server", appauthor=False) / f"{name}.keys"


def blob_folder(url: str) -> Path | None:
    """Return the folder of a `file:` URL; None for a URL that names a bucket or container.

    `file:///srv/blobs` is absolute, `file:blobs` relative to the working folder. Raises
    ConfigError, `blobs_unsupported`, for anything else.
    """
    parts = urlsplit(url)
    if parts.scheme in OBJECT_SCHEMES and parts.netloc:
        return None
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path not in {"", "/"}:
        return Path(unquote(parts.path))
    raise ConfigError("blobs_unsupported", "bytes are kept at file:///FOLDER or s3://BUCKET/PREFIX")
