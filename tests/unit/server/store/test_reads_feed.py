"""Pages of the feed: they join, and none ends between the objects of one seq."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.log import Log, open_log
from workmate_server.store.pages import Page
from workmate_server.store.reads_feed import FeedPage, load_page, newest_batch_before
from workmate_server.store.tables import FeedRow, TaskSnapshot, table_of

AUDIENCE = "worker:usr_ann"
NEWEST = 100
LARGE = 10**9


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    async with open_log(tmp_path) as opened:
        yield opened


def write(log: Log, *seqs: int, audience: str = AUDIENCE) -> None:
    """Write one removed object for each seq."""
    rows = [
        {
            "tenant_id": log.tenant_id,
            "audience": audience,
            "kind": "task",
            "object_id": f"task-{number}",
            "seq": seq,
            "removed_why": "released",
        }
        for number, seq in enumerate(seqs)
    ]
    with log.database.write() as connection:
        connection.execute(table_of(FeedRow).insert(), rows)


def read(log: Log, after_seq: int, items: int, bytes_max: int = LARGE) -> FeedPage:
    with log.database.read() as connection:
        return load_page(
            connection,
            log.tenant_id,
            AUDIENCE,
            after_seq=after_seq,
            newest_seq=NEWEST,
            page=Page(items, bytes_max),
        )


def read_all(log: Log, items: int, bytes_max: int = LARGE) -> list[list[int]]:
    """Return the seqs of page after page."""
    pages, after, more = [], 0, True
    while more:
        page = read(log, after, items, bytes_max)
        assert page.seq > after
        assert all(after < item.seq <= page.seq for item in page.items)
        pages.append([item.seq for item in page.items])
        after, more = page.seq, page.more
    assert after == NEWEST
    return pages


@pytest.mark.parametrize(
    ("items", "pages"),
    [
        (1, [[3], [5, 5, 5], [8], [9, 9]]),
        (2, [[3], [5, 5, 5], [8], [9, 9]]),
        (3, [[3], [5, 5, 5], [8, 9, 9]]),
        (4, [[3, 5, 5, 5], [8, 9, 9]]),
        (5, [[3, 5, 5, 5, 8], [9, 9]]),
        (6, [[3, 5, 5, 5, 8], [9, 9]]),
        (7, [[3, 5, 5, 5, 8, 9, 9]]),
    ],
)
async def test_a_page_never_ends_between_objects_of_one_seq(
    log: Log, items: int, pages: list[list[int]]
) -> None:
    write(log, 9, 5, 3, 5, 8, 9, 5)
    assert read_all(log, items) == pages


async def test_a_page_ends_early_when_its_objects_are_large(log: Log) -> None:
    await log.walk("assigned")
    (task,) = log.rows("task_snapshot")
    (feed,) = [row for row in log.rows("feed") if row["audience"] == AUDIENCE]
    with log.database.write() as connection:
        copied = {"task_id": "task-2", "external_id": "2"}
        connection.execute(table_of(TaskSnapshot).insert(), [task | copied])
        changed = {"object_id": "task-2", "seq": 90}
        connection.execute(table_of(FeedRow).insert(), [feed | changed])
    size = len(task["snapshot"])
    assert read_all(log, 10, bytes_max=2 * size) == [[feed["seq"], 90]]
    assert read_all(log, 10, bytes_max=2 * size - 1) == [[feed["seq"]], [90]]


async def test_the_last_page_reaches_to_the_end_of_the_log(log: Log) -> None:
    write(log, 3, 5)
    page = read(log, 0, 2)
    assert (page.seq, page.more) == (NEWEST, False)
    assert read(log, NEWEST, 2) == FeedPage([], NEWEST, more=False)


async def test_other_audiences_and_tenants_are_not_read(log: Log) -> None:
    write(log, 4, audience="worker:usr_ben")
    write(log, 6, audience="office")
    assert read_all(log, 10) == [[]]


async def test_the_newest_batch_before_a_moment_is_found_by_halving(log: Log) -> None:
    await log.walk("in_progress")
    batches = log.rows("commit_batch")
    newest = max(row["batch"] for row in batches)
    with log.database.read() as connection:
        for row in batches:
            found = newest_batch_before(connection, log.tenant_id, newest, row["server_time"])
            same = [b["batch"] for b in batches if b["server_time"] == row["server_time"]]
            assert found == max(same)
        before = "2000-01-01T00:00:00.000Z"
        assert newest_batch_before(connection, log.tenant_id, newest, before) == 0
        after = "2999-01-01T00:00:00.000Z"
        assert newest_batch_before(connection, log.tenant_id, newest, after) == newest
