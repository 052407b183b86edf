"""Parameters of lists, read strictly: an unknown or doubled one is refused, never passed over.

A filter that is silently ignored shows too much and looks right.
"""

from collections.abc import Collection

from aiohttp import web

from workmate_server.config import Settings
from workmate_server.http.problems import ProblemError
from workmate_server.store.pages import Page
from workmate_shared.kernel.instants import format_instant, parse_instant

PAGING = ("limit", "cursor")

_NUMBER_DIGITS_MAX = 15
_TEXT_CHARACTERS_MAX = 500


class Parameters:
    """The parameters of one request; `repeatable` ones may come several times."""

    def __init__(
        self, request: web.Request, names: Collection[str], repeatable: Collection[str] = ()
    ) -> None:
        self._given = request.query
        for name in set(self._given):
            if name not in names and name not in repeatable:
                raise _invalid(name, "There is no such parameter.")
            if name not in repeatable and len(self._given.getall(name)) > 1:
                raise _invalid(name, "It may come only once.")

    def text(self, name: str) -> str | None:
        """Return a parameter, or None where it is left out."""
        value = self._given.get(name)
        if value is not None and (not value or len(value) > _TEXT_CHARACTERS_MAX):
            raise _invalid(name, f"It has 1 to {_TEXT_CHARACTERS_MAX} characters.")
        return value

    def chosen(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of the choices."""
        value = self.text(name) or default
        if value not in choices:
            raise _invalid(name, f"It is one of {', '.join(choices)}.")
        return value

    def several(self, name: str, choices: Collection[str]) -> tuple[str, ...]:
        """Return all values of a repeatable parameter, each one of the choices."""
        values: list[str] = self._given.getall(name, [])
        if not set(values) <= set(choices):
            raise _invalid(name, f"It is one of {', '.join(choices)}.")
        return tuple(values)

    def number(self, name: str) -> int | None:
        """Return a whole number that is not negative, or None."""
        value = self.text(name)
        if value is None:
            return None
        if not value.isascii() or not value.isdigit() or len(value) > _NUMBER_DIGITS_MAX:
            raise _invalid(name, "It is a whole number.")
        return int(value)

    def moment(self, name: str) -> str | None:
        """Return an RFC 3339 moment as UTC text with milliseconds, or None."""
        value = self.text(name)
        if value is None:
            return None
        try:
            return format_instant(parse_instant(value))
        except (ValueError, OverflowError) as error:
            raise _invalid(name, "It is a date and time with an offset (RFC 3339).") from error

    def page(self, settings: Settings) -> Page:
        """Return how much is asked for; raises ProblemError beyond the most that there is."""
        limit = self.number("limit")
        if limit is not None and not 1 <= limit <= settings.list_page_max:
            raise ProblemError(
                "invalid_request",
                f"It is 1 to {settings.list_page_max}.",
                path="limit",
                limit=settings.list_page_max,
            )
        items = settings.list_page_default if limit is None else limit
        return Page(items, settings.list_page_bytes_max)


def _invalid(name: str, detail: str) -> ProblemError:
    return ProblemError("invalid_request", detail, path=name[:_TEXT_CHARACTERS_MAX])
