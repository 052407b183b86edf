"""`serve`: take requests, commit, and see to what must follow, until the process is told to stop.

SIGTERM and SIGINT are obeyed in order: no new connection, requests under way end, the batch that is
gathered is committed and answered, deliveries under way are finished. One line is written when the
address can be reached, and nothing else.
"""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

from workmate_server.bootstrap import (
    Parts,
    StartError,
    ensure_rules,
    make_services,
    open_parts,
    require_whole_log,
    running_engine,
    running_relay,
    running_sweep,
)
from workmate_server.commands.result import DONE, FOUND
from workmate_server.config import Locations
from workmate_server.http.app import build_app
from workmate_server.http.listen import listening

LOG = logging.getLogger(__name__)


def serve(
    locations: Locations,
    host: str,
    port: int,
    announce: Callable[[str], None],
    *,
    private_webhooks: bool,
) -> int:
    """Serve until told to stop; `announce` gets the URL. Return the exit code.

    Raises StartError, KeyFolderError, ConfigError or SchemaVersionError before anything listens.
    """
    with open_parts(locations) as parts:
        require_whole_log(parts)
        ensure_rules(parts)
        return asyncio.run(_serve(parts, host, port, announce, private_webhooks=private_webhooks))


async def _serve(
    parts: Parts, host: str, port: int, announce: Callable[[str], None], *, private_webhooks: bool
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(running_engine(parts))
        working = [
            await stack.enter_async_context(
                running_relay(parts, engine, private_webhooks=private_webhooks)
            ),
            await stack.enter_async_context(running_sweep(parts)),
        ]
        application = build_app(make_services(parts, engine))
        try:
            url = await stack.enter_async_context(
                listening(application, host, port, parts.settings.shutdown_grace_seconds)
            )
        except OSError as error:
            raise StartError("address_unavailable", f"{host} port {port}: {error}") from error
        # What start-up made stays; the collector need not walk it again for every batch.
        gc.collect()
        gc.freeze()
        announce(url)
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({stopping, *working}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
    failed = [task for task in working if task.done() and not task.cancelled() and task.exception()]
    for task in failed:
        LOG.error("%s ended early", task.get_name(), exc_info=task.exception())
    return FOUND if failed else DONE
