"""Instants are RFC 3339 strings with an offset, kept exactly as they were written.

Text is never re-rendered: what an actor signed or an office typed comes back letter for letter.
Arithmetic happens on the parsed value only.
"""

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

Instant = Annotated[
    str,
    Meta(
        pattern=(
            r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
            r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
            r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$(?!\n)"
        ),
        max_length=40,
        description="RFC 3339 date-time with offset",
    ),
]


def parse_instant(text: str) -> datetime:
    """Return the aware datetime that an RFC 3339 string names, cut to microseconds.

    Raises ValueError for a day that does not exist (31 February), text without an offset, or an
    instant that lies outside the years 1 to 9999 in UTC.
    """
    head, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("an instant needs an offset")
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the instant lies outside the calendar") from error
    return moment


def check_instant(text: str | None) -> None:
    """Raise ValueError unless `text` is None or an instant that exists in the calendar."""
    if text is None:
        return
    try:
        parse_instant(text)
    except ValueError as error:
        raise ValueError(f"{text} is no moment of the calendar") from error


def format_instant(moment: datetime) -> str:
    """Return an aware datetime as RFC 3339 in UTC with milliseconds, e.g. `…T09:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(earlier: str, later: str) -> float:
    """Return `later - earlier` in seconds; negative when they are the other way round."""
    return (parse_instant(later) - parse_instant(earlier)).total_seconds()
