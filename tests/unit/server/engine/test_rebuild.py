"""What is projected from nothing is what was projected along the way, whatever happened."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support import commands as build
from support.eventful import NEVER, Story, hold_files, prepare, worker
from support.log import Log, open_log
from support.tampering import Tables, copy_row, opened_copy, read_tables
from workmate_server.engine.histories import UnreadableEventError
from workmate_server.engine.model import Submission
from workmate_server.engine.rebuild import rebuild
from workmate_server.store.tables import PROJECTIONS
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import AccessToken, DeviceKey, EnrolmentCode

WORKERS = (build.ASSIGNEE, build.FORMER, build.STRANGER)
MANIFESTS = ("manifest-1", "manifest-2")
MOVES = ("accept", "start_travel", "arrive", "submit_proof", "decline", "hand_over", "observe")
DECISIONS = ("approve_proof", "reject_proof", "dismiss_handover", "take_over")
OFFICE = ("assign", "release", "amend", "amend_personal", "cancel")
CREDENTIALS = (
    DeviceKey(credential_id="device-1", public_key="0a" * 32),
    AccessToken(credential_id="token-1", token_hash="0b" * 32, roles=(Role.WORKER,)),
    EnrolmentCode(credential_id="code-1", code_check="0c" * 32, expires_at=NEVER),
)

TASKS = 8
MOSTLY = 0.8
_WAY = {
    "unassigned": "assign",
    "assigned": "accept",
    "accepted": "start_travel",
    "en_route": "arrive",
    "in_progress": "submit_proof",
    "proof_pending": "approve_proof",
}

PRINCIPAL = ("change_principal", "add_credential", "revoke_credential")
Step = tuple[str, int, int, bool]


def _requests(seed: int, count: int = 30) -> Iterator[list[Step]]:
    """Yield requests of one to eight commands, most of which go on where a task stands."""
    chance = random.Random(seed)
    kinds = ("create_task", *["go_on"] * 30, *MOVES, *DECISIONS, *OFFICE, *PRINCIPAL)
    for _ in range(count):
        yield [
            (
                chance.choice(kinds),
                chance.randrange(TASKS),
                chance.randrange(3),
                chance.random() < MOSTLY,
            )
            for _ in range(chance.randint(1, 8))
        ]


def _projections(log: Log) -> Tables:
    tables = read_tables(log)
    return {
        name: sorted(
            ({column: row[column] for column in row if column != "rowid"} for row in tables[name]),
            key=repr,
        )
        for name in PROJECTIONS
    }


def _submission(log: Log, step: Step, name: str) -> Submission:
    kind, which, who, flag = step
    story = Story(log, f"task-{which}")
    tasks = {row["task_id"]: row for row in log.rows("task_snapshot")}
    task = tasks.get(story.task_id, {"state": "", "assignee_id": None})
    actor = worker(task["assignee_id"] if flag and task["assignee_id"] else WORKERS[who])
    kind = _WAY.get(task["state"], "observe") if kind == "go_on" else kind
    fields: dict[str, Any] = {"command_id": name}
    values = {}
    if kind in PRINCIPAL:
        fields |= {"aggregate_id": WORKERS[which % 3], "actor": build.make_actor(Role.SYSTEM)}
        if kind == "add_credential":
            fields["credential"] = CREDENTIALS[who]
        elif kind == "revoke_credential":
            fields["credential_id"] = CREDENTIALS[who].credential_id
        else:
            fields["skills"] = ("electrical", "heights") if flag else ("electrical",)
        return log.submission(log.make(kind, expected_version=None, **fields))
    if kind in MOVES:
        fields["actor"] = actor
    if kind in ("submit_proof", "hand_over"):
        fields |= story.manifest(MANIFESTS[flag])
    elif kind == "take_over":
        kind = "submit_proof"
        fields |= {
            "actor": build.make_actor(Role.SUPERVISOR),
            "override": WORKERS[who],
            "manifest_id": MANIFESTS[flag],
            "manifest": None,
            "content_hash": None,
            "personal": build.disclose(build.OVERRIDE_REASON)[0],
        }
    elif kind in DECISIONS:
        fields["manifest_id"] = MANIFESTS[flag]
    elif kind == "assign":
        fields["worker_id"] = WORKERS[who]
    elif kind == "amend_personal":
        kind = "amend"
        commitment, value = build.disclose({"site_name": f"Depot {who}"}, salt=3 + who)
        values = {commitment: value}
        fields |= {"personal": commitment, "position": build.disclose(build.SITE)[0]}
    command = story.make(kind, **fields)
    return replace(log.submission(command, values), fill_version=kind != "create_task")


async def _live(log: Log, requests: Iterable[list[Step]]) -> None:
    for which in range(TASKS):
        hold_files(log, Story(log, f"task-{which}").task_id)
    created = [("create_task", which, 0, False) for which in range(TASKS)]
    for number, steps in enumerate((created, *requests)):
        submissions = [
            _submission(log, step, f"step-{number}-{index}") for index, step in enumerate(steps)
        ]
        answers = await log.engine.submit(log.tenant_id, submissions)
        assert "internal" not in {answer.code for answer in answers}


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("founded")

    async def found() -> None:
        async with open_log(folder) as log:
            log.database.checkpoint()

    asyncio.run(found())
    return folder


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    asyncio.run(prepare(folder))
    return folder


@pytest.mark.parametrize("seed", range(6))
def test_rebuilding_changes_nothing_after_any_history(
    founded: Path, tmp_path: Path, seed: int
) -> None:
    async def live() -> None:
        await log.engine.start()
        await _live(log, _requests(seed))
        await log.engine.stop()

    with opened_copy(founded, tmp_path) as log:
        asyncio.run(live())
        before = _projections(log)
        count = rebuild(log.database)
        assert count == len(before["task_snapshot"]) + len(before["principal"])
        assert _projections(log) == before
        report = log.verify()
        assert report.clean, report.findings


def _empty(log: Log, table: str) -> None:
    log.tamper(f"DELETE FROM {table}")


def _garble(log: Log, table: str) -> None:
    rows = read_tables(log)[table]
    copy_row(log, table, rows[0]["rowid"], tenant_id="another")
    log.tamper(f"DELETE FROM {table} WHERE rowid = :rowid", rowid=rows[1]["rowid"])
    for column, value in rows[2].items():
        if column != "rowid":
            new = {int: -7, bytes: b"x"}.get(type(value), "other")
            log.tamper(
                f"UPDATE {table} SET {column} = :new WHERE rowid = :rowid",
                new=new,
                rowid=rows[2]["rowid"],
            )


@pytest.mark.parametrize("spoil", [_empty, _garble])
def test_spoilt_projections_are_made_again_as_they_were(
    prepared: Path, tmp_path: Path, spoil: Any
) -> None:
    with opened_copy(prepared, tmp_path) as log:
        before = _projections(log)
        for table in PROJECTIONS:
            spoil(log, table)
            assert not log.verify().clean
        rebuild(log.database)
        assert _projections(log) == before
        assert log.verify().clean


@pytest.mark.parametrize(
    "change",
    [
        "payload = x'7b7d'",
        "payload = CAST('{' AS BLOB)",
        "type = 'task.unheard_of'",
        "aggregate_version = 99",
        "aggregate_id = 'another'",
    ],
)
def test_an_event_that_cannot_be_projected_stops_the_rebuilding_and_leaves_the_old_rows(
    prepared: Path, tmp_path: Path, change: str
) -> None:
    with opened_copy(prepared, tmp_path) as log:
        log.tamper("UPDATE task_snapshot SET state = 'garbled'")
        before = _projections(log)
        assert log.tamper(f"UPDATE audit_event SET {change} WHERE seq = 40") == 1
        with pytest.raises(UnreadableEventError):
            rebuild(log.database)
        assert _projections(log) == before


def test_an_event_after_a_gap_is_not_projected(prepared: Path, tmp_path: Path) -> None:
    with opened_copy(prepared, tmp_path) as log:
        log.tamper("DELETE FROM audit_event WHERE type = 'task.created' AND seq > 30")
        before = _projections(log)
        with pytest.raises(UnreadableEventError):
            rebuild(log.database)
        assert _projections(log) == before
