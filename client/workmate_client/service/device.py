"""Everything that the functions of this package work on, put together once by `bootstrap`."""

from msgspec import Struct

from workmate_client.config import ProfilePaths, Settings
from workmate_client.errors import DeviceError
from workmate_client.journal.authoring import Author
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.profile_store import known
from workmate_client.journal.rows import Profile
from workmate_client.journal.sealed import SealedFolder
from workmate_client.journal.store import Journal
from workmate_client.ports import Clock, Files, Random
from workmate_client.replica.store import Replica


class ServiceError(DeviceError):
    """Something that cannot be done as it was asked for; `code` names why, and nothing changed."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class Device(Struct, frozen=True, kw_only=True):
    """One worker's profile, opened: what is kept, what was heard, who signs, and the machine."""

    paths: ProfilePaths
    settings: Settings
    keys: ProfileKeys
    files: Files
    clock: Clock
    random: Random
    journal: Journal
    replica: Replica
    sealed: SealedFolder
    author: Author

    def profile(self) -> Profile:
        """Return the profile. Raises NotEnrolledError."""
        return known(self.journal.profile())

    def now(self) -> str:
        """Return this clock's time as an instant with the offset of the worker's zone."""
        return self.author.now()

    def close(self) -> None:
        """Close the databases."""
        self.journal.close()
        self.replica.close()
