"""A bare aiohttp server in a process of its own that gives back every body: what HTTP alone costs."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web


@contextmanager
def echoing() -> Iterator[str]:
    """Run the server until the end of the block; gives its URL."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


async def _echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), content_type="application/json")


async def _serve() -> None:
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_post("/v1/sync", _echo)
    runner = web.AppRunner(application, access_log=None, auto_decompress=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(json.dumps(f"http://127.0.0.1:{runner.addresses[0][1]}"), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
