"""Counting attempts: a window that slides, and a memory that does not grow."""

from support.office import OfficeClock
from workmate_server.http.limits import SlidingWindow, UseNotes


def test_a_window_admits_so_many_and_tells_how_long_to_wait() -> None:
    clock = OfficeClock()
    window = SlidingWindow(clock, 2, 60.0, 10)
    assert window.admit("a") == 0
    clock.advance(30)
    assert window.admit("a") == 0
    assert 29 < window.admit("a") <= 30
    assert window.admit("b") == 0, "each address counts for itself"
    clock.advance(30)
    assert window.admit("a") == 0
    assert window.admit("a") > 0


def test_who_keeps_trying_is_not_kept_out_for_longer() -> None:
    clock = OfficeClock()
    window = SlidingWindow(clock, 1, 60.0, 10)
    assert window.admit("a") == 0
    for _ in range(5):
        clock.advance(10)
        assert window.admit("a") > 0
    clock.advance(10)
    assert window.admit("a") == 0


def test_only_so_many_addresses_are_remembered() -> None:
    window = SlidingWindow(OfficeClock(), 1, 60.0, 2)
    for address in ("a", "b", "c"):
        assert window.admit(address) == 0
    assert window.admit("c") > 0
    assert window.admit("a") == 0, "forgotten, being longest unseen"


def test_a_use_is_noted_once_in_the_interval() -> None:
    clock = OfficeClock()
    notes = UseNotes(clock, 60.0, 10)
    assert notes.due("t", "c")
    assert not notes.due("t", "c")
    assert notes.due("u", "c")
    clock.advance(61)
    assert notes.due("t", "c")
