"""Two server processes on one database file give one effect, one order and one answer to each key."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from support.eventful import Story
from support.log import open_log
from support.two_servers import (
    NAMES,
    POSTS,
    STORM,
    accept_everywhere,
    answers_of,
    both,
    post_accept,
    storm,
)
from workmate_server.engine.model import Decided

KILLED = -9


async def _assigned(folder: Path) -> None:
    async with open_log(folder) as log:
        await log.walk("assigned")


async def _retry(folder: Path, missing: int) -> list[Decided]:
    answers: list[Decided] = []
    async with open_log(folder) as log:
        if missing:
            await post_accept(log, answers.append)
        events = [row for row in log.rows("audit_event") if row["type"] == "task.accepted"]
        assert len(events) == 1
        assert len([r for r in log.rows("command_log") if r["command_id"] == "key-accept"]) == 1
        report = log.verify()
        assert report.clean, report.findings
    return answers


@pytest.mark.parametrize(
    "kill_at",
    [None, "engine.commit.begun", "engine.commit.before", "engine.commit.after"],
)
def test_twenty_posts_of_one_key_through_both_have_one_effect_and_twenty_equal_answers(
    tmp_path: Path, kill_at: str | None
) -> None:
    asyncio.run(_assigned(tmp_path))
    assert both(accept_everywhere, tmp_path, kill_at) == [KILLED if kill_at else 0, 0]
    first, second = (answers_of(tmp_path, name) for name in NAMES)
    assert len(second) == POSTS
    assert len(first) == (0 if kill_at else POSTS)
    again = asyncio.run(_retry(tmp_path, POSTS - len(first)))
    answers = [msgspec.structs.replace(a, replayed=False) for a in (*first, *second, *again)]
    assert len(answers) == 2 * POSTS
    assert {answer.status for answer in answers} == {"committed"}
    assert len({msgspec.json.encode(answer) for answer in answers}) == 1


async def _stormy(folder: Path) -> None:
    async with open_log(folder) as log:
        await Story(log, "stormy").reach("assigned")


async def _check_storm(folder: Path) -> None:
    async with open_log(folder) as log:
        events = log.rows("audit_event")
        assert [row["seq"] for row in events] == list(range(1, len(events) + 1))
        (snapshot,) = log.rows("task_snapshot")
        versions = sorted(
            row["aggregate_version"] for row in events if row["aggregate_id"] == snapshot["task_id"]
        )
        assert versions == list(range(1, snapshot["version"] + 1))
        batches = [row["batch"] for row in log.rows("commit_batch")]
        assert batches == list(range(1, len(batches) + 1))
        for name in NAMES:
            seen = msgspec.json.decode((folder / f"seen-{name}").read_bytes())
            assert seen == [row["seq"] for row in events]
        report = log.verify()
        assert report.clean, report.findings


def test_a_storm_from_both_leaves_one_dense_order_that_every_reader_saw_once(
    tmp_path: Path,
) -> None:
    asyncio.run(_stormy(tmp_path))
    assert both(storm, tmp_path) == [0, 0]
    answers = [answer for name in NAMES for answer in answers_of(tmp_path, name)]
    statuses = Counter(answer.status for answer in answers)
    assert sum(statuses.values()) == 2 * (STORM + 1)
    assert set(statuses) == {"committed", "conflict"}
    asyncio.run(_check_storm(tmp_path))
