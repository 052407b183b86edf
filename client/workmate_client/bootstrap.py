"""The one place where a device is put together: from a profile's folder to what services work on.

Tests call the same functions with other parts. Nothing is made silently: keys are created only for
a folder that holds no work yet, and where they went is said.
"""

from collections.abc import Callable
from importlib.metadata import version

from keyring.backend import KeyringBackend
from msgspec import Struct

from workmate_client.config import ProfilePaths, Settings
from workmate_client.journal.authoring import Author
from workmate_client.journal.files import Hook, PosixFiles, no_hook
from workmate_client.journal.keyring_safe import system_keyring
from workmate_client.journal.keys import KeysMissingError, ProfileKeys
from workmate_client.journal.safes import SafeChoice, SafeMode, Safes
from workmate_client.journal.sealed import SealedFolder
from workmate_client.journal.store import Journal
from workmate_client.journal.vault_safe import PassphraseSource
from workmate_client.ports import Clock, Files, Random
from workmate_client.replica.store import Replica
from workmate_client.service.device import Device
from workmate_client.sync.parts import SyncParts
from workmate_client.sync.transport import HttpTransport, Transport
from workmate_client.system import SystemClock, SystemRandom


class Machine(Struct, frozen=True, kw_only=True):
    """What a device stands on: limits, time, randomness, files, keyring, and kill points for tests."""

    settings: Settings
    clock: Clock
    random: Random
    files: Files
    keyring_source: Callable[[], KeyringBackend] = system_keyring
    hook: Hook = no_hook


def this_machine(settings: Settings | None = None) -> Machine:
    """Return the machine that the program runs on."""
    clock = SystemClock()
    return Machine(
        settings=settings or Settings(),
        clock=clock,
        random=SystemRandom(),
        files=PosixFiles(clock=clock),
    )


def safes_of(machine: Machine, paths: ProfilePaths, passphrase_source: PassphraseSource) -> Safes:
    """Return the places where a profile's keys can lie."""
    return Safes(
        paths,
        machine.files,
        passphrase_source,
        random=machine.random,
        settings=machine.settings,
        keyring_source=machine.keyring_source,
    )


def make_keys(
    machine: Machine, paths: ProfilePaths, safes: Safes, mode: SafeMode = "auto"
) -> SafeChoice:
    """Make the keys of a new profile, and return where they were put and why.

    Raises KeysMissingError for a folder that holds work sealed under keys that are gone: new ones
    would open nothing of it. Raises KeySafeError, StorageError.
    """
    machine.files.make_folder(paths.folder, label="profile")
    for place in (paths.journal, paths.unsent, paths.evidence):
        if machine.files.state(place) is not None:
            raise KeysMissingError(f"{paths.folder} holds work, and the keys to it are gone")
    choice = safes.choose(mode)
    safes.create(choice, ProfileKeys.create(machine.random))
    return choice


def open_device(machine: Machine, paths: ProfilePaths, keys: ProfileKeys) -> Device:
    """Open a profile's stores under its keys. Raises StoreError, StorageError."""
    journal = Journal.open(
        paths,
        keys,
        files=machine.files,
        clock=machine.clock,
        random=machine.random,
        settings=machine.settings,
        hook=machine.hook,
    )
    replica = Replica.open(paths, keys, files=machine.files, settings=machine.settings)
    if replica.dropped is not None:
        journal.add_notice("replica_dropped", replica.dropped)
    elif replica.begun:
        profile = journal.profile()
        if profile is not None and profile.last_contact_at is not None:
            journal.add_notice("replica_missing", "")
    return Device(
        paths=paths,
        settings=machine.settings,
        keys=keys,
        files=machine.files,
        clock=machine.clock,
        random=machine.random,
        journal=journal,
        replica=replica,
        sealed=SealedFolder(
            machine.files,
            paths.evidence,
            keys.evidence_key,
            clock=machine.clock,
            random=machine.random,
            settings=machine.settings,
        ),
        author=Author(journal, keys, machine.clock, machine.random),
    )


def transport_to(server_url: str, settings: Settings) -> HttpTransport:
    """Return the way to a server. Raises InsecureServerError."""
    return HttpTransport(server_url, settings)


def sync_parts(device: Device, transport: Transport) -> SyncParts:
    """Return what the sync engine of a device is made of."""
    return SyncParts(
        journal=device.journal,
        replica=device.replica,
        folder=device.sealed,
        transport=transport,
        author=device.author,
        keys=device.keys,
        files=device.files,
        paths=device.paths,
        clock=device.clock,
        random=device.random,
        settings=device.settings,
        build=f"workmate {version('workmate')}",
    )
