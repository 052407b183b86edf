"""The events of a principal, under wire names that never change."""

from msgspec import UNSET, UnsetType

from workmate_shared.kernel.command import Event
from workmate_shared.kernel.ids import HashHex, Identifier
from workmate_shared.principals.commands import Credential, Kind, Names, Roles


class PrincipalCreated(Event, frozen=True, tag="principal.created", kw_only=True):
    """A person or a service became known."""

    fingerprint: HashHex
    kind: Kind
    roles: Roles = ()
    skills: Names = ()
    domains: Names = ()


class PrincipalChanged(Event, frozen=True, tag="principal.changed", kw_only=True):
    """What it may do or can do changed; only what changed is present."""

    roles: Roles | UnsetType = UNSET
    skills: Names | UnsetType = UNSET
    domains: Names | UnsetType = UNSET
    away: bool | UnsetType = UNSET


class PrincipalDeactivated(Event, frozen=True, tag="principal.deactivated", kw_only=True):
    """It may no longer act."""


class CredentialAdded(Event, frozen=True, tag="credential.added", kw_only=True):
    """It can show who it is in one more way."""

    credential: Credential


class CredentialRevoked(Event, frozen=True, tag="credential.revoked", kw_only=True):
    """It can no longer show who it is in this way."""

    credential_id: Identifier
    wipe: bool = False


PrincipalEvent = (
    PrincipalCreated | PrincipalChanged | PrincipalDeactivated | CredentialAdded | CredentialRevoked
)
"""Every event of a principal, told apart by `type`."""
