"""A beginning that is cut short can be done again, and ends the same."""

from pathlib import Path
from typing import Any

import pytest

from support.init_killing import NAME, killed_at_each_point, locations_in
from workmate_server.bootstrap import StartError, open_parts
from workmate_server.commands.checking import verify_log
from workmate_server.commands.founding import (
    FixedClock,
    SeededEntropy,
    begin_founding,
    only_founder,
)
from workmate_server.commands.init import init
from workmate_server.commands.result import Result
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.telemetry.system import SystemEntropy

POINTS = [
    "init.keys.after",
    "init.record.after",
    "init.schema.after",
    "init.tenant.after",
    "init.told.after",
]
MOMENT = "2026-03-01T09:00:00.000Z"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("killed")
    return folder, killed_at_each_point(folder)


def test_init_killed_at_any_point_is_finished_by_running_it_again(
    killed: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder, cases = killed
    points = [case["point"] for case in cases]
    assert [point for point in points if point.startswith("init.")] == POINTS
    assert any(point.startswith("engine.commit.") for point in points)
    for number, case in enumerate(cases):
        locations = locations_in(folder / str(number))
        with open_parts(locations) as parts:
            assert parts.tenant().tenant_id == case["second"]["tenant_id"]
        assert verify_log(locations, blobs=False).value.clean
        assert not (locations.keys / "founding.json").exists()


def test_a_token_that_was_told_before_the_crash_is_the_one_told_after_it(
    killed: tuple[Path, list[dict[str, Any]]],
) -> None:
    _, cases = killed
    told = [case for case in cases if case["first"] is not None]
    assert [case["point"] for case in told] == ["init.told.after"]
    assert all(case["first"] == case["second"] for case in told)


def ignore(_result: Result) -> None:
    """Hear and forget."""


def code_of(refused: pytest.ExceptionInfo[StartError]) -> str:
    return refused.value.code


def test_an_unfinished_beginning_is_not_continued_for_another_tenant(tmp_path: Path) -> None:
    locations = locations_in(tmp_path)
    keys = KeyFolder.create(locations.keys, SystemEntropy())
    begin_founding(keys.path, locations.database, NAME, FixedClock(MOMENT), SystemEntropy())
    with pytest.raises(StartError) as refused:
        init(locations, "Another", ignore)
    assert code_of(refused) == "init_unfinished"
    assert NAME in refused.value.detail


def test_an_unfinished_beginning_is_not_continued_in_another_database(tmp_path: Path) -> None:
    locations = locations_in(tmp_path)
    keys = KeyFolder.create(locations.keys, SystemEntropy())
    begin_founding(keys.path, "sqlite:///elsewhere.db", NAME, FixedClock(MOMENT), SystemEntropy())
    with pytest.raises(StartError) as refused:
        init(locations, NAME, ignore)
    assert code_of(refused) == "init_unfinished"


def test_two_beginnings_at_once_are_one(tmp_path: Path) -> None:
    locations = locations_in(tmp_path)
    with only_founder(locations.keys), pytest.raises(StartError) as refused:
        init(locations, NAME, ignore)
    assert code_of(refused) == "init_running"
    init(locations, NAME, ignore)


def test_what_is_drawn_from_a_seed_comes_again_in_the_same_order() -> None:
    first, again, other = (SeededEntropy(bytes([n]) * 32) for n in (1, 1, 2))
    drawn = [first.token_bytes(32), first.uuid7(), first.token_bytes(32), first.uuid7()]
    assert len(set(drawn)) == len(drawn)
    assert drawn == [again.token_bytes(32), again.uuid7(), again.token_bytes(32), again.uuid7()]
    assert other.token_bytes(32) not in drawn
