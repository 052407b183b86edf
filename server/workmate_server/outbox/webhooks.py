"""Deliver events to webhooks over HTTP.

The address that is checked is the one that is connected to: the check stands where the socket is
made, after every name has been resolved, so that no answer of a name server and no spelling of an
address gets around it. Redirects are not followed and no proxy of the environment is used.
"""

import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from workmate_server.config import Settings
from workmate_server.outbox.addresses import is_public
from workmate_server.outbox.carriers import Attempt
from workmate_server.outbox.retries import read_retry_after
from workmate_server.outbox.signing import SecretError, cloud_event, headers_for, open_secret
from workmate_server.ports import Clock
from workmate_server.store.deliveries import Due
from workmate_server.store.outbox import Subscription

USER_AGENT = "workmate-server"

_GONE = 410
_KEPT_CHARACTERS = 500


class TargetRefusedError(OSError):
    """The target's address is not one that webhooks may be sent to."""


class WebhookCarrier:
    """The carrier for subscriptions of kind `webhook`; use it as an asynchronous context.

    `private_targets` lets an operator allow receivers in the own network and on the own host.
    """

    in_order = True

    def __init__(
        self,
        settings: Settings,
        sealing_key: bytes,
        clock: Clock,
        *,
        private_targets: bool = False,
    ) -> None:
        self._settings = settings
        self._sealing_key = sealing_key
        self._clock = clock
        self._private_targets = private_targets
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool of connections."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(socket_factory=self._make_socket),
            timeout=aiohttp.ClientTimeout(total=self._settings.webhook_timeout_seconds),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": USER_AGENT},
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def deliver(self, subscription: Subscription, due: Due) -> Attempt:
        """Post one event. Raises RuntimeError outside the context."""
        if self._session is None:
            raise RuntimeError("the webhook carrier is not open")
        body = cloud_event(due)
        try:
            secret = open_secret(subscription.sealed_secret or b"", self._sealing_key)
            headers = headers_for(secret, due.event_id, self._clock.now(), body)
            return await self._post(self._session, subscription.target, headers, body)
        except SecretError as error:
            return Attempt(delivered=False, error=str(error))
        except TimeoutError:
            return Attempt(delivered=False, error="the receiver took too long")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Attempt(delivered=False, error=_short(str(error) or type(error).__name__))

    async def _post(
        self,
        session: aiohttp.ClientSession,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Attempt:
        async with session.post(
            target, data=body, headers=headers, allow_redirects=False
        ) as response:
            answer = await self._read(response)
            status = response.status
            delivered = 200 <= status < 300  # noqa: PLR2004 - RFC 9110, section 15.3
            asked = response.headers.get("Retry-After")
            return Attempt(
                delivered=delivered,
                status_code=status,
                response=answer,
                error=None if delivered else f"the receiver answered {status}",
                retry_after_seconds=read_retry_after(asked, self._clock.now()),
                gone=status == _GONE,
            )

    async def _read(self, response: aiohttp.ClientResponse) -> str:
        """Read a bounded part of the answer, so that the connection can be used again."""
        read, kept = 0, b""
        async for chunk in response.content.iter_any():
            read += len(chunk)
            if len(kept) < _KEPT_CHARACTERS:
                kept += chunk[:_KEPT_CHARACTERS]
            if read > self._settings.webhook_answer_bytes_max:
                response.close()
                break
        return _short(kept.decode(errors="replace"))

    def _make_socket(self, address: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
        family, kind, protocol, _, place = address
        if not self._private_targets and not is_public(str(place[0])):
            raise TargetRefusedError(f"{place[0]} is not a public address")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


def _short(text: str) -> str:
    return text[:_KEPT_CHARACTERS].replace("\x00", "\ufffd")
