"""Times as job files write them, turned into instants with an offset (RFC 3339).

A local time that comes twice, when clocks go back, is taken as the first. One that does not come,
when clocks go forward, is refused: nobody can have meant it. Text that carries its own offset is
kept letter for letter.
"""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from workmate_server.imports.mapping import RFC3339, MappingError, Times
from workmate_server.imports.report import RowError
from workmate_shared.kernel.instants import parse_instant

EARLIEST_YEAR = 1970
LATEST_YEAR = 2200
"""Years before the first and after the last are placeholders, not times."""

_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)",
    re.ASCII,
)


class TimeReader:
    """Reads the cells of one mapping. Raises MappingError for a zone or format that is none."""

    def __init__(self, times: Times) -> None:
        self._formats = times.formats
        self._zone = _zone(times.zone)
        for pattern in times.formats:
            _check_format(pattern)

    def read(self, column: str, text: str) -> str:
        """Return the instant in a cell.

        Raises RowError: `time_invalid`, `time_nonexistent` or `time_out_of_range`.
        """
        for pattern in self._formats:
            found = self._try(column, text, pattern)
            if found is not None:
                return found
        raise RowError("time_invalid", f"{column}: {text[:60]!r} is no time of this file's formats")

    def later(self, instant: str, hours: int) -> str:
        """Return the instant so many hours later, in the zone of the mapping."""
        moment = parse_instant(instant).astimezone(UTC) + timedelta(hours=hours)
        return moment.astimezone(self._zone).isoformat()

    def _try(self, column: str, text: str, pattern: str) -> str | None:
        try:
            if pattern == RFC3339:
                moment, written = parse_instant(text), text
            else:
                moment = datetime.strptime(text, pattern)  # noqa: DTZ007 - the zone comes next
                if moment.tzinfo is None:
                    moment = self._localized(column, text, moment)
                written = moment.isoformat(timespec="auto")
        except OverflowError as error:
            detail = f"{column}: {text[:60]!r} lies at the end of the calendar"
            raise RowError("time_out_of_range", detail) from error
        except ValueError:
            return None
        if _INSTANT.fullmatch(written) is None:
            return None
        if not EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
            detail = f"{column}: {text[:60]!r} is not between {EARLIEST_YEAR} and {LATEST_YEAR}"
            raise RowError("time_out_of_range", detail)
        return written

    def _localized(self, column: str, text: str, local: datetime) -> datetime:
        moment = local.replace(tzinfo=self._zone, fold=0)
        back = moment.astimezone(UTC).astimezone(self._zone)
        if back.replace(tzinfo=None) != local:
            detail = f"{column}: {text[:60]!r} does not exist in {self._zone}: clocks went forward"
            raise RowError("time_nonexistent", detail)
        return moment


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise MappingError(f"no time zone is called {name!r}") from error


def _check_format(pattern: str) -> None:
    if pattern == RFC3339:
        return
    try:
        datetime.strptime("", pattern)  # noqa: DTZ007 - only the pattern is tried
    except ValueError as error:
        if "bad directive" in str(error) or "stray" in str(error):
            raise MappingError(f"{pattern!r} is no time format") from error
