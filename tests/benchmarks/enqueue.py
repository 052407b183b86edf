"""What a device takes to save an act: signed, committed and in the unsent log.

Beside it stands the least that such a promise costs: the same row in one durable commit of the bare
driver, and the same bytes appended to a file that is synced.
"""

import os
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import sqlcipher3.dbapi2 as driver
from sqlalchemy import select

from benchmarks.figures import (
    Figure,
    Pace,
    Tell,
    percentile,
    ratio_of,
    rounded,
    seconds_of,
    summed_up,
)
from support import commands as build
from support.laptop import KEYS, profile_for_tests
from support.signing_log import SigningLog
from workmate_client.bootstrap import open_device, this_machine
from workmate_client.config import ProfilePaths
from workmate_client.journal.authoring import Act, Value
from workmate_client.journal.rows import Profile
from workmate_client.journal.tables import QUEUED_COMMAND
from workmate_client.service.device import Device
from workmate_shared.tasks.commands import Arrive
from workmate_shared.tasks.values import Fix

_FIX = Fix(**build.FIX)
_NUMBERED = "UPDATE profile SET last_device_seq=?"


class BareDisk:
    """A journal file of the same kind and key, written by the driver alone, and a file beside it."""

    def __init__(self, paths: ProfilePaths) -> None:
        self._connection: Any = driver.connect(str(paths.journal), isolation_level=None)
        for pragma in (
            f"key = \"x'{KEYS.journal_key.hex()}'\"",
            "synchronous=FULL",
            "foreign_keys=ON",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(paths.unsent.with_name("bare.log"), flags, 0o600)

    def save(self, row: dict[str, Any], record: bytes) -> None:
        """Write one row durably, and one record."""
        names, places = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        insert = f"INSERT INTO {QUEUED_COMMAND.name} ({names}) VALUES ({places})"
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(insert, tuple(row.values()))
        self._connection.execute(_NUMBERED, (row["device_seq"],))
        os.write(self._file, record)
        os.fsync(self._file)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close both."""
        self._connection.close()
        os.close(self._file)


def measure_enqueue(folder: Path, pace: Pace, tell: Tell) -> None:
    """Measure one act after the other, each followed by its bare counterpart."""
    count, warming = pace.of(400, 10), pace.of(20, 2)
    with (
        closing(_device(folder / "device")) as device,
        closing(_device(folder / "bare")) as other,
        closing(BareDisk(other.paths)) as bare,
    ):
        profile = device.profile()
        ours, least = list[float](), list[float]()
        for _ in range(warming + count):
            ours.append(seconds_of(lambda: _act(device, profile)))
            row, record = _newest(device)
            least.append(seconds_of(partial(bare.save, row, record)))
        for figure in _figures(ours[warming:], least[warming:]):
            tell(figure)


def _figures(ours: Sequence[float], least: Sequence[float]) -> Sequence[Figure]:
    given = {"act": "arrive with a fix"}
    spent, needed = ([1e3 * one for one in samples] for samples in (ours, least))
    return (
        summed_up("enqueue", spent, "ms", p99=rounded(percentile(spent, 99)), **given),
        summed_up("enqueue_bare_disk", needed, "ms", p99=rounded(percentile(needed, 99)), **given),
        ratio_of("enqueue_of_bare_disk", ours, least, **given),
    )


def _device(folder: Path) -> Device:
    device = open_device(this_machine(), ProfilePaths(folder), KEYS)
    device.journal.save_profile(profile_for_tests(SigningLog(build.TENANT, build.LINEAGE)))
    return device


def _act(device: Device, profile: Profile) -> None:
    act = Act(
        kind=Arrive,
        aggregate_id=build.TASK,
        expected_version=4,
        position=Value(_FIX, "operational_90d"),
    )
    device.journal.issue(lambda seq: device.author.write(profile, act, seq).parts)


def _newest(device: Device) -> tuple[dict[str, Any], bytes]:
    """Return the row that was written last, and the bytes that the unsent log grew by."""
    table = QUEUED_COMMAND
    with device.journal._database.read() as connection:
        row = connection.execute(select(table).order_by(table.c.local_order.desc()).limit(1)).one()
    data = device.paths.unsent.read_bytes()
    return dict(row._mapping), data[-len(data) // row.local_order :]
