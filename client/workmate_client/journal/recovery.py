"""Opening a journal: checked, and where it is damaged put aside and rebuilt, which is told.

A new file is filled with every row that can still be read from the old one and with what the unsent
log holds, and takes the old one's name at once. Files in the evidence folder that no row names are
listed again. There is never a silent new empty store.
"""

from collections.abc import Iterator

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.exc import DBAPIError
from sqlcipher3 import dbapi2

from workmate_client.journal.database import Database
from workmate_client.journal.files import Hook
from workmate_client.journal.found import list_found, mark_missing
from workmate_client.journal.log_match import complete_log, take_from_log
from workmate_client.journal.profile_rows import begin_profile, insert_notice
from workmate_client.journal.sealed import SealedFolder
from workmate_client.journal.store_errors import StoreDamagedError, StoreError
from workmate_client.journal.tables import JOURNAL_LAYOUT, PROFILE
from workmate_client.journal.unsent import UnsentLog
from workmate_client.ports import Files, Random

ASIDE_SUFFIX = ".damaged"


class StoreKeyError(StoreError):
    """Neither database nor unsent log opens under this key: it is another profile's; all stays."""

    code = "store_key_wrong"


class Opening(Struct, frozen=True):
    """Everything that opening a journal works on. The database's lock is held throughout."""

    database: Database
    unsent: UnsentLog
    sealed: SealedFolder
    files: Files
    random: Random
    hook: Hook
    now: str

    def open(self) -> None:
        """Bring the journal into a whole state. Raises StoreError, StorageError."""
        reason = self._fault()
        if reason is not None:
            self._rebuild(reason)
        with self.database.write_locked() as connection:
            taken = take_from_log(connection, self.unsent, self.now)
            if taken and reason is None:
                detail = f"{taken} acts were still being saved when the program ended"
                insert_notice(connection, self.now, "acts_recovered", detail)
            list_found(connection, self.sealed, self.now)
            mark_missing(connection, self.sealed, self.now)
            complete_log(connection, self.unsent)
            self._reach("recover.matched")
        self._reach("recover.done")
        self.sealed.remove_unfinished()

    def _fault(self) -> str | None:
        """Return what is wrong with the file, or None."""
        if not self.database.exists():
            return "is missing"
        try:
            self.database.check()
        except StoreDamagedError as error:
            return error.detail
        return None

    def _rebuild(self, reason: str) -> None:
        contents = self.unsent.read_all()
        if self.database.exists():
            if not contents.records and not contents.is_whole:
                raise StoreKeyError(f"{self.database.path.name} is sealed under another key")
            name = f"{self.database.path.name}.{self.random.uuid7()}{ASIDE_SUFFIX}"
            self.database.put_aside(name)
            self._reach("recover.aside")
        aside = self._newest_aside()
        traces = contents.records or self.sealed.inventory(()).unlisted or aside

        def fill(connection: sa.Connection) -> None:
            begin_profile(connection)
            if aside is not None:
                _salvage(connection, aside)
            if traces:
                kept = f"; it is kept as {aside.path.name}" if aside else ""
                insert_notice(connection, self.now, "journal_rebuilt", f"{reason}{kept}")
            # With the salvaged rows at once: a rebuilt journal never stands without its copies.
            take_from_log(connection, self.unsent, self.now, rebuilt=True)

        self.database.build(fill)
        if aside is not None:
            aside.close()
        self._reach("recover.built")

    def _newest_aside(self) -> Database | None:
        """Return the file that was put aside last: also by a process that died right after it."""
        path = self.database.path
        names = [
            name
            for name in self.files.names(path.parent)
            if name.startswith(f"{path.name}.") and name.endswith(ASIDE_SUFFIX)
        ]
        return self.database.sibling(max(names)) if names else None

    def _reach(self, point: str) -> None:
        self.hook(f"journal.{point}", self.database.path)


def _salvage(connection: sa.Connection, aside: Database) -> None:
    """Copy every row that can be read from a damaged file."""
    for table in JOURNAL_LAYOUT.metadata.sorted_tables:
        if table is PROFILE:
            connection.execute(sa.delete(PROFILE))
        for row in _readable_rows(aside, table):
            try:
                with connection.begin_nested():
                    connection.execute(sa.insert(table).values(**row))
            except DBAPIError:
                # Read from both ends, or an outcome whose command is lost.
                continue
        if table is PROFILE and connection.execute(sa.select(PROFILE.c.id)).first() is None:
            begin_profile(connection)


def _readable_rows(aside: Database, table: sa.Table) -> Iterator[dict[str, object]]:
    """Return the rows before the first damage and those after the last."""
    for direction in ("ASC", "DESC"):
        try:
            with aside.connected() as connection:
                statement = sa.select(table).order_by(sa.text(f"rowid {direction}"))
                for row in connection.execute(statement).mappings():
                    yield dict(row)
                return
        except (StoreError, DBAPIError, dbapi2.Error):
            # A connection that has met damage reads nothing any more.
            aside.close()
