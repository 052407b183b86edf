"""Tell the story as it happens: one line for each thing that somebody did or that went wrong."""

import json
import sys
from collections.abc import Callable

from workmate_client.service.wording import visible


class Timeline:
    """Prints lines for people, or JSON lines for programs. `seconds` gives the time since the start."""

    def __init__(self, seconds: Callable[[], float], *, as_json: bool) -> None:
        self._seconds = seconds
        self._as_json = as_json

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        if self._as_json:
            self._print({"chapter": title})
        else:
            self._write(f"\n{title}\n")

    def say(self, who: str, what: str) -> None:
        """Tell what somebody did or saw."""
        if self._as_json:
            self._print({"seconds": round(self._seconds(), 2), "who": who, "what": what})
        else:
            self._write(f"  {self._seconds():6.1f} s  {who:<12} {visible(what)}\n")

    def _print(self, value: dict[str, object]) -> None:
        self._write(json.dumps(value, ensure_ascii=False) + "\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
