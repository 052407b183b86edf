"""The root of the device's expected failures.

Each carries a stable `code`, by which the catalogue, the screens and the command line find the
sentence to show. Programs may rely on the code; the text may change.
"""


class DeviceError(Exception):
    """A failure that the device expects and has a way on for; `code` names it for ever."""

    code: str = "device_error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
