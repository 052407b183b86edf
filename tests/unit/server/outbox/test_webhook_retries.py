"""When a failed delivery is tried again."""

from datetime import UTC, datetime

import pytest

from workmate_server.config import Settings
from workmate_server.outbox.retries import backoff_seconds, read_retry_after
from workmate_server.telemetry.system import SystemEntropy

SETTINGS = Settings(webhook_backoff_base_seconds=5, webhook_backoff_max_seconds=600)
NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Chance:
    """Draws always the same byte."""

    def __init__(self, byte: int) -> None:
        self._byte = byte

    def token_bytes(self, size: int) -> bytes:
        return bytes([self._byte]) * size

    def uuid7(self) -> str:
        return SystemEntropy().uuid7()


@pytest.mark.parametrize(("attempts", "ceiling"), [(1, 5), (2, 10), (3, 20), (8, 600), (99, 600)])
def test_the_wait_is_drawn_between_nothing_and_a_ceiling_that_doubles(
    attempts: int, ceiling: float
) -> None:
    assert backoff_seconds(attempts, None, SETTINGS, Chance(0)) == 0
    most = backoff_seconds(attempts, None, SETTINGS, Chance(255))
    assert ceiling * 0.99 < most < ceiling


def test_the_receiver_may_ask_for_more_patience_up_to_the_longest_wait() -> None:
    assert backoff_seconds(1, 120, SETTINGS, Chance(255)) == 120
    assert backoff_seconds(1, 1e9, SETTINGS, Chance(0)) == 600


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("Sun, 01 Mar 2026 09:00:30 GMT", 30),
        ("Sun, 01 Mar 2026 08:00:00 GMT", 0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("²", None),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(
    text: str | None, seconds: float | None
) -> None:
    assert read_retry_after(text, NOW) == seconds
