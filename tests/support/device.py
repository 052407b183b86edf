"""Builders for tests of the device: quick limits, a clock without waiting, sealed stores."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nacl.pwhash import argon2id

from workmate_client.config import Settings
from workmate_client.journal.files import Hook, PosixFiles
from workmate_client.journal.sealed import SealedFolder
from workmate_client.journal.unsent import UnsentLog
from workmate_client.ports import Clock, Files
from workmate_client.system import SystemRandom

PIECE = 64
KEY = bytes(range(32))


def quick_settings(
    sealed_piece_bytes: int = PIECE,
    evidence_file_limit_bytes: int = 10_000,
    evidence_settle_timeout_seconds: float = 5.0,
    disk_reserve_bytes: int = 0,
    unsent_record_limit_bytes: int = 10_000,
    file_lock_timeout_seconds: float = 0.0,
) -> Settings:
    """Limits that a test can stand at the edge of, and the cheapest Argon2id there is."""
    return Settings(
        sealed_piece_bytes=sealed_piece_bytes,
        evidence_file_limit_bytes=evidence_file_limit_bytes,
        evidence_settle_timeout_seconds=evidence_settle_timeout_seconds,
        disk_reserve_bytes=disk_reserve_bytes,
        unsent_record_limit_bytes=unsent_record_limit_bytes,
        file_lock_timeout_seconds=file_lock_timeout_seconds,
        vault_ops_limit=argon2id.OPSLIMIT_MIN,
        vault_memory_bytes=argon2id.MEMLIMIT_MIN,
    )


class SteppingClock:
    """A clock that waiting moves; each wait first does what the test gave it to do."""

    def __init__(self, on_sleep: Callable[[], None] = lambda: None) -> None:
        self.wall = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
        self.seconds = 0.0
        self._on_sleep = on_sleep

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds

    def boot_id(self) -> str:
        return "boot-of-the-test"

    def sleep(self, seconds: float) -> None:
        self._on_sleep()
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)

    async def pause(self, seconds: float) -> None:
        self.sleep(seconds)


def failing_at(failing_point: str, number: int) -> Hook:
    """A disk that reports an error of the operating system at one point."""

    def hook(point: str, _path: Path) -> None:
        if point == failing_point:
            raise OSError(number, os.strerror(number))

    return hook


def sealed_folder(
    folder: Path,
    files: Files | None = None,
    clock: Clock | None = None,
    settings: Settings | None = None,
    key: bytes = KEY,
) -> SealedFolder:
    """A folder of sealed files on the real disk, with small pieces."""
    return SealedFolder(
        files or PosixFiles(),
        folder,
        key,
        clock=clock or SteppingClock(),
        random=SystemRandom(),
        settings=settings or quick_settings(),
    )


def unsent_log(
    folder: Path, files: Files | None = None, settings: Settings | None = None, key: bytes = KEY
) -> UnsentLog:
    """The unsent log of a folder on the real disk."""
    return UnsentLog(
        files or PosixFiles(),
        folder / "unsent.log",
        key,
        random=SystemRandom(),
        settings=settings or quick_settings(),
    )
