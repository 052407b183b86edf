"""A server that is killed anywhere in a commit has lost nothing that it answered, and doubled nothing."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from support.commit_killing import ACKNOWLEDGED, killed_at_points, send, start
from support.log import Log, open_log
from workmate_server.engine.model import Decided

POINTS = {
    "engine.commit.begun",
    "engine.commit.before",
    "engine.commit.after",
    "engine.head.before",
    "engine.head.after",
    "sql COMMIT",
}

Killed = list[tuple[str, Path]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    (folder / "start").mkdir()
    asyncio.run(start(folder / "start"))
    return folder


@pytest.fixture(scope="module")
def killed(folder: Path) -> Killed:
    return killed_at_points(folder)


def _acknowledged(folder: Path) -> list[Decided]:
    lines = (folder / ACKNOWLEDGED).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Decided) for line in lines]


def _assert_dense(log: Log) -> None:
    events = log.rows("audit_event")
    assert [row["seq"] for row in events] == list(range(1, len(events) + 1))
    versions: dict[str, list[int]] = {}
    for row in events:
        versions.setdefault(row["aggregate_id"], []).append(row["aggregate_version"])
    assert all(found == list(range(1, len(found) + 1)) for found in versions.values())
    batches = [row["batch"] for row in log.rows("commit_batch")]
    assert batches == list(range(1, len(batches) + 1))


async def _check(point: str, folder: Path, whole: dict[str, Decided]) -> None:
    acknowledged = _acknowledged(folder)
    async with open_log(folder) as log:
        report = log.verify()
        assert report.clean, (point, report.findings)
        answers = await send(log)
        for told in acknowledged:
            assert answers[told.command_id] == msgspec.structs.replace(told, replayed=False), point
        assert {name: (a.status, a.code, a.version) for name, a in answers.items()} == {
            name: (a.status, a.code, a.version) for name, a in whole.items()
        }, point
        assert await send(log) == answers, point
        effects = Counter(row["command_id"] for row in log.rows("audit_event"))
        assert {name: effects[name] for name in answers} == {
            name: len(answer.events) for name, answer in answers.items()
        }, point
        _assert_dense(log)
        report = log.verify()
        assert report.clean, (point, report.findings)


def test_every_point_of_a_commit_is_among_those_killed_at(killed: Killed) -> None:
    names = Counter(point for point, _ in killed)
    assert set(names) >= POINTS
    assert all(names[point] >= 4 for point in POINTS)


def test_whatever_was_answered_is_there_after_a_kill_and_every_key_has_one_outcome(
    killed: Killed, folder: Path
) -> None:
    whole = {answer.command_id: answer for answer in _acknowledged(folder / "whole")}
    assert len(whole) == 8
    for point, left in killed:
        asyncio.run(_check(point, left, whole))
