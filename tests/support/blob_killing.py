"""A life of blobs that ends at a chosen kill point, as a program of its own.

`python -m support.blob_killing FOLDER N` prints what was acknowledged, a line each, and exits
without any clean-up when it passes kill point number N.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

from workmate_server.evidence.folder_blobs import FolderBlobStore

READ_BYTES = 4096
TENANT = "t1"
FIRST = b"first half " * 1000
SECOND = b"second half " * 1000
HASH = blake3(FIRST + SECOND).hexdigest()
KILLED = 86

State = tuple[int | None, int | None, int | None]
"""Size held of upload u1, of the blob, and of upload u2."""

STATES: dict[str, State] = {
    "nothing": (None, None, None),
    "begun": (0, None, None),
    "half": (len(FIRST), None, None),
    "whole": (len(FIRST + SECOND), None, None),
    "finished": (None, len(FIRST + SECOND), None),
    "another begun": (None, len(FIRST + SECOND), 0),
    "another half": (None, len(FIRST + SECOND), len(FIRST)),
    "discarded": (None, len(FIRST + SECOND), None),
    "deleted": (None, None, None),
}
"""What must be there once each step has been acknowledged, in order."""


def state_of(store: FolderBlobStore) -> State:
    """Return what a store holds of this life."""
    return store.size("u1"), store.stat(TENANT, HASH), store.size("u2")


def live(store: FolderBlobStore) -> Iterator[str]:
    """Take every step of `STATES`, telling each once it is acknowledged."""
    store.begin_upload("u1")
    yield "begun"
    end = store.append("u1", 0, [FIRST])
    yield "half"
    store.append("u1", end, [SECOND])
    yield "whole"
    store.finish("u1", TENANT, HASH)
    yield "finished"
    store.begin_upload("u2")
    yield "another begun"
    store.append("u2", 0, [FIRST])
    yield "another half"
    store.discard("u2")
    yield "discarded"
    store.delete(TENANT, HASH)
    yield "deleted"


class Recording:
    """Hooks that keep the names of the points passed."""

    def __init__(self) -> None:
        self.points: list[str] = []

    def reach(self, point: str) -> None:
        """Note the point."""
        self.points.append(point)


class Killing(Recording):
    """Hooks that end the process at the point of a number, from 0."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def reach(self, point: str) -> None:
        """End here, or note the point."""
        if len(self.points) == self.number:
            os._exit(KILLED)
        super().reach(point)


if __name__ == "__main__":
    folder, number = sys.argv[1:]
    for acknowledged in live(FolderBlobStore(Path(folder), Killing(int(number)), READ_BYTES)):
        print(acknowledged, flush=True)
