"""The host's clock and entropy say what the ports promise."""

from datetime import timedelta
from uuid import UUID

from workmate_server.telemetry.system import SystemClock, SystemEntropy


def test_now_is_aware_and_in_utc() -> None:
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_monotonic_time_never_runs_backwards() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


async def test_sleeping_for_no_time_returns() -> None:
    await SystemClock().sleep(0)


def test_random_bytes_have_the_size_asked_for_and_differ() -> None:
    entropy = SystemEntropy()
    assert len(entropy.token_bytes(16)) == 16
    assert entropy.token_bytes(16) != entropy.token_bytes(16)


def test_ids_are_canonical_version_seven_and_sort_as_they_are_made() -> None:
    entropy = SystemEntropy()
    made = [entropy.uuid7() for _ in range(1000)]
    assert {UUID(each).version for each in made} == {7}
    assert [str(UUID(each)) for each in made] == made == sorted(made)
    assert len(set(made)) == 1000
