"""Files of evidence over HTTP: whole, in ranges, and only for those who may see the task."""

import pytest

from support.handheld import rows_of
from support.office import Job, Office, Person, assert_problem
from support.tus import hash_of, upload
from workmate_shared.kernel.table import Role

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
HASH = hash_of(PNG)
PATH = f"/v1/blobs/{HASH}"
SIZE = len(PNG)


@pytest.fixture
async def worker(office: Office) -> Person:
    return await office.somebody(Role.WORKER)


@pytest.fixture
async def job(office: Office, worker: Person) -> Job:
    job = await office.job("in_progress", worker=worker)
    await upload(worker, job.task_id, PNG)
    return job


@pytest.mark.usefixtures("job")
async def test_a_file_comes_back_byte_for_byte_and_is_nothing_to_be_run(worker: Person) -> None:
    answer = await worker.get(PATH)
    assert (answer.status, answer.body) == (200, PNG)
    assert answer.headers["ETag"] == f'"{HASH}"'
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["Cache-Control"].startswith("private")


@pytest.mark.usefixtures("job")
async def test_a_head_says_the_size_and_sends_nothing(worker: Person) -> None:
    answer = await worker.call("HEAD", PATH)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Length"] == str(SIZE)


@pytest.mark.parametrize(
    "content",
    [b"<svg xmlns='x'><script>alert(1)</script></svg>", b"<html><script>1</script>", b"%PDF-1.7"],
)
async def test_a_file_that_could_be_run_is_told_to_be_plain_bytes(
    worker: Person, job: Job, content: bytes
) -> None:
    named = await upload(worker, job.task_id, content, filetype="text/html")
    answer = await worker.get(f"/v1/blobs/{named}")
    assert answer.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=100-", 100, SIZE),
        ("bytes=-100", SIZE - 100, SIZE),
        ("bytes=-999999", 0, SIZE),
        (f"bytes={SIZE - 1}-999999", SIZE - 1, SIZE),
    ],
)
async def test_one_range_of_bytes_is_answered(
    worker: Person, asked: str, start: int, stop: int
) -> None:
    answer = await worker.get(PATH, headers={"Range": asked})
    assert (answer.status, answer.body) == (206, PNG[start:stop])
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{SIZE}"
    assert answer.headers["Content-Length"] == str(stop - start)


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    "asked", ["bytes=0-1,3-4", "lines=0-1", "bytes=", "bytes=-", "bytes=5-4", "bytes=a-b"]
)
async def test_a_range_that_is_none_or_several_is_passed_over(worker: Person, asked: str) -> None:
    answer = await worker.get(PATH, headers={"Range": asked})
    assert (answer.status, answer.body) == (200, PNG)


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=999999-", "bytes=-0"])
async def test_a_range_outside_the_file_is_refused_with_its_size(
    worker: Person, asked: str
) -> None:
    answer = await worker.get(PATH, headers={"Range": asked})
    assert_problem(answer, "range_not_satisfiable")
    assert answer.headers["Content-Range"] == f"bytes */{SIZE}"


@pytest.mark.usefixtures("job")
async def test_a_range_of_another_file_is_not_mixed_in(worker: Person) -> None:
    headers = {"Range": "bytes=0-9", "If-Range": '"another"'}
    assert (await worker.get(PATH, headers=headers)).body == PNG
    headers["If-Range"] = f'"{HASH}"'
    assert (await worker.get(PATH, headers=headers)).body == PNG[:10]


@pytest.mark.usefixtures("job")
async def test_whoever_has_the_file_is_told_that_it_is_the_same(worker: Person) -> None:
    answer = await worker.get(PATH, headers={"If-None-Match": f'"x", "{HASH}"'})
    assert (answer.status, answer.body) == (304, b"")
    answer = await worker.get(PATH, headers={"If-None-Match": '"x"'})
    assert answer.status == 200


async def test_an_empty_file_is_answered_whole(worker: Person, job: Job) -> None:
    named = await upload(worker, job.task_id, b"")
    answer = await worker.get(f"/v1/blobs/{named}")
    assert (answer.status, answer.body) == (200, b"")
    ranged = await worker.get(f"/v1/blobs/{named}", headers={"Range": "bytes=0-"})
    assert_problem(ranged, "range_not_satisfiable")


@pytest.mark.usefixtures("job")
async def test_the_office_sees_the_files_of_every_task(office: Office) -> None:
    for role in (Role.SUPERVISOR, Role.DISPATCHER, Role.AUDITOR, Role.INTEGRATION):
        assert (await (await office.somebody(role)).get(PATH)).body == PNG


async def test_a_file_is_not_there_for_whoever_may_not_see_its_task(
    office: Office, worker: Person, job: Job
) -> None:
    _, stranger = await office.found_tenant()
    elsewhere = await office.hire(Role.SUPERVISOR, admin=stranger)
    for person in (await office.hire(Role.WORKER), office.admin, stranger, elsewhere):
        assert_problem(await person.get(PATH), "not_found")
    assert_problem(await office.stranger.get(PATH), "unauthenticated")
    dispatcher = await office.somebody(Role.DISPATCHER)
    await dispatcher.command("release", job, {"personal": {"reason": "needed elsewhere"}})
    assert_problem(await worker.get(PATH), "not_found")


async def test_the_next_worker_sees_what_was_stored_for_his_task(office: Office, job: Job) -> None:
    dispatcher, other = await office.somebody(Role.DISPATCHER), await office.hire(Role.WORKER)
    await dispatcher.command("release", job, {"personal": {"reason": "needed elsewhere"}})
    body = {"worker_id": other.principal_id, "personal": {"selection_reason": "free"}}
    await dispatcher.command("assign", job, body)
    assert (await other.get(PATH)).body == PNG


@pytest.mark.parametrize("name", ["0" * 64, HASH.upper(), HASH[:-1], "..%2f..%2fetc", "x"])
async def test_a_name_that_is_no_held_file_is_not_found(worker: Person, name: str) -> None:
    assert_problem(await worker.get(f"/v1/blobs/{name}"), "not_found")


async def test_a_file_whose_bytes_are_gone_is_not_found(
    office: Office, worker: Person, job: Job
) -> None:
    office.services.blobs.delete(office.tenant.tenant_id, HASH)
    assert_problem(await worker.get(PATH), "not_found")
    assert rows_of(office, "blob_link")[0]["task_id"] == job.task_id


@pytest.mark.usefixtures("job")
async def test_a_file_that_is_held_cannot_be_overwritten(worker: Person) -> None:
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        assert_problem(await worker.call(method, PATH, data=b"other"), "method_not_allowed")
    assert (await worker.get(PATH)).body == PNG
