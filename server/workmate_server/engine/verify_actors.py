"""Who could act and sign at the point of the log that a walk has reached.

Learned from the log's own events, in their order: roles, devices' keys, the log's signing keys.
"""

from msgspec import UNSET, Struct

from workmate_server.engine.workspace import SYSTEM_ID
from workmate_shared.kernel.command import Event
from workmate_shared.kernel.table import Role
from workmate_shared.principals import events as e
from workmate_shared.principals.commands import DeviceKey, LogKey


class _Device(Struct):
    public_key: bytes
    revoked: bool = False


class Actors:
    """The principals of one tenant as far as they matter to whoever checks signatures and roles."""

    def __init__(self) -> None:
        self._roles: dict[str, frozenset[Role]] = {}
        self._inactive: set[str] = set()
        self._devices: dict[tuple[str, str], _Device] = {}
        self._doubted: set[str] = set()
        self._all_doubted = False
        self.log_keys: set[str] = set()

    def doubt(self, owner: str | None = None) -> None:
        """Take note that an event of this aggregate, or of any, could not be read.

        What is not known any more is not held against anybody: the gap itself has been reported.
        """
        if owner is None:
            self._all_doubted = True
        else:
            self._doubted.add(owner)

    def doubts(self, owner: str) -> bool:
        """Whether not everything is known of an aggregate."""
        return self._all_doubted or owner in self._doubted

    def learn(self, event: Event) -> None:
        """Take over what an event says of its principal."""
        owner = event.aggregate_id
        match event:
            case e.PrincipalCreated():
                self._roles[owner] = frozenset(event.roles)
            case e.PrincipalChanged() if event.roles is not UNSET:
                self._roles[owner] = frozenset(event.roles)
            case e.PrincipalDeactivated():
                self._inactive.add(owner)
            case e.CredentialAdded():
                self._learn_key(owner, event)
            case e.CredentialRevoked():
                self.log_keys.discard(event.credential_id)
                device = self._devices.get((owner, event.credential_id))
                if device is not None:
                    device.revoked = True
            case _:
                pass

    def _learn_key(self, owner: str, event: e.CredentialAdded) -> None:
        credential = event.credential
        if isinstance(credential, DeviceKey):
            key = bytes.fromhex(credential.public_key)
            self._devices[owner, credential.credential_id] = _Device(key)
        elif isinstance(credential, LogKey) and owner == SYSTEM_ID:
            self.log_keys.add(credential.credential_id)

    def device_key(self, owner: str, device_id: str) -> bytes | None:
        """Return the public key of a principal's device, also of a revoked one, or None."""
        device = self._devices.get((owner, device_id))
        return device.public_key if device is not None else None

    def why_not(self, event: Event) -> str | None:
        """Return why its actor could not do this at this point, or None."""
        actor = event.actor
        if self.doubts(actor.id):
            return None
        if actor.id == SYSTEM_ID:
            return None if actor.role is Role.SYSTEM else f"the system is no {actor.role}"
        if actor.id in self._inactive:
            return f"{actor.id} is deactivated"
        if actor.role not in self._roles.get(actor.id, frozenset()):
            return f"{actor.id} is no {actor.role}"
        device = self._devices.get((actor.id, actor.device_id or ""))
        if device is not None and device.revoked:
            return f"device {actor.device_id} is revoked"
        return None
