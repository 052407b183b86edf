"""What the parts of the journal share: the database, the unsent log, the clock, the kill points.

A kill point is a name that the hook hears when it is passed; a test ends the process there.
"""

from workmate_client.config import Settings
from workmate_client.errors import DeviceError
from workmate_client.journal.database import Database
from workmate_client.journal.files import Hook
from workmate_client.journal.unsent import UnsentLog
from workmate_client.ports import Clock


class JournalError(DeviceError):
    """Something that the journal cannot do; each kind has a code of its own."""


class NotEnrolledError(JournalError):
    """There is no profile yet: nobody knows whose work this would be."""

    code = "not_enrolled"


class CommandUnknownError(JournalError):
    """No command with this id was issued here."""

    code = "command_unknown"


class JournalPart:
    """The base of each part; all parts of one journal share one database."""

    def __init__(
        self, database: Database, unsent: UnsentLog, clock: Clock, settings: Settings, hook: Hook
    ) -> None:
        self._database = database
        self._unsent = unsent
        self._clock = clock
        self._settings = settings
        self._hook = hook

    def _now(self) -> str:
        """Return this clock's time as an instant with offset."""
        return self._clock.now().isoformat(timespec="milliseconds")

    def _reach(self, point: str) -> None:
        self._hook(f"journal.{point}", self._database.path)
