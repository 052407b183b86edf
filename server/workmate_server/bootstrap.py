"""The one place where the parts of a server process are put together.

Nothing else builds a database, an engine or an application. Whoever opens the parts closes them.
What cannot work is refused here, before anything listens, with a code and what to do about it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from workmate_server.config import ConfigError, Locations, Settings, database_file
from workmate_server.engine.blocking import WorkerThreads
from workmate_server.engine.engine import Engine
from workmate_server.evidence.blobs import open_blob_store
from workmate_server.evidence.uploads import Uploads
from workmate_server.http.services import Services
from workmate_server.identity.headcopies import compare_heads
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.outbox.relay import Relay, RelayParts
from workmate_server.outbox.rules import AUTOMATIC_APPROVAL, RULE_PREFIX, AutomaticApproval
from workmate_server.outbox.webhooks import WebhookCarrier
from workmate_server.ports import (
    BlobStore,
    BlobStoreUnavailableError,
    Clock,
    Entropy,
    Hooks,
)
from workmate_server.store import loads, outbox
from workmate_server.store.database import Database, DatabaseAwayError
from workmate_server.store.outbox import Subscription
from workmate_server.store.sqlite import SqliteDatabase
from workmate_server.telemetry.system import NoHooks, SystemClock, SystemEntropy

LOG = logging.getLogger(__name__)

RULES = (RULE_PREFIX + AUTOMATIC_APPROVAL,)
"""The server's own rules, each a subscription of every tenant."""


class StartError(Exception):
    """The process cannot do its work on what it found; `code` says why, `detail` what to do."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What every command works with."""

    locations: Locations
    settings: Settings
    keys: KeyFolder
    database: Database
    blobs: BlobStore
    clock: Clock
    entropy: Entropy
    hooks: Hooks
    run_blocking: WorkerThreads

    def tenant(self, tenant_id: str | None = None) -> "Tenant":
        """Return the tenant of this id, or the only one there is. Blocks.

        Raises StartError: `not_initialised`, `tenant_unknown` or `tenant_unclear`.
        """
        with self.database.read() as connection:
            heads = {head.tenant_id: head for head in loads.load_tenants(connection)}
        if not heads:
            raise not_initialised(self.locations.database)
        if tenant_id is None and len(heads) > 1:
            names = ", ".join(sorted(heads))
            raise StartError("tenant_unclear", f"say which tenant with --tenant: {names}")
        head = heads.get(tenant_id or next(iter(heads)))
        if head is None:
            raise StartError("tenant_unknown", f"there is no tenant {tenant_id}")
        return Tenant(head.tenant_id, head.lineage, head.name)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant, the present life of its log, and its name."""

    tenant_id: str
    lineage: str
    name: str


def not_initialised(database: str) -> StartError:
    """Return the error of a database that no tenant has been founded in."""
    return StartError("not_initialised", f"nothing was begun at {database}; run: init")


def open_database(url: str, keys: KeyFolder) -> Database:
    """Return the database that a URL names, which is made by the first write if it is not there.

    Raises ConfigError for a URL that names none.
    """
    file = database_file(url)
    if file is None:
        raise ConfigError(
            "database_unsupported", "this version keeps its records in sqlite:///FILE"
        )
    return SqliteDatabase(file, keys.database_key)


def require_database(url: str) -> None:
    """Raise StartError `not_initialised` for a SQLite file that is not there, or is empty."""
    file = database_file(url)
    if file is not None and not has_content(file):
        raise not_initialised(url)


def has_content(file: Path) -> bool:
    """Whether there is a database in the file: SQLite leaves an empty one when it made nothing."""
    return file.is_file() and file.stat().st_size > 0


@contextmanager
def open_parts(
    locations: Locations, settings: Settings | None = None, hooks: Hooks | None = None
) -> Iterator[Parts]:
    """Open what `init` made, and close it at the end of the block; the schema is not looked at.

    Raises ConfigError, KeyFolderError or StartError.
    """
    require_database(locations.database)
    keys = KeyFolder.open(locations.keys)
    with assembled(locations, keys, settings, hooks) as parts:
        yield parts


@contextmanager
def assembled(
    locations: Locations,
    keys: KeyFolder,
    settings: Settings | None = None,
    hooks: Hooks | None = None,
) -> Iterator[Parts]:
    """Put the parts of a process together around its keys. Raises ConfigError."""
    settings, hooks = settings or Settings(), hooks or NoHooks()
    blobs = open_blob_store(locations.blobs, settings, hooks)
    database = open_database(locations.database, keys)
    threads = WorkerThreads(settings.worker_threads)
    try:
        yield Parts(
            locations=locations,
            settings=settings,
            keys=keys,
            database=database,
            blobs=blobs,
            clock=SystemClock(),
            entropy=SystemEntropy(),
            hooks=hooks,
            run_blocking=threads,
        )
    finally:
        threads.close()
        database.close()


def require_whole_log(parts: Parts) -> None:
    """Raise StartError unless schema, tenants and the copied headers allow to commit.

    `not_initialised`, `log_behind_head` or `head_copy_damaged`; SchemaVersionError says what to run.
    """
    parts.database.require_current_schema()
    with parts.database.read() as connection:
        if not loads.load_tenants(connection):
            raise not_initialised(parts.locations.database)
    for disagreement in compare_heads(parts.database, parts.keys):
        if disagreement.fault == "log_behind_head":
            advice = "this database is older than what was signed; bring back the newer one"
        else:
            advice = f"if verify finds nothing else, remove it from {parts.keys.path / 'heads'}"
        raise StartError(disagreement.fault, f"{disagreement.detail}: {advice}")


@asynccontextmanager
async def running_engine(parts: Parts) -> AsyncIterator[Engine]:
    """Run an engine over the parts; at the end of the block it finishes what was queued."""
    engine = Engine(
        parts.database, parts.keys, parts.settings, parts.clock, parts.hooks, parts.run_blocking
    )
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


def make_services(parts: Parts, engine: Engine) -> Services:
    """Return what endpoints may call."""
    return Services(
        database=parts.database,
        engine=engine,
        blobs=parts.blobs,
        keys=parts.keys,
        settings=parts.settings,
        clock=parts.clock,
        entropy=parts.entropy,
        run_blocking=parts.run_blocking,
    )


def ensure_rules(parts: Parts) -> None:
    """Begin the server's own rules for every tenant that lacks one. Blocks."""
    with parts.database.write() as connection:
        for head in loads.load_tenants(connection):
            for rule in RULES:
                # Ids of subscriptions are unique across tenants: rows of the outbox begin with them.
                name = f"{rule}:{head.tenant_id}"
                if outbox.find_subscription(connection, head.tenant_id, name) is None:
                    outbox.add_subscription(
                        connection,
                        Subscription(
                            tenant_id=head.tenant_id,
                            subscription_id=name,
                            kind=rule,
                            target=rule,
                            sealed_secret=None,
                            active=True,
                        ),
                    )


@asynccontextmanager
async def running_relay(
    parts: Parts, engine: Engine, *, private_webhooks: bool
) -> AsyncIterator["asyncio.Task[None]"]:
    """Run the relay, with webhooks and rules, until the end of the block; then it finishes.

    The task that is given ends by itself only when the relay failed.
    """
    webhooks = WebhookCarrier(
        parts.settings,
        parts.keys.sealing_key,
        parts.clock,
        private_targets=private_webhooks,
    )
    approval = AutomaticApproval(
        database=parts.database,
        engine=engine,
        fingerprint_key=parts.keys.fingerprint_key,
        clock=parts.clock,
        run_blocking=parts.run_blocking,
    )
    relay = Relay(
        RelayParts(
            database=parts.database,
            settings=parts.settings,
            clock=parts.clock,
            entropy=parts.entropy,
            run_blocking=parts.run_blocking,
            owner=parts.entropy.uuid7(),
        ),
        {outbox.WEBHOOK: webhooks, RULE_PREFIX + AUTOMATIC_APPROVAL: approval},
    )
    stop = asyncio.Event()
    async with webhooks:
        working = asyncio.create_task(relay.run(stop), name="relay")
        try:
            yield working
        finally:
            stop.set()
            await asyncio.wait({working})


@asynccontextmanager
async def running_sweep(parts: Parts) -> AsyncIterator["asyncio.Task[None]"]:
    """Drop uploads that nobody goes on with, now and then, until the end of the block."""
    uploads = Uploads(
        database=parts.database,
        blobs=parts.blobs,
        settings=parts.settings,
        clock=parts.clock,
        entropy=parts.entropy,
        run_blocking=parts.run_blocking,
    )

    async def sweep() -> None:
        while True:
            try:
                await uploads.expire()
            except (DatabaseAwayError, BlobStoreUnavailableError):
                LOG.warning("old uploads could not be dropped", exc_info=True)
            await parts.clock.sleep(parts.settings.upload_sweep_seconds)

    working = asyncio.create_task(sweep(), name="sweep of old uploads")
    try:
        yield working
    finally:
        working.cancel()
        await asyncio.wait({working})
