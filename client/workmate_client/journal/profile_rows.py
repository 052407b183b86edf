"""How profile, `device_seq` and notices lie in their tables, within a transaction."""

import msgspec
import sqlalchemy as sa

from workmate_client.journal.rows import Profile
from workmate_client.journal.tables import NOTICE, PROFILE

# Built once: building a statement costs more than running it.
_LAST_SEQ = sa.select(PROFILE.c.last_device_seq)
_RAISE_SEQ = (
    sa.update(PROFILE)
    .where(PROFILE.c.last_device_seq < sa.bindparam("given"))
    .values(last_device_seq=sa.bindparam("given"))
)


def begin_profile(connection: sa.Connection) -> None:
    """Put the one row into a new file: no profile yet, no number given out."""
    connection.execute(sa.insert(PROFILE).values(id=1, body=None, last_device_seq=0))


def read_profile(connection: sa.Connection) -> Profile | None:
    """Return the profile, or None."""
    body = connection.execute(sa.select(PROFILE.c.body)).scalar_one()
    return msgspec.json.decode(body, type=Profile) if body else None


def read_lineage(connection: sa.Connection) -> str:
    """Return the lineage in which this device lives now; empty before there is a profile."""
    profile = read_profile(connection)
    return profile.lineage if profile else ""


def write_profile(connection: sa.Connection, profile: Profile) -> None:
    """Put a profile in the place of the one there."""
    connection.execute(sa.update(PROFILE).values(body=msgspec.json.encode(profile).decode()))


def last_device_seq(connection: sa.Connection) -> int:
    """Return the highest `device_seq` ever given out."""
    return int(connection.execute(_LAST_SEQ).scalar_one())


def set_device_seq(connection: sa.Connection, device_seq: int) -> None:
    """Note that a number was given out; the highest one counts."""
    connection.execute(_RAISE_SEQ, {"given": device_seq})


def insert_notice(connection: sa.Connection, at: str, code: str, detail: str) -> None:
    """Add something that the worker has to be told, unless the very same is still to be read."""
    same = (NOTICE.c.code == code) & (NOTICE.c.detail == detail)
    if connection.execute(sa.select(NOTICE.c.notice_id).where(same)).first() is not None:
        return
    connection.execute(sa.insert(NOTICE).values(at=at, code=code, detail=detail))
