"""Database and unsent log, brought to agree: what one of them lost, the other still has.

A process that died between the two leaves an act in the log alone: it is whole, so it is taken, with
all that belonged to it. All of this runs under the database's lock, so no act is in the making
meanwhile.
"""

from collections.abc import Mapping, Sequence

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
from workmate_client.journal.rows import Draft
from workmate_client.journal.second_copies import (
    copies_in,
    missing_copies,
    outdated,
    take_copies,
)
from workmate_client.journal.seq_ranges import numbers_in, ranges_of
from workmate_client.journal.tables import QUEUED_COMMAND
from workmate_client.journal.unsent import UnsentLog
from workmate_client.journal.unsent_records import (
    ActRecord,
    DraftRecord,
    EvidenceRecord,
    StateRecord,
    UnsentRecord,
    decode_record,
    encode_record,
)

OUTDATED_LIMIT = 64
"""With this many copies that count no more the log is written anew when the journal is opened."""


def read_log(unsent: UnsentLog) -> tuple[list[UnsentRecord], bool]:
    """Return the records of the log in their order, and whether none of it is damaged.

    A record of a kind that a newer program wrote is passed over, and stays where it is.
    """
    contents = unsent.read_all()
    records = [record for record in map(decode_record, contents.records) if record is not None]
    return records, contents.is_whole


def take_from_log(
    connection: sa.Connection, unsent: UnsentLog, now: str, *, rebuilt: bool = False
) -> int:
    """Add what only the log has: acts, and a profile where there is none.

    A journal that was `rebuilt` also takes its drafts and evidence rows from the log. Returns the number of commands that were added.
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
    drafts = copies_in(records).drafts
    taken = sum(_take_act(connection, act, drafts) for act in acts)
    if rebuilt:
        take_copies(connection, records)
        _remember_answered(connection, states)
    return taken


def _remember_answered(connection: sa.Connection, states: Sequence[StateRecord]) -> None:
    """Note in the profile which numbers are not here because they were answered long ago."""
    profile = read_profile(connection)
    if profile is None or not states:
        return
    seqs = set(connection.execute(sa.select(QUEUED_COMMAND.c.device_seq)).scalars())
    known = numbers_in(states[-1].answered) | numbers_in(profile.answered_before)
    before = ranges_of(known - seqs)
    write_profile(connection, msgspec.structs.replace(profile, answered_before=before))


def _take_act(
    connection: sa.Connection, act: ActRecord, drafts: Mapping[tuple[str, str], Draft | None]
) -> int:
    """Add the commands of an act that the database lacks; returns how many.

    Its draft ends with it, unless one was begun after it.
    """
    names = [command.command_id for command in act.commands]
    own = QUEUED_COMMAND.c.command_id.in_(names)
    known = set(connection.execute(sa.select(QUEUED_COMMAND.c.command_id).where(own)).scalars())
    missing = [command for command in act.commands if command.command_id not in known]
    for command in missing:
        orders = set(connection.execute(sa.select(QUEUED_COMMAND.c.local_order)).scalars())
        order = command.local_order if command.local_order not in orders else max(orders) + 1
        insert_command(connection, msgspec.structs.replace(command, local_order=order))
        set_device_seq(connection, command.device_seq)
    if missing and act.finishes is not None and drafts.get(act.finishes) is None:
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
    missing += missing_copies(connection, records)
    unsent.extend([encode_record(record) for record in missing])
    _compact(connection, unsent)
    return len(missing)


def _compact(connection: sa.Connection, unsent: UnsentLog) -> None:
    """Drop copies that count no more, once there are many."""
    records, _ = read_log(unsent)
    dropped = outdated(connection, records)
    if len(dropped) >= OUTDATED_LIMIT:
        unsent.rewrite(lambda data: data not in dropped)


def trim_log(connection: sa.Connection, unsent: UnsentLog) -> None:
    """Drop from the log what is answered; the profile and the highest `device_seq` stay."""
    statement = select_commands(read_lineage(connection)).where(~IS_PENDING)
    answered = {row["command_id"] for row in connection.execute(statement).mappings()}
    state = encode_record(current_state(connection))
    unsent.append(state)
    dropped = outdated(connection, read_log(unsent)[0])

    def keep(data: bytes) -> bool:
        record = decode_record(data)
        if isinstance(record, DraftRecord | EvidenceRecord):
            return data not in dropped
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
    profile = read_profile(connection)
    before = numbers_in(profile.answered_before) if profile else frozenset()
    statement = select_commands(read_lineage(connection)).where(~IS_PENDING)
    rows = connection.execute(statement.with_only_columns(QUEUED_COMMAND.c.device_seq))
    answered = ranges_of(before.union(rows.scalars()))
    return StateRecord(profile=profile, last_device_seq=seq, answered=answered)
