"""A principal as its events make it: the state, `evolve` and its part of the kernel."""

from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import Details, Refusal
from workmate_shared.kernel.instants import seconds_between
from workmate_shared.kernel.lifecycle import Context, Lifecycle, PrincipalFacts, stamp
from workmate_shared.kernel.table import Role, Row
from workmate_shared.principals import commands as c
from workmate_shared.principals import events as e
from workmate_shared.principals.enrolment import code_check
from workmate_shared.principals.table import ACTIVE, DEACTIVATED, PRINCIPAL_TABLE

_OFFICE = frozenset({Role.ADMIN, Role.AUDITOR, Role.SYSTEM})


class CredentialRecord(Struct, frozen=True, omit_defaults=True):
    """One credential and whether it still counts."""

    credential: c.Credential
    added_at: str
    revoked: bool = False
    wipe: bool = False


class Principal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of one principal; `personal` lists commitments, oldest first."""

    tenant_id: str
    principal_id: str
    fingerprint: str
    kind: c.Kind
    state: str
    version: int
    changed_version: int
    roles: tuple[Role, ...] = ()
    skills: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    away: bool = False
    personal: tuple[str, ...] = ()
    credentials: tuple[CredentialRecord, ...] = ()

    def credential(self, credential_id: str) -> CredentialRecord | None:
        """Return the record of a credential, or None."""
        return next(
            (r for r in self.credentials if r.credential.credential_id == credential_id), None
        )

    def facts(self) -> PrincipalFacts:
        """Return what decisions read of this principal."""
        return PrincipalFacts(
            active=self.state == ACTIVE,
            roles=frozenset(self.roles),
            skills=frozenset(self.skills),
        )


def evolve(state: Principal | None, event: Event) -> Principal:
    """Return the principal after `event`; total over every event ever written."""
    version = event.aggregate_version
    if isinstance(event, e.PrincipalCreated):
        return Principal(
            tenant_id=event.tenant_id,
            principal_id=event.aggregate_id,
            fingerprint=event.fingerprint,
            kind=event.kind,
            state=ACTIVE,
            version=version,
            changed_version=version,
            roles=event.roles,
            skills=event.skills,
            domains=event.domains,
            personal=event.commitments(),
        )
    if state is None:
        raise ValueError(f"{event.type} cannot begin a principal")
    return replace(state, version=version, changed_version=version, **_change(state, event))


def _change(state: Principal, event: Event) -> dict[str, Any]:
    match event:
        case e.PrincipalChanged():
            names = ("roles", "skills", "domains", "away")
            values = {name: getattr(event, name) for name in names}
            change = {name: value for name, value in values.items() if value is not UNSET}
            if event.personal is not None:
                change["personal"] = (*state.personal, event.personal)
            return change
        case e.PrincipalDeactivated():
            return {"state": DEACTIVATED}
        case e.CredentialAdded():
            record = CredentialRecord(event.credential, event.recorded_at)
            return {"credentials": (*state.credentials, record)}
        case e.CredentialRevoked():
            records = tuple(
                replace(record, revoked=True, wipe=event.wipe)
                if record.credential.credential_id == event.credential_id
                else record
                for record in state.credentials
            )
            return {"credentials": records}
    raise ValueError(f"{event.type} is no event of a principal")


def _sees(state: Principal, command: Command, facts: PrincipalFacts) -> bool:
    if command.actor.id == state.principal_id:
        return True
    return command.actor.role in _OFFICE & facts.roles


def _been_there(state: Principal, command: Command, _row: Row) -> bool:
    if not isinstance(command, c.RevokeCredential):
        return False
    record = state.credential(command.credential_id)
    return record is not None and record.revoked and (record.wipe or not command.wipe)


def _authority(_state: Principal, _command: Command, _row: Row) -> Refusal | None:
    return None


def _guard(state: Principal | None, command: Command, context: Context) -> Refusal | None:
    if state is None:
        return None
    match command:
        case c.AddCredential():
            return _guard_credential(state, command)
        case c.RevokeCredential() if state.credential(command.credential_id) is None:
            return Refusal("credential_unknown", {"credential_id": command.credential_id})
        case c.Enrol():
            return _guard_enrolment(state, command, context)
        case _:
            return None


def _guard_credential(state: Principal, command: c.AddCredential) -> Refusal | None:
    credential = command.credential
    system_only = isinstance(credential, c.LogKey | c.DeviceKey)
    if system_only and command.actor.role is not Role.SYSTEM:
        facts = {"role": command.actor.role.value, "command": command.name}
        return Refusal("role_not_allowed", facts)
    if state.credential(credential.credential_id) is not None:
        return Refusal("credential_exists", {"credential_id": credential.credential_id})
    return None


def _guard_enrolment(state: Principal, command: c.Enrol, context: Context) -> Refusal | None:
    device_id = command.actor.device_id
    if device_id is None:
        return Refusal("enrolment_unknown")
    if state.credential(device_id) is not None:
        return Refusal("credential_exists", {"credential_id": device_id})
    usable = any(
        isinstance(record.credential, c.EnrolmentCode)
        and record.credential.code_check == code_check(command.command_id)
        and not record.revoked
        and seconds_between(context.now, record.credential.expires_at) > 0
        for record in state.credentials
    )
    return None if usable else Refusal("enrolment_unknown")


def _make_events(state: Principal | None, command: Command, context: Context) -> tuple[Event, ...]:
    fields = stamp(command, context, state.version if state else 0)
    fields["personal"] = command.personal
    match command:
        case c.CreatePrincipal():
            return (
                e.PrincipalCreated(
                    fingerprint=context.fingerprint,
                    kind=command.kind,
                    roles=command.roles,
                    skills=command.skills,
                    domains=command.domains,
                    **fields,
                ),
            )
        case c.ChangePrincipal():
            changes: dict[str, Any] = command.changes()
            return (e.PrincipalChanged(**changes, **fields),)
        case c.DeactivatePrincipal():
            return (e.PrincipalDeactivated(**fields),)
        case c.AddCredential():
            return (e.CredentialAdded(credential=command.credential, **fields),)
        case c.RevokeCredential():
            own: dict[str, Any] = {"credential_id": command.credential_id, "wipe": command.wipe}
            return (e.CredentialRevoked(**own, **fields),)
        case c.Enrol():
            key = c.DeviceKey(
                credential_id=command.actor.device_id or "", public_key=command.public_key
            )
            return (e.CredentialAdded(credential=key, **fields),)
    raise AssertionError(command.name)


def _salvage(
    _state: Principal, _command: Command, _context: Context, _code: str
) -> tuple[Event, ...]:
    return ()


def _exists_details(state: Principal, _command: Command) -> Details:
    return {"aggregate_id": state.principal_id, "version": state.version, "state": state.state}


PRINCIPAL_LIFECYCLE = Lifecycle(
    table=PRINCIPAL_TABLE,
    sees=_sees,
    been_there=_been_there,
    authority=_authority,
    guard=_guard,
    make_events=_make_events,
    salvage=_salvage,
    exists_code="principal_exists",
    exists_details=_exists_details,
)
"""The principal's part of the kernel."""
