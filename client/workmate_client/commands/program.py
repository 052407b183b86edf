"""The program around a subcommand: which profile, whose passphrase, one device opened at most once."""

import getpass
import sys
from collections.abc import Callable, Mapping

from workmate_client.bootstrap import Machine, make_keys, open_device, safes_of
from workmate_client.config import ProfilePaths, Settings
from workmate_client.errors import DeviceError, check_text
from workmate_client.journal.safes import SafeChoice, SafeMode
from workmate_client.service.device import Device

PASSPHRASE_VARIABLE = "WORKMATE_PASSPHRASE"  # noqa: S105 - the name, not the passphrase
"""The environment variable that holds the vault's passphrase, where nobody can be asked."""


class PassphraseNeededError(DeviceError):
    """The keys lie in a vault, and there is neither a variable nor anybody to ask."""

    code = "passphrase_needed"


class PassphraseDiffersError(DeviceError):
    """A new passphrase was typed in two ways."""

    code = "passphrase_differs"


class Program:
    """Opens the profile in `paths` for one run of the command line."""

    def __init__(
        self,
        machine: Machine,
        paths: ProfilePaths,
        environment: Mapping[str, str],
        prompt: Callable[[str], str] = getpass.getpass,
    ) -> None:
        self._machine = machine
        self._paths = paths
        self._environment = environment
        self._prompt = prompt
        self._passphrase: str | None = None
        self._device: Device | None = None

    @property
    def settings(self) -> Settings:
        """The limits of this machine."""
        return self._machine.settings

    def device(self) -> Device:
        """Open the profile's device; the same one each time. Raises DeviceError."""
        if self._device is None:
            safes = safes_of(self._machine, self._paths, self._ask)
            self._device = open_device(self._machine, self._paths, safes.find().load())
        return self._device

    def new_device(self, mode: SafeMode) -> tuple[Device, SafeChoice | None]:
        """Open the device, with new keys where there are none; then also say where they went.

        Raises DeviceError.
        """
        safes = safes_of(self._machine, self._paths, self._ask_new)
        choice = None
        if not safes.exist():
            choice = make_keys(self._machine, self._paths, safes, mode)
        return self.device(), choice

    def close(self) -> None:
        """Close what was opened."""
        if self._device is not None:
            self._device.close()

    def _ask(self) -> str:
        if self._passphrase is None:
            self._passphrase = self._given("Passphrase of this profile: ")
        return self._passphrase

    def _ask_new(self) -> str:
        if PASSPHRASE_VARIABLE not in self._environment:
            first = self._given("New passphrase for this profile: ")
            if self._given("The same once more: ") != first:
                raise PassphraseDiffersError("the two passphrases differ")
            self._passphrase = first
        return self._ask()

    def _given(self, question: str) -> str:
        named = self._environment.get(PASSPHRASE_VARIABLE)
        if named is not None:
            return check_text(f"the passphrase in {PASSPHRASE_VARIABLE}", named)
        if not sys.stdin.isatty():
            raise PassphraseNeededError(f"set {PASSPHRASE_VARIABLE}, or run it in a terminal")
        return check_text("the passphrase", self._prompt(question))
