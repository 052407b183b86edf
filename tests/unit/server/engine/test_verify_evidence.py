"""Files that the log calls stored, and the guards of the log: who takes them away is found out."""

from pathlib import Path

import pytest
from sqlalchemy import text

from support import commands as build
from support.log import Log, open_log
from workmate_server.commands.checking import verify_log
from workmate_server.config import Locations

FILES = (build.PHOTO, build.DRAWING)


async def _with_evidence(log: Log) -> None:
    await log.walk("proof_pending")
    for name in FILES:
        log.tamper(
            "INSERT INTO blob (tenant_id, hash, size, media_type, verified_at) "
            "VALUES (:tenant, :hash, 1, 'image/jpeg', '2026-03-01T09:00:00Z')",
            tenant=log.tenant_id,
            hash=name,
        )
        log.tamper(
            "INSERT INTO blob_link (tenant_id, hash, task_id, principal_id, stored_at) "
            "VALUES (:tenant, :hash, :task, :who, '2026-03-01T09:00:00Z')",
            tenant=log.tenant_id,
            hash=name,
            task=log.task_id,
            who=build.ASSIGNEE,
        )
    await log.run(log.make("store_evidence"))
    assert log.verify().clean


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("DELETE FROM blob WHERE hash = :name", f"blob {build.PHOTO}"),
        ("UPDATE blob SET purged_at = 'now' WHERE hash = :name", f"blob {build.PHOTO} purged_at"),
        ("DELETE FROM blob_link WHERE hash = :name", f"blob_link {build.PHOTO}"),
        ("UPDATE blob_link SET principal_id = 'x' WHERE hash = :name", f"blob_link {build.PHOTO}"),
    ],
)
async def test_a_stored_file_that_nobody_knows_any_more_is_named(
    tmp_path: Path, statement: str, place: str
) -> None:
    async with open_log(tmp_path) as log:
        await _with_evidence(log)
        assert log.tamper(statement, name=build.PHOTO) == 1
        findings = log.verify().findings
        assert [finding.place.startswith(place) for finding in findings] == [True]


async def test_a_proof_of_somebody_elses_file_or_of_another_size_is_not_approved(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        await _with_evidence(log)
        log.tamper("UPDATE blob_link SET principal_id = :who", who=build.STRANGER)
        (answer,) = await log.submit(log.make("approve_proof", expected_version=7))
        found = {(one["code"], one["about"]) for one in answer.details["findings"]}
        assert {("file_missing", name) for name in FILES} <= found
        assert {code for code, _ in found} == {"file_missing", "size_differs"}


async def test_taking_the_guards_away_is_a_finding_and_hides_nothing(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("accepted")
        keys, database = log.keys.path, log.folder / "office.db"
        with log.database.write() as connection:
            connection.execute(text("DROP TRIGGER audit_event_update"))
            connection.execute(text("UPDATE audit_event SET actor_id = 'x' WHERE seq = 12"))
        locations = Locations(f"sqlite:///{database}", (tmp_path / "blobs").as_uri(), keys)
        result = verify_log(locations, blobs=False)
        places = [finding.place for finding in result.value.findings]
        assert places[0] == "schema"
        assert "audit_event seq 12 actor_id" in places
        log.database.migrate()
        log.database.require_current_schema()


async def test_an_instant_at_the_end_of_the_calendar_is_refused_and_costs_nobody_else(
    tmp_path: Path,
) -> None:
    async with open_log(tmp_path) as log:
        with pytest.raises(ValueError, match="the calendar"):
            log.make("create_task", due_at="9999-12-31T23:59:59-23:59")
        with pytest.raises(ValueError, match="the calendar"):
            log.make("amend", due_at="0001-01-01T00:00:00+23:59")
        log.make("amend", due_at="9999-12-31T23:59:59Z")
