"""Every row of a file ends as a task or as a refusal, on a real engine."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.job_files import PORTAL_ROW
from workmate_server.bootstrap import Parts, StartError, open_parts, running_engine
from workmate_server.commands.direct import IMPORTER_PREFIX, DirectOffice
from workmate_server.commands.importing import ImportOptions, import_directly
from workmate_server.commands.init import init
from workmate_server.config import Locations, Settings
from workmate_server.imports.convert import Converter, Job
from workmate_server.imports.handing_in import Answer, import_records
from workmate_server.imports.mapping import load_mapping
from workmate_server.imports.reading import Record, read_records
from workmate_server.imports.report import Report
from workmate_server.store.reads_tasks import read_task
from workmate_shared.kernel.ids import task_id_for

REAL_FILE = Path(__file__).parents[5] / "shared" / "data" / "nyc311-100.csv"
FILES = ["made", *(["real"] if REAL_FILE.exists() else [])]
HEADER = ",".join(PORTAL_ROW)


@pytest.fixture(scope="module")
def locations(tmp_path_factory: pytest.TempPathFactory) -> Locations:
    folder = tmp_path_factory.mktemp("office")
    database = f"sqlite:///{folder / 'office.db'}"
    made = Locations(database, (folder / "blobs").as_uri(), folder / "keys")
    init(made, "Stadtwerke", lambda _: None)
    return made


def run_import(locations: Locations, file: Path, source: str) -> Report:
    result = import_directly(ImportOptions(file=file, source=source), locations, None)
    report: Report = result.value
    assert report.rows == report.created + report.unchanged + len(report.refused)
    return report


def write_portal(folder: Path, *rows: dict[str, str]) -> Path:
    file = folder / "portal.csv"
    lines = [HEADER, *(",".join({**PORTAL_ROW, **row}.values()) for row in rows)]
    file.write_text("\n".join(lines))
    return file


def rules(report: Report) -> list[tuple[int, str | None, str]]:
    return [(one.row, one.external_id, one.rule) for one in report.refused]


def test_equal_rows_of_one_id_are_one_task_and_other_content_is_refused(
    locations: Locations, tmp_path: Path
) -> None:
    rows = ({"Unique Key": "1"}, {"Unique Key": "1"}, {"Unique Key": "1", "City": "BRONX"})
    report = run_import(locations, write_portal(tmp_path, *rows), "twice")
    assert (report.created, report.unchanged) == (1, 1)
    assert rules(report) == [(4, "1", "external_id_conflict")]
    assert "row 2" in report.refused[0].detail


def test_what_a_second_export_says_otherwise_is_refused_and_changes_nothing(
    locations: Locations, tmp_path: Path
) -> None:
    run_import(locations, write_portal(tmp_path, {"Unique Key": "7"}), "again")
    closed = write_portal(tmp_path, {"Unique Key": "7", "Status": "Open"})
    assert run_import(locations, closed, "again").unchanged == 1
    moved = write_portal(tmp_path, {"Unique Key": "7", "Incident Address": "2 EXAMPLE STREET"})
    report = run_import(locations, moved, "again")
    assert rules(report) == [(2, "7", "external_id_conflict")]


def test_good_rows_among_bad_ones_become_tasks(locations: Locations, tmp_path: Path) -> None:
    file = write_portal(
        tmp_path,
        {"Unique Key": "good-1"},
        {"Unique Key": ""},
        {"Unique Key": "bad-1", "Latitude": ""},
        {"Unique Key": "bad-2", "Due Date": "03/10/2019 02:30:00 AM"},
        {"Unique Key": "good-2"},
    )
    with file.open("a") as more:
        more.write("\nshort,row\n")
    report = run_import(locations, file, "mixed")
    assert report.created == 2
    assert rules(report) == [
        (3, None, "external_id_missing"),
        (4, "bad-1", "coordinate_incomplete"),
        (5, "bad-2", "time_nonexistent"),
        (7, "short", "row_ragged"),
    ]


@pytest.mark.parametrize("which", FILES)
def test_every_honest_row_of_the_portals_export_is_a_task_and_stays_one(
    locations: Locations, tmp_path: Path, which: str
) -> None:
    made = write_portal(tmp_path, *({"Unique Key": str(number)} for number in range(600)))
    file = made if which == "made" else REAL_FILE
    records = read_records(file, load_mapping("nyc311"), Settings())
    report = run_import(locations, file, f"portal-{which}")
    assert (report.created, report.refused) == (len(records), ())
    again = run_import(locations, file, f"portal-{which}")
    assert (again.created, again.unchanged) == (0, len(records))
    with open_parts(locations) as parts, parts.database.read() as connection:
        tenant_id = parts.tenant().tenant_id
        for record in records:
            task_id = task_id_for(tenant_id, f"portal-{which}", record.cells["Unique Key"])
            task = read_task(connection, tenant_id, task_id)
            assert task is not None
            assert task.due_at is not None


def test_the_log_says_which_service_brought_the_jobs(locations: Locations, tmp_path: Path) -> None:
    run_import(locations, write_portal(tmp_path, {"Unique Key": "1"}), "crm")
    with open_parts(locations) as parts, parts.database.read() as connection:
        tenant_id = parts.tenant().tenant_id
        rows = connection.exec_driver_sql(
            "SELECT actor_id, actor_role FROM audit_event WHERE aggregate_id = ?",
            (task_id_for(tenant_id, "crm", "1"),),
        )
        assert rows.all() == [(IMPORTER_PREFIX + "crm", "integration")]


@asynccontextmanager
async def direct_office(parts: Parts, source: str) -> AsyncIterator[DirectOffice]:
    async with running_engine(parts) as engine:
        office = DirectOffice(parts, engine, parts.tenant(), source)
        await office.open()
        yield office


async def test_what_the_server_refuses_is_told_with_its_path(locations: Locations) -> None:
    with open_parts(locations) as parts:
        async with direct_office(parts, "odd") as office:
            job = Job("odd", "1", {"source": "odd", "external_id": "1", "priority": 10})
            [answer] = await office.hand_in([job])
    assert (answer.status, answer.rule) == ("refused", "invalid_command")
    assert "priority" in answer.detail


async def test_the_service_of_a_source_is_made_once(locations: Locations) -> None:
    with open_parts(locations) as parts:
        for _ in range(2):
            async with direct_office(parts, "once"):
                pass
        with parts.database.read() as connection:
            rows = connection.exec_driver_sql(
                "SELECT count(*) FROM audit_event WHERE aggregate_id = 'import:once'"
            )
            assert rows.scalar_one() == 1


def test_a_service_that_was_deactivated_imports_no_more(
    locations: Locations, tmp_path: Path
) -> None:
    file = write_portal(tmp_path, {"Unique Key": "1"})
    run_import(locations, file, "ended")
    with open_parts(locations) as parts, parts.database.write() as connection:
        snapshot = connection.exec_driver_sql(
            "SELECT snapshot FROM principal WHERE principal_id = 'import:ended'"
        ).scalar_one()
        changed = {**json.loads(snapshot), "state": "deactivated"}
        connection.exec_driver_sql(
            "UPDATE principal SET snapshot = ? WHERE principal_id = 'import:ended'",
            (json.dumps(changed).encode(),),
        )
    with pytest.raises(StartError) as refused:
        run_import(locations, file, "ended")
    assert refused.value.code == "importer_not_allowed"


class ClosingOffice:
    """An office that takes one job and then nothing more."""

    jobs_at_once = 2

    def __init__(self) -> None:
        self.calls = 0

    async def hand_in(self, jobs: Sequence[Job]) -> list[Answer]:
        self.calls += 1
        closed = Answer("not_sent", "unauthenticated", "the token ended")
        return [Answer("created"), closed][: len(jobs)]


async def test_after_the_first_job_that_cannot_be_handed_in_no_other_is_tried() -> None:
    office = ClosingOffice()
    converter = Converter(load_mapping("workmate"), 1000)
    names = ["a", "b", "a", "b", "c", "d"]
    records = [Record(row, {"external_id": name}) for row, name in enumerate(names, start=2)]
    report = await import_records(records, converter, office)
    assert office.calls == 1
    assert (report.rows, report.created, report.unchanged, report.complete) == (6, 1, 1, False)
    assert rules(report) == [
        (3, "b", "unauthenticated"),
        (5, "b", "unauthenticated"),
        (6, "c", "not_sent"),
        (7, "d", "not_sent"),
    ]
