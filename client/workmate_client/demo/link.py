"""A bad network between a device and the server, on loopback.

It passes bytes through, and on demand loses one reply: the request arrives, the server does its
work and answers, and the device hears nothing.
"""

import asyncio
import contextlib
from typing import Self

PIECE_BYTES = 64 * 1024


class FlakyLink:
    """A TCP proxy in front of the server; `url` is what the device is told."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._armed: bytes | None = None
        self._listener: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self.lost_replies = 0

    @property
    def url(self) -> str:
        """The address of the link."""
        if self._listener is None:
            raise RuntimeError("the link is not open")
        port = self._listener.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def lose_next_reply_to(self, request_line: bytes) -> None:
        """Lose the reply to the next request that begins like this, e.g. `POST /v1/sync `."""
        self._armed = request_line

    async def __aenter__(self) -> Self:
        """Begin to listen on a free port."""
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cut every connection and stop."""
        if self._listener is not None:
            self._listener.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _connected(
        self, device: asyncio.StreamReader, to_device: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)
        server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        doomed = asyncio.Event()
        try:
            await asyncio.wait(
                {
                    asyncio.ensure_future(self._up(device, to_server, doomed)),
                    asyncio.ensure_future(self._down(server, to_device, doomed)),
                },
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for writer in (to_device, to_server):
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def _up(
        self, device: asyncio.StreamReader, to_server: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while piece := await device.read(PIECE_BYTES):
            if self._armed is not None and piece.startswith(self._armed):
                self._armed = None
                doomed.set()
            to_server.write(piece)
            await to_server.drain()

    async def _down(
        self, server: asyncio.StreamReader, to_device: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while piece := await server.read(PIECE_BYTES):
            if doomed.is_set():
                self.lost_replies += 1
                return
            to_device.write(piece)
            await to_device.drain()
