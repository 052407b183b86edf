"""Enrolment: whom a one-time code is for, and by which keys this server signs.

A code is known by what the log keeps of its hash. What a code's holder may learn before he enrols is what the device
shows him to make sure: the name of the worker, and the server's keys.
"""

import msgspec

from workmate_server.identity.authenticate import read_principal
from workmate_server.store import reads_identity, reads_log
from workmate_server.store.database import Connection
from workmate_shared.kernel.instants import seconds_between
from workmate_shared.principals.commands import Enrol
from workmate_shared.principals.enrolment import code_check
from workmate_shared.principals.table import ACTIVE
from workmate_shared.wire.messages import EnrolmentOffer


def read_offer(connection: Connection, code_hash: str, now: str) -> EnrolmentOffer | None:
    """Return what a code offers at the time `now`, or None for one that can enrol nobody."""
    row = reads_identity.find_holder(connection, "enrolment_code", code_check(code_hash))
    if row is None or row.revoked or seconds_between(now, row.expires_at) <= 0:
        return None
    principal = read_principal(row.snapshot)
    if principal.state != ACTIVE:
        return None
    disclosed = reads_log.read_disclosures(connection, row.tenant_id, principal.personal)
    names = [
        msgspec.json.decode(disclosed[commitment].value)["display_name"]
        for commitment in principal.personal
        if commitment in disclosed
    ]
    return EnrolmentOffer(
        tenant_id=row.tenant_id,
        principal_id=row.principal_id,
        lineage=row.lineage,
        display_name=names[-1] if names else None,
        server_keys=reads_identity.log_keys(connection, row.tenant_id),
        server_time=now,
    )


def knows_code(connection: Connection, enrolment: Enrol) -> bool:
    """Whether an enrolment names a code that was issued for its actor, usable or not any more.

    What names none is nobody's: deciding it would let strangers write into the log.
    """
    row = reads_identity.find_holder(connection, "enrolment_code", code_check(enrolment.command_id))
    return row is not None and (row.tenant_id, row.principal_id) == (
        enrolment.tenant_id,
        enrolment.actor.id,
    )
