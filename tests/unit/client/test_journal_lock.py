"""The lock that exactly one process holds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.device import SteppingClock
from workmate_client.journal.lock import FileLock, LockedError, ProfileLock

HOLD = """
import sys
from pathlib import Path
from workmate_client.journal.lock import ProfileLock
from workmate_client.system import SystemClock
with ProfileLock(Path(sys.argv[1]), SystemClock()):
    print("held", flush=True)
    sys.stdin.read()
"""


def lock(path: Path) -> ProfileLock:
    return ProfileLock(path, SteppingClock())


def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "sync.lock"
    with lock(path):
        with pytest.raises(LockedError) as caught:
            lock(path).acquire()
        assert caught.value.code == "profile_busy"
        assert caught.value.pid == os.getpid()
        assert caught.value.holder is not None
        assert caught.value.holder.boot_id == "boot-of-the-test"


def test_a_lock_can_be_taken_again_after_it_was_given_back(tmp_path: Path) -> None:
    again = lock(tmp_path / "sync.lock")
    for _ in range(2):
        with again:
            assert again.state().held
        assert not again.state().held


def test_a_lock_is_given_back_when_its_body_fails(tmp_path: Path) -> None:
    with pytest.raises(LookupError), lock(tmp_path / "sync.lock"):
        raise LookupError
    with lock(tmp_path / "sync.lock"):
        pass


def test_a_killed_holder_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "sync.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockedError) as caught:
            lock(path).acquire()
        assert caught.value.pid == holder.pid
        assert lock(path).state().held
        holder.kill()
    assert not lock(path).state().held
    with lock(path):
        assert json.loads(path.read_bytes())["pid"] == os.getpid()


@pytest.mark.parametrize("note", [b"", b"{", b'{"pid": "x"}', b"\xff" * 2000])
def test_an_unreadable_note_hides_the_holder_and_not_the_lock(tmp_path: Path, note: bytes) -> None:
    path = tmp_path / "sync.lock"
    held = FileLock(path, SteppingClock())
    assert held.acquire(0.0)
    held.write(note)
    with pytest.raises(LockedError) as caught:
        lock(path).acquire()
    assert caught.value.pid is None
    assert lock(path).state().holder is None
    held.release()


def test_waiting_for_a_lock_ends_when_time_is_up_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    held = FileLock(path, SteppingClock())
    assert held.acquire(0.0)
    clock = SteppingClock()
    assert not FileLock(path, clock).acquire(2.0)
    assert clock.seconds >= 2.0
    releasing = SteppingClock(on_sleep=held.release)
    assert FileLock(path, releasing).acquire(2.0)
    assert releasing.seconds < 2.0


def test_only_a_holder_can_write_the_note(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not held"):
        FileLock(tmp_path / "a.lock", SteppingClock()).write(b"")
