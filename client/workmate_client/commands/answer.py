"""What a subcommand answers: a value for `--json`, the same in lines for people, an exit status."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from workmate_client.config import Settings
from workmate_client.errors import DeviceError
from workmate_client.journal.safes import SafeChoice, SafeMode
from workmate_client.service.device import Device
from workmate_client.service.faults import fault_of
from workmate_client.service.wording import visible

DONE = 0
REFUSED = 1
USAGE = 2


class Answer(Struct, frozen=True):
    """A value that is encoded as it is, and lines whose foreign text was made visible."""

    value: Any
    lines: tuple[str, ...] = ()
    status: int = DONE


class Session(Protocol):
    """What a subcommand may ask of the program around it."""

    @property
    def settings(self) -> Settings:
        """The limits of this machine."""
        ...

    def device(self) -> Device:
        """Open the profile's device; the same one each time. Raises DeviceError."""
        ...

    def new_device(self, mode: SafeMode) -> tuple[Device, SafeChoice | None]:
        """Open the device, with new keys where there are none; then also say where they went."""
        ...


Run = Callable[[Session, Any], Answer]
"""A subcommand: given the session and the parsed arguments, does it and returns the answer."""


def lines_of(rows: Sequence[Sequence[object]]) -> tuple[str, ...]:
    """Return rows as lines in columns; foreign text is made visible, None is a dash."""
    shown = [["-" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    if not shown:
        return ()
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return tuple(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    )


def paragraph(label: str, text: str | None) -> tuple[str, ...]:
    """Return a labelled text line by line, made visible; nothing for no text."""
    if not text:
        return ()
    return tuple(f"{label:<10}{visible(line)}" for line in text.splitlines())


def encoded(value: Any) -> str:
    """Return a value as one line of JSON."""
    return msgspec.json.encode(value).decode()


def refusal_value(error: DeviceError) -> dict[str, Any]:
    """Return what is known of a refusal: its code, its sentence, what is safe, what to do."""
    # A path in it may hold bytes that no JSON can carry.
    detail = error.detail.encode("utf-8", "backslashreplace").decode()
    value: dict[str, Any] = {"code": error.code, "detail": detail}
    fault = fault_of(error.code)
    if fault is not None:
        value |= {"title": fault.title, "safe": fault.safe, "todo": fault.todo}
    for name in ("details", "missing"):
        if getattr(error, name, None):
            value[name] = msgspec.to_builtins(getattr(error, name))
    return {"error": value}


def refusal_lines(error: DeviceError) -> tuple[str, ...]:
    """Return the same for people: code and sentence, then what can be done."""
    fault = fault_of(error.code)
    first = f"{error.code}: {visible(error.detail)}"
    return (first, f"{fault.title}. {fault.safe} {fault.todo}") if fault is not None else (first,)
