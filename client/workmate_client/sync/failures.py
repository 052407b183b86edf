"""How talking to the server can fail. Each of these leaves what was sent with an unknown outcome.

Nothing here ever consumes a command: whatever the status, the same bytes may be sent again.
"""

from workmate_client.errors import DeviceError


class TransportError(DeviceError):
    """No proven answer came. `status` is the HTTP status, if there was one.

    `retry_after_seconds` is what the answer asked for (RFC 9110, section 10.2.3), if it did.
    """

    code = "transport_failed"
    status: int | None = None
    retry_after_seconds: float | None = None


class InsecureServerError(TransportError):
    """The server's address would send everything in the clear."""

    code = "server_insecure"


class UnreachableError(TransportError):
    """No connection came about: no network, no such name, refused, or a certificate that fails."""

    code = "server_unreachable"


class StalledError(TransportError):
    """The connection was there and nothing moved on it for too long."""

    code = "stalled"


class CutError(TransportError):
    """The connection broke before the whole answer was there."""

    code = "connection_cut"


class UnreadableAnswerError(TransportError):
    """An answer that is not our server's: a portal's or proxy's page, truncated, too large."""

    code = "answer_unreadable"

    def __init__(
        self, detail: str, status: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class RefusedError(TransportError):
    """Our server's problem document (RFC 9457); `code` is its code, of the catalogue."""

    status: int

    def __init__(
        self, code: str, status: int, detail: str, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status
        self.retry_after_seconds = retry_after_seconds
