"""Watches what a process really syncs, so that a missing fsync shows without a power cut."""

import os
from pathlib import Path

import pytest


def watch_syncs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Return a list that grows by each path below a folder that is synced from now on."""
    synced: list[str] = []
    really_sync = os.fsync

    def sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_relative_to(folder):
            synced.append(str(path.relative_to(folder)))
        really_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    return synced
