"""A stranger's program that gets the outbox: it checks signatures and writes down what it got.

Webhooks come signed by the Standard Webhooks scheme; the receiver computes the signature by itself
and refuses what does not verify. It answers its very first request with 503, as such programs do.
"""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Self

from aiohttp import web

SECRET_PREFIX = "whsec_"  # noqa: S105 - how a secret of the scheme begins


class Receiver:
    """A web server on loopback; `file` gets one JSON line for each event id it had not seen."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.refused = 0
        self.url = ""
        self._secret = b""
        self._seen: set[str] = set()
        self._calls = 0
        self._runner: web.AppRunner | None = None

    def trust(self, secret: str) -> None:
        """Take the secret that the server showed when the subscription was made."""
        self._secret = base64.b64decode(secret.removeprefix(SECRET_PREFIX))

    @property
    def distinct_events(self) -> int:
        """How many different events have arrived."""
        return len(self._seen)

    async def __aenter__(self) -> Self:
        """Begin to listen on a free port."""
        app = web.Application()
        app.router.add_post("/events", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/events"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self._calls += 1
        if self._calls == 1:
            return web.Response(status=503, headers={"Retry-After": "1"})
        event_id = request.headers.get("webhook-id", "")
        stamp = request.headers.get("webhook-timestamp", "")
        signed = f"{event_id}.{stamp}.".encode() + body
        digest = hmac.new(self._secret, signed, hashlib.sha256).digest()
        wanted = "v1," + base64.b64encode(digest).decode()
        given = request.headers.get("webhook-signature", "").split(" ")
        if not any(hmac.compare_digest(wanted, one) for one in given):
            self.refused += 1
            return web.Response(status=401)
        if event_id not in self._seen:
            self._seen.add(event_id)
            line = {"id": event_id, "type": json.loads(body).get("type")}
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        return web.Response(status=204)
