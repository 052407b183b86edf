"""The evidence of a task as its readers get it."""

from typing import Any

import pytest

from support.handheld import rows_of
from support.office import Job, Office, Person, assert_problem, disclose
from support.tus import hash_of, upload
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.manifest import AnswerItem, PhotoItem

JPEG = b"\xff\xd8\xff\xe0" + b"pixels" * 100
ANSWERS: dict[str, Any] = {"answers": {"isolated": True}}
PLACES: dict[str, Any] = {"after-1": {"lat_e7": 1, "lon_e7": 2, "source": "gps"}}


@pytest.fixture
async def worker(office: Office) -> Person:
    return await office.somebody(Role.WORKER)


@pytest.fixture
async def job(office: Office, worker: Person) -> Job:
    """A job whose proof waits: one photo, one answer, one place."""
    job = await office.job("in_progress", worker=worker)
    personal, said = disclose(ANSWERS, salt=21)
    position, placed = disclose(PLACES, salt=22)
    proof = job.proof(
        {personal: said, position: placed},
        items=(
            PhotoItem(
                item_id="after-1",
                slot="after",
                hash=hash_of(JPEG),
                size=len(JPEG),
                media_type="image/jpeg",
            ),
            AnswerItem(item_id="isolated"),
        ),
        personal=personal,
        position=position,
    )
    assert (await worker.command("submit_proof", job, proof)).status == 200
    return job


async def read(person: Person, job: Job, **rest: Any) -> Any:
    answer = await person.get(f"/v1/tasks/{job.task_id}/evidence", **rest)
    assert answer.status == 200, answer.body
    return answer.json


async def test_a_proof_says_which_of_its_files_are_held(
    office: Office, worker: Person, job: Job
) -> None:
    supervisor = await office.somebody(Role.SUPERVISOR)
    (item,) = (await read(supervisor, job))["items"]
    assert (item["manifest_id"], item["status"]) == (job.manifest_id, "submitted")
    assert [one.get("held") for one in item["items"]] == [False, None]
    await upload(worker, job.task_id, JPEG)
    told = await read(supervisor, job)
    assert told["items"][0]["items"][0]["held"]
    (file,) = told["files"]
    assert (file["hash"], file["size"]) == (hash_of(JPEG), len(JPEG))
    assert (file["media_type"], file["stored_by"]) == ("image/jpeg", worker.principal_id)


async def test_a_supervisor_reads_the_words_and_needs_a_purpose_for_the_places(
    office: Office, job: Job
) -> None:
    supervisor = await office.somebody(Role.SUPERVISOR)
    (item,) = (await read(supervisor, job))["items"]
    assert (item["personal"], item["position"]) == (ANSWERS, None)
    assert item["withheld"] == ["position"]
    assert rows_of(office, "location_access") == []
    (item,) = (await read(supervisor, job, purpose="review"))["items"]
    assert (item["position"], item["withheld"]) == (PLACES, [])


async def test_reading_where_somebody_was_is_recorded(
    office: Office, worker: Person, job: Job
) -> None:
    supervisor = await office.somebody(Role.SUPERVISOR)
    await read(supervisor, job, purpose="review")
    (row,) = rows_of(office, "location_access")
    assert (row["reader_id"], row["subject_id"]) == (supervisor.principal_id, worker.principal_id)
    assert (row["purpose"], row["object_id"]) == ("review", job.task_id)


async def test_its_author_reads_all_of_it_and_nothing_is_recorded(
    office: Office, worker: Person, job: Job
) -> None:
    (item,) = (await read(worker, job))["items"]
    assert (item["personal"], item["position"], item["withheld"]) == (ANSWERS, PLACES, [])
    assert rows_of(office, "location_access") == []


async def test_an_integration_sees_what_there_is_and_no_words(office: Office, job: Job) -> None:
    (item,) = (await read(await office.somebody(Role.INTEGRATION), job))["items"]
    assert (item["personal"], item["position"]) == (None, None)
    assert item["withheld"] == ["personal", "position"]


async def test_a_decision_shows_who_decided(office: Office, job: Job) -> None:
    supervisor = await office.somebody(Role.SUPERVISOR)
    body = {"manifest_id": job.manifest_id, "personal": {"reason": "the photo is blurred"}}
    assert (await supervisor.command("reject_proof", job, body)).status == 200
    (item,) = (await read(supervisor, job))["items"]
    assert (item["status"], item["decided_by"]) == ("rejected", supervisor.principal_id)


async def test_a_former_holder_sees_what_he_gathered_and_nothing_of_the_next(
    office: Office, worker: Person
) -> None:
    job = await office.job("in_progress", worker=worker)
    await upload(worker, job.task_id, JPEG)
    handed = await worker.command("hand_over", job, job.proof(), version=None)
    assert handed.status == 200, handed.body
    dispatcher, other = await office.somebody(Role.DISPATCHER), await office.hire(Role.WORKER)
    await dispatcher.command("release", job, {"personal": {"reason": "needed elsewhere"}})
    body = {"worker_id": other.principal_id, "personal": {"selection_reason": "free"}}
    await dispatcher.command("assign", job, body)
    await other.command("accept", job)
    await upload(other, job.task_id, JPEG + b"2")
    mine = await read(worker, job)
    assert [item["status"] for item in mine["items"]] == ["handed_over"]
    assert [file["stored_by"] for file in mine["files"]] == [worker.principal_id]
    theirs = await read(other, job)
    assert len(theirs["items"]) == 1
    assert len(theirs["files"]) == 2


async def test_evidence_is_not_there_for_whoever_may_not_see_the_task(
    office: Office, job: Job
) -> None:
    path = f"/v1/tasks/{job.task_id}/evidence"
    _, stranger = await office.found_tenant()
    for person in (await office.hire(Role.WORKER), office.admin, stranger):
        assert_problem(await person.get(path), "not_found")
    assert_problem(await office.admin.get("/v1/tasks/no-task/evidence"), "not_found")
