"""`workmate demo`: hands the demo the parts of this program, and starts it.

With `--hands` it is one worker's laptop instead, asked over standard input; the demo starts two.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from workmate_client.bootstrap import (
    open_device,
    safes_of,
    sync_parts,
    this_machine,
    transport_to,
)
from workmate_client.commands.program import Program
from workmate_client.config import ProfilePaths, profile_folder
from workmate_client.demo import hands, run
from workmate_client.demo.kit import Kit
from workmate_client.service.device import Device


def demo(arguments: Sequence[str]) -> int:
    """Run the demo, or one of its laptops, and return the exit status."""
    kit = Kit(
        open_program=_open_program,
        transport_to=transport_to,
        sync_parts=sync_parts,
        open_laptop=open_laptop,
    )
    if list(arguments) == [hands.FLAG]:
        hands.serve_all(kit, os.environ)
        return 0
    return run.main(arguments, kit)


def open_laptop(folder: Path, passphrase: str) -> Device:
    """Open the device that lies in a folder, with the passphrase of its vault."""
    machine, paths = this_machine(), ProfilePaths(folder)
    keys = safes_of(machine, paths, lambda: passphrase).find().load()
    return open_device(machine, paths, keys)


def _open_program(environment: Mapping[str, str]) -> Program:
    return Program(this_machine(), ProfilePaths(profile_folder(environment)), environment)
