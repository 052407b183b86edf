"""Listen on an address: plain HTTP, because TLS ends in front of this process.

Stopping takes no new connection, lets requests under way end within their time, then cuts them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from workmate_server.http.app import SERVER_OPTIONS


@asynccontextmanager
async def listening(
    application: web.Application, host: str, port: int, grace_seconds: float
) -> AsyncIterator[str]:
    """Serve an application until the end of the block; gives its URL, with the port that it got.

    Port 0 asks for any free one. Raises OSError for an address that cannot be listened on.
    """
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=grace_seconds,
        auto_decompress=SERVER_OPTIONS["auto_decompress"],
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound = runner.addresses[0][1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound}"
    finally:
        await runner.cleanup()
