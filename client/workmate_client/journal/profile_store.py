"""The part of the journal that knows whose device this is, and what the worker has to be told."""

from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from workmate_client.journal.log_match import complete_log, current_state
from workmate_client.journal.parts import JournalPart, NotEnrolledError
from workmate_client.journal.profile_rows import insert_notice, read_profile, write_profile
from workmate_client.journal.rows import Notice, Profile
from workmate_client.journal.tables import EVIDENCE_ITEM, NOTICE
from workmate_client.journal.unsent_records import encode_record
from workmate_shared.wire.dsse import Envelope

_IDENTITY = (
    "server_url",
    "tenant_id",
    "worker_id",
    "device_id",
    "lineage",
    "past_lineages",
    "pinned_keys",
    "display_name",
    "enrolled",
)
"""What must outlive a damaged database; the rest is heard again from the server."""


def known(profile: Profile | None) -> Profile:
    """Return the profile; raises NotEnrolledError where there is none."""
    if profile is None:
        raise NotEnrolledError("this device is not enrolled yet")
    return profile


class ProfileStore(JournalPart):
    """Profile and notices."""

    def profile(self) -> Profile | None:
        """Return the profile, or None on a device that never began to enrol."""
        with self._database.read() as connection:
            return read_profile(connection)

    def save_profile(self, profile: Profile) -> None:
        """Keep a profile, in the place of whatever was there. Raises StoreError, StorageError."""
        self._change_profile(lambda _: profile)

    def update_profile(self, **changes: Any) -> Profile:
        """Change fields of the profile and return it as it is then.

        With a new `lineage` everything that was answered in the old one is pending again, files as
        well as commands; what was recorded for the old one stays. Raises NotEnrolledError.
        """
        return self._change_profile(lambda old: msgspec.structs.replace(known(old), **changes))

    def update_newest_header(self, header: Envelope, batch: int) -> bool:
        """Keep a verified batch header of the present lineage if it is newer than the one held."""
        newer = False

        def change(old: Profile | None) -> Profile:
            nonlocal newer
            profile = known(old)
            newer = profile.newest_header is None or profile.newest_batch < batch
            if not newer:
                return profile
            return msgspec.structs.replace(profile, newest_header=header, newest_batch=batch)

        self._change_profile(change)
        return newer

    def _change_profile(self, change: Callable[[Profile | None], Profile]) -> Profile:
        with self._database.write() as connection:
            old = read_profile(connection)
            new = change(old)
            if old is not None and new.lineage != old.lineage:
                past = tuple(dict.fromkeys((*old.past_lineages, old.lineage)))
                new = msgspec.structs.replace(new, past_lineages=past)
            if new == old:
                return new
            write_profile(connection, new)
            if old is not None and new.lineage != old.lineage:
                _forget_uploads(connection)
                complete_log(connection, self._unsent)
            if old is None or any(getattr(new, name) != getattr(old, name) for name in _IDENTITY):
                self._reach("profile.written")
                self._unsent.append(encode_record(current_state(connection)))
                self._reach("profile.appended")
        self._reach("profile.committed")
        return new

    def notices(self) -> tuple[Notice, ...]:
        """Return what the worker has to be told and has not dismissed, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(NOTICE).order_by(NOTICE.c.notice_id))
            return tuple(Notice(*row) for row in rows)

    def add_notice(self, code: str, detail: str) -> None:
        """Keep something that the worker has to be told."""
        with self._database.write() as connection:
            insert_notice(connection, self._now(), code, detail)

    def dismiss_notice(self, notice_id: int) -> None:
        """Forget a notice that the worker has read."""
        with self._database.write() as connection:
            connection.execute(sa.delete(NOTICE).where(NOTICE.c.notice_id == notice_id))


def _forget_uploads(connection: sa.Connection) -> None:
    """A restored server may hold none of the files: each is offered to it again."""
    fresh = {"upload_url": None, "uploaded_bytes": 0, "upload_done_at": None, "verified_at": None}
    waiting = {"attempts": 0, "wait_code": None, "next_attempt_at": None}
    connection.execute(sa.update(EVIDENCE_ITEM).values(**fresh, **waiting))
