"""What the demo is handed by the program around it: how a laptop is opened and how it reaches a server.

The parts are put together where every other command's are; the demo only uses them.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from workmate_client.config import Settings
from workmate_client.service.device import Device
from workmate_client.sync.parts import SyncParts


class OpenProgram(Protocol):
    """A profile opened for one process."""

    @property
    def settings(self) -> Settings:
        """The limits of this machine."""

    def device(self) -> Device:
        """Open the profile's device; the same one each time. Raises DeviceError."""

    def new_device(self, mode: Literal["keyring", "vault", "auto"]) -> tuple[Device, Any]:
        """Open the device, with new keys where there are none. Raises DeviceError."""

    def close(self) -> None:
        """Close what was opened."""


class Kit(Struct, frozen=True, kw_only=True):
    """The functions that the demo is made with.

    `open_program(environment)` opens the profile that the environment names, `transport_to(url,
    settings)` the way to a server, `sync_parts(device, transport)` the sync engine's parts,
    `open_laptop(folder, passphrase)` a device as it lies in a folder.
    """

    open_program: Callable[[Mapping[str, str]], OpenProgram]
    transport_to: Callable[[str, Settings], AbstractAsyncContextManager[Any]]
    sync_parts: Callable[[Device, Any], SyncParts]
    open_laptop: Callable[[Path, str], Device]
