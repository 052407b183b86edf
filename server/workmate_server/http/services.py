"""Everything an endpoint may call, put together by whoever starts the server.

One frozen value under one key of the application; nothing in `http` builds a service itself.
"""

from dataclasses import dataclass

from aiohttp import web

from workmate_server.config import Settings
from workmate_server.engine.blocking import RunBlocking
from workmate_server.engine.engine import Engine
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.ports import BlobStore, Clock, Entropy
from workmate_server.store.database import Database
from workmate_shared.kernel.instants import format_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of one server process."""

    database: Database
    engine: Engine
    blobs: BlobStore
    keys: KeyFolder
    settings: Settings
    clock: Clock
    entropy: Entropy
    run_blocking: RunBlocking

    def now(self) -> str:
        """Return the present moment as RFC 3339 text in UTC."""
        return format_instant(self.clock.now())


SERVICES = web.AppKey("services", Services)
"""Where the application keeps its services."""


def services_of(request: web.Request) -> Services:
    """Return the services of the application that a request came to."""
    return request.config_dict[SERVICES]
