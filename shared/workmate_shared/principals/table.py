"""The principal's transition table. Administration is commands of the same kernel."""

from workmate_shared.kernel.table import Repeat, Role, Row, Table

ACTIVE = "active"
DEACTIVATED = "deactivated"
STATES = (ACTIVE, DEACTIVATED)

_ADMINS = frozenset({Role.ADMIN, Role.SYSTEM})
_ACTIVE = frozenset({ACTIVE})

PRINCIPAL_TABLE = Table(
    aggregate="principal",
    states=STATES,
    rows=(
        Row(
            command="create_principal",
            event="principal.created",
            roles=_ADMINS,
            allowed_from=frozenset(),
            result=ACTIVE,
            creates=True,
            repeat=Repeat.SAME_CREATION,
            note="Other content under a known id: principal_exists.",
        ),
        Row(
            command="change_principal",
            event="principal.changed",
            roles=_ADMINS,
            allowed_from=_ACTIVE,
            expects_version=False,
        ),
        Row(
            command="deactivate_principal",
            event="principal.deactivated",
            roles=_ADMINS,
            allowed_from=_ACTIVE,
            result=DEACTIVATED,
            expects_version=False,
            note="What its devices still send is decided, ends rejected and is handed over.",
        ),
        Row(
            command="add_credential",
            event="credential.added",
            roles=_ADMINS,
            allowed_from=_ACTIVE,
            expects_version=False,
            note="The log's signing keys belong to the system alone.",
        ),
        Row(
            command="revoke_credential",
            event="credential.revoked",
            roles=_ADMINS,
            allowed_from=frozenset(STATES),
            expects_version=False,
            repeat=Repeat.SAME_REVOCATION,
            note="An unknown one: credential_unknown.",
        ),
        Row(
            command="enrol",
            event="credential.added",
            roles=frozenset({Role.WORKER}),
            allowed_from=_ACTIVE,
            expects_version=False,
            note="The key is the hash of the one-time code; an unusable code: enrolment_unknown.",
        ),
    ),
)
"""Every command of a principal."""
