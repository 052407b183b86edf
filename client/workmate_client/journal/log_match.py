"""Database and unsent log, brought to agree: what one of them lost, the other still has.

A process that died between the two leaves an act in the log alone: it is whole, so it is taken, with
all that belonged to it. All of this runs under the database's lock, so no act is in the making
meanwhile.
"""

import msgspec
import sqlalchemy as sa

from workmate_client.journal.draft_rows import delete_draft
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
    ActRecord,
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
    records = [record for record in map(decode_record, contents.records) if record is not None]
    return records, contents.is_whole


def take_from_log(connection: sa.Connection, unsent: UnsentLog, now: str) -> int:
    """Add what only the log has: acts, and a profile where there is none.

    Returns the number of commands that were added.
    """
    records, whole = read_log(unsent)
    if not whole:
        insert_notice(connection, now, "unsent_log_damaged", "a part of the unsent log is damaged")
    states = [record for record in records if isinstance(record, StateRecord)]
    highest = connection.execute(sa.select(sa.func.max(QUEUED_COMMAND.c.device_seq))).scalar()
    for device_seq in (highest or 0, *(state.last_device_seq for state in states)):
        set_device_seq(connection, device_seq)
    profiles = [state.profile for state in states if state.profile is not None]
    if profiles and read_profile(connection) is None:
        write_profile(connection, profiles[-1])
    acts = [record for record in records if isinstance(record, ActRecord)]
    return sum(_take_act(connection, act) for act in acts)


def _take_act(connection: sa.Connection, act: ActRecord) -> int:
    """Add the commands of an act that the database lacks; returns how many."""
    names = [command.command_id for command in act.commands]
    own = QUEUED_COMMAND.c.command_id.in_(names)
    known = set(connection.execute(sa.select(QUEUED_COMMAND.c.command_id).where(own)).scalars())
    missing = [command for command in act.commands if command.command_id not in known]
    for command in missing:
        orders = set(connection.execute(sa.select(QUEUED_COMMAND.c.local_order)).scalars())
        order = command.local_order if command.local_order not in orders else max(orders) + 1
        insert_command(connection, msgspec.structs.replace(command, local_order=order))
        set_device_seq(connection, command.device_seq)
    if missing and act.finishes is not None:
        delete_draft(connection, *act.finishes)
    return len(missing)


def complete_log(connection: sa.Connection, unsent: UnsentLog) -> int:
    """Append every pending command, and the profile, that the log lacks. Returns how many."""
    records, whole = read_log(unsent)
    if not whole:
        # Puts the damaged file aside, so that nobody reads over the same damage for ever.
        unsent.rewrite(lambda _: True)
    acts = [record for record in records if isinstance(record, ActRecord)]
    logged = {command.command_id for act in acts for command in act.commands}
    statement = select_commands(read_lineage(connection)).where(IS_PENDING)
    pending = [read_command(row) for row in connection.execute(statement).mappings()]
    missing: list[UnsentRecord] = [
        ActRecord(commands=(record_of(command),))
        for command in pending
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
        record = decode_record(data)
        if isinstance(record, StateRecord):
            return data == state
        return record is None or any(c.command_id not in answered for c in record.commands)

    unsent.rewrite(keep)


def drop_from_log(unsent: UnsentLog, act: bytes) -> None:
    """Take an act out of the log that was never saved."""
    unsent.rewrite(lambda data: data != act)


def current_state(connection: sa.Connection) -> StateRecord:
    """Return profile and highest `device_seq` as one transaction sees them."""
    seq = last_device_seq(connection)
    return StateRecord(profile=read_profile(connection), last_device_seq=seq)
