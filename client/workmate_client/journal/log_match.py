"""Database and unsent log, brought to agree: what one of them lost, the other still has.

A process that died between the two leaves a command in the log alone: it is whole, so it is taken.
All of this runs under the database's lock, so no command is in the making meanwhile.
"""

import msgspec
import sqlalchemy as sa

from workmate_client.journal.profile_rows import (
    insert_notice,
    last_device_seq,
    read_lineage,
    read_profile,
    set_device_seq,
    write_profile,
)
from workmate_client.journal.queue_rows import (
    IS_PENDING,
    insert_command,
    read_command,
    record_of,
    select_commands,
)
from workmate_client.journal.tables import QUEUED_COMMAND
from workmate_client.journal.unsent import UnsentLog
from workmate_client.journal.unsent_records import (
    CommandRecord,
    StateRecord,
    UnsentRecord,
    decode_record,
    encode_record,
)


def read_log(unsent: UnsentLog) -> tuple[list[UnsentRecord], bool]:
    """Return the records of the log in their order, and whether none of it is damaged.

    A record of a kind that a newer program wrote is passed over, and stays where it is.
    """
    contents = unsent.read_all()
    records = [record for record in map(_decoded, contents.records) if record is not None]
    return records, contents.is_whole


def take_from_log(connection: sa.Connection, unsent: UnsentLog, now: str) -> int:
    """Add what only the log has: commands, and a profile where there is none.

    Returns the number of commands.
    """
    records, whole = read_log(unsent)
    if not whole:
        insert_notice(connection, now, "unsent_log_damaged", "a part of the unsent log is damaged")
    states = [record for record in records if isinstance(record, StateRecord)]
    rows = connection.execute(sa.select(sa.func.max(QUEUED_COMMAND.c.device_seq))).scalar()
    for device_seq in (rows or 0, *(state.last_device_seq for state in states)):
        set_device_seq(connection, device_seq)
    profiles = [state.profile for state in states if state.profile is not None]
    if profiles and read_profile(connection) is None:
        write_profile(connection, profiles[-1])
    known = set(connection.execute(sa.select(QUEUED_COMMAND.c.command_id)).scalars())
    missing = [
        record
        for record in records
        if isinstance(record, CommandRecord) and record.command_id not in known
    ]
    orders = set(connection.execute(sa.select(QUEUED_COMMAND.c.local_order)).scalars())
    for record in missing:
        order = record.local_order if record.local_order not in orders else max(orders) + 1
        insert_command(connection, msgspec.structs.replace(record, local_order=order))
        set_device_seq(connection, record.device_seq)
        orders.add(order)
    return len(missing)


def complete_log(connection: sa.Connection, unsent: UnsentLog) -> int:
    """Append every pending command, and the profile, that the log lacks. Returns how many."""
    records, whole = read_log(unsent)
    if not whole:
        # Puts the damaged file aside, so that nobody reads over the same damage for ever.
        unsent.rewrite(lambda _: True)
    logged = {record.command_id for record in records if isinstance(record, CommandRecord)}
    statement = select_commands(read_lineage(connection)).where(IS_PENDING)
    pending = connection.execute(statement).mappings()
    missing: list[UnsentRecord] = [
        record_of(command)
        for command in map(read_command, pending)
        if command.command_id not in logged
    ]
    state = current_state(connection)
    stated = [record for record in records if isinstance(record, StateRecord)]
    if state.profile is not None and (not stated or stated[-1].profile is None):
        missing.append(state)
    unsent.extend([encode_record(record) for record in missing])
    return len(missing)


def trim_log(connection: sa.Connection, unsent: UnsentLog) -> None:
    """Drop from the log what is answered; the profile and the highest `device_seq` stay."""
    statement = select_commands(read_lineage(connection)).where(~IS_PENDING)
    answered = {row["command_id"] for row in connection.execute(statement).mappings()}
    state = encode_record(current_state(connection))
    unsent.append(state)

    def keep(data: bytes) -> bool:
        record = _decoded(data)
        if isinstance(record, StateRecord):
            return data == state
        return record is None or record.command_id not in answered

    unsent.rewrite(keep)


def drop_from_log(unsent: UnsentLog, command_ids: set[str]) -> None:
    """Take commands out of the log that were never saved."""

    def keep(data: bytes) -> bool:
        record = _decoded(data)
        return not isinstance(record, CommandRecord) or record.command_id not in command_ids

    unsent.rewrite(keep)


def current_state(connection: sa.Connection) -> StateRecord:
    """Return profile and highest `device_seq` as one transaction sees them."""
    seq = last_device_seq(connection)
    return StateRecord(profile=read_profile(connection), last_device_seq=seq)


def _decoded(data: bytes) -> UnsentRecord | None:
    try:
        return decode_record(data)
    except msgspec.DecodeError:
        return None
