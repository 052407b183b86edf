"""Hashing a file of evidence where an upload ends, beside `b3sum` or, without it, the bare library."""

import secrets
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from blake3 import blake3

from benchmarks.figures import Pace, Tell, ratio_of, seconds_of, summed_up
from workmate_server.config import MIB, Settings
from workmate_server.evidence.folder_blobs import FolderBlobStore
from workmate_server.telemetry.system import NoHooks

_TENANT = "01930000-0000-7000-8000-000000000001"


def measure_hashing(folder: Path, pace: Pace, tell: Tell) -> None:
    """Measure files of one size, all of them in the page cache."""
    content = secrets.token_bytes(pace.of(256, 8) * MIB)
    name = blake3(content).hexdigest()
    store = FolderBlobStore(folder / "blobs", NoHooks(), Settings().blob_read_bytes)
    plain = folder / "plain"
    plain.write_bytes(content)
    ours, least = list[float](), list[float]()
    for number in range(pace.of(5, 1)):
        upload = f"upload-{number}"
        store.begin_upload(upload)
        store.append(upload, 0, [content])
        ours.append(seconds_of(partial(store.finish, upload, _TENANT, name)))
        store.delete(_TENANT, name)
        least.append(seconds_of(partial(_hash_bare, plain, content)))
    given: dict[str, Any] = {"mebibytes": len(content) // MIB, "file": "in the page cache"}
    limit = "b3sum" if _b3sum() else "the blake3 library on memory, one thread"
    tell(summed_up("hashing", _speeds(content, ours), "MiB/s", **given))
    tell(summed_up("hashing_bare", _speeds(content, least), "MiB/s", **given, beside=limit))
    speeds = _speeds(content, ours), _speeds(content, least)
    tell(ratio_of("hashing_of_bare", *speeds, **given, beside=limit))


def _b3sum() -> str | None:
    return shutil.which("b3sum")


def _hash_bare(file: Path, content: bytes) -> None:
    program = _b3sum()
    if program is None:
        blake3(content).hexdigest()
    else:
        subprocess.run([program, str(file)], check=True, stdout=subprocess.DEVNULL)


def _speeds(content: bytes, seconds: Sequence[float]) -> list[float]:
    return [len(content) / MIB / one for one in seconds]
