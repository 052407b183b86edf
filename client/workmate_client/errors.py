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


class NotUtf8Error(DeviceError):
    """Text from the command line or the environment that is not UTF-8; nothing was done."""

    code = "text_not_utf8"


def check_text(what: str, text: str) -> str:
    """Return text that can be stored and sent. Raises NotUtf8Error, which names `what` it was."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NotUtf8Error(f"{what} is not text in UTF-8") from error
    return text
