"""The machine behind the ports for time and randomness."""

import subprocess
import sys
import uuid

from workmate_client.ports import Clock, Random
from workmate_client.system import LINUX_BOOT_ID, SystemClock, SystemRandom

CLOCK: Clock = SystemClock()
RANDOM: Random = SystemRandom()


def test_the_time_names_its_offset() -> None:
    assert CLOCK.now().utcoffset() is not None


def test_monotonic_readings_never_go_back() -> None:
    readings = [CLOCK.monotonic() for _ in range(100)]
    assert readings == sorted(readings)


def test_the_boot_has_one_id_for_every_process_where_the_system_tells_it() -> None:
    program = "from workmate_client.system import SystemClock; print(SystemClock().boot_id())"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    is_shared = other.stdout.decode().strip() == CLOCK.boot_id()
    assert is_shared == LINUX_BOOT_ID.exists()
    assert SystemClock().boot_id() == CLOCK.boot_id() != ""


async def test_waiting_takes_at_least_the_time_asked_for() -> None:
    before = CLOCK.monotonic()
    CLOCK.sleep(0.001)
    await CLOCK.pause(0.001)
    assert CLOCK.monotonic() - before >= 0.002


def test_ids_are_version_7_and_differ() -> None:
    ids = [RANDOM.uuid7() for _ in range(100)]
    assert {uuid.UUID(text).version for text in ids} == {7}
    assert len(set(ids)) == len(ids)


def test_random_bytes_have_the_size_asked_for_and_differ() -> None:
    assert [len(RANDOM.token_bytes(size)) for size in (1, 16, 32)] == [1, 16, 32]
    assert RANDOM.token_bytes(16) != RANDOM.token_bytes(16)
