"""The commands of a principal and the credentials that they add.

A credential here is public: a public key, or the hash of a secret that was shown once.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from workmate_shared.kernel.command import Command
from workmate_shared.kernel.ids import HashHex, Identifier
from workmate_shared.kernel.instants import Instant, check_instant
from workmate_shared.kernel.table import Role

PublicKeyHex = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
"""A raw Ed25519 public key (RFC 8032) of 32 bytes, in lower-case hex."""

Kind = Literal["person", "service"]
Roles = Annotated[tuple[Role, ...], Meta(max_length=10)]
Names = Annotated[
    tuple[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.-]*$(?!\n)", max_length=64)], ...],
    Meta(max_length=100),
]


class PrincipalPersonal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name that people know the principal by."""

    display_name: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]


class _Credential(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    credential_id: Identifier


class DeviceKey(_Credential, frozen=True, tag="device", kw_only=True):
    """The key that one device signs with; the credential's id is the device's id."""

    public_key: PublicKeyHex


class AccessToken(_Credential, frozen=True, tag="token", kw_only=True):
    """The hash of a bearer token, the roles that it may use, and until when."""

    token_hash: HashHex
    roles: Roles
    expires_at: Instant | None = None

    def __post_init__(self) -> None:
        """Refuse an instant that no calendar has."""
        check_instant(self.expires_at)


class EnrolmentCode(_Credential, frozen=True, tag="enrolment_code", kw_only=True):
    """What a one-time code is known by (`enrolment.code_check`), usable until it expires."""

    code_check: HashHex
    expires_at: Instant

    def __post_init__(self) -> None:
        """Refuse an instant that no calendar has."""
        check_instant(self.expires_at)


class LogKey(_Credential, frozen=True, tag="log_key", kw_only=True):
    """A key that signs the log's batch headers; the credential's id is the key's id."""

    public_key: PublicKeyHex


Credential = DeviceKey | AccessToken | EnrolmentCode | LogKey


class CreatePrincipal(Command, frozen=True, tag="create_principal", kw_only=True):
    """Create a person or a service; the display name is personal."""

    kind: Kind
    roles: Roles = ()
    skills: Names = ()
    domains: Names = ()


class ChangePrincipal(Command, frozen=True, tag="change_principal", kw_only=True):
    """Change what is present; lists are replaced whole."""

    roles: Roles | UnsetType = UNSET
    skills: Names | UnsetType = UNSET
    domains: Names | UnsetType = UNSET
    away: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse a change that changes nothing."""
        super().__post_init__()
        if self.personal is None and not self.changes():
            raise ValueError("change_principal needs something to change")

    def changes(self) -> dict[str, object]:
        """Return the public fields that are present, by name."""
        fields = {name: getattr(self, name) for name in ("roles", "skills", "domains", "away")}
        return {name: value for name, value in fields.items() if value is not UNSET}


class DeactivatePrincipal(Command, frozen=True, tag="deactivate_principal", kw_only=True):
    """The principal may no longer act."""


class AddCredential(Command, frozen=True, tag="add_credential", kw_only=True):
    """Add a token, an enrolment code or a key."""

    credential: Credential


class RevokeCredential(Command, frozen=True, tag="revoke_credential", kw_only=True):
    """End a credential; `wipe` asks a device to remove its data after its queue was offered."""

    credential_id: Identifier
    wipe: bool = False


class Enrol(Command, frozen=True, tag="enrol", kw_only=True):
    """A device's first command: its public key and the server key that it pinned.

    `command_id` is the hash of the one-time code, the device's id that of the actor.
    """

    public_key: PublicKeyHex
    server_key_id: HashHex


PrincipalCommand = (
    CreatePrincipal
    | ChangePrincipal
    | DeactivatePrincipal
    | AddCredential
    | RevokeCredential
    | Enrol
)
"""Every command of a principal, told apart by `type`."""

PERSONAL_KINDS = {
    "create_principal": PrincipalPersonal,
    "change_principal": PrincipalPersonal,
}
