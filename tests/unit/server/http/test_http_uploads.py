"""Uploads of evidence by tus 1.0.0, over HTTP, with every way in which they go wrong."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.handheld import Handheld, rows_of, take_handheld
from support.office import Job, Office, Person, assert_problem, open_office
from support.tus import OFFSET_TYPE, VERSION, append, ask, begin, hash_of, metadata, upload
from workmate_server.config import Settings
from workmate_server.evidence.uploads import Uploader
from workmate_server.http.uploads import uploads_of
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.manifest import PhotoItem

JPEG = b"\xff\xd8\xff\xe0" + b"pixels" * 1000


@pytest.fixture
async def worker(office: Office) -> Person:
    return await office.somebody(Role.WORKER)


@pytest.fixture
async def job(office: Office, worker: Person) -> Job:
    return await office.job("in_progress", worker=worker)


async def test_the_server_says_what_it_takes_to_anybody_who_asks(office: Office) -> None:
    for path in ("/v1/uploads", "/v1/uploads/some-id"):
        answer = await office.stranger.call("OPTIONS", path)
        assert answer.status == 204
        assert answer.headers["Tus-Resumable"] == answer.headers["Tus-Version"] == "1.0.0"
        assert answer.headers["Tus-Extension"] == "creation"
        assert answer.headers["Tus-Max-Size"] == str(office.services.settings.upload_bytes_max)


async def test_a_file_arrives_in_pieces_and_counts_when_its_hash_is_verified(
    office: Office, worker: Person, job: Job
) -> None:
    begun = await begin(worker, job.task_id, JPEG, filename="../a b.jpg", filetype="text/html")
    assert begun.status == 201
    assert begun.headers["Upload-Offset"] == "0"
    location = begun.headers["Location"]
    for start in (0, 2000, 4000):
        assert (await ask(worker, location)).headers["Upload-Offset"] == str(start)
        assert rows_of(office, "blob") == []
        end = min(start + 2000, len(JPEG)) if start < 4000 else len(JPEG)
        sent = await append(worker, location, start, JPEG[start:end])
        assert (sent.status, sent.headers["Upload-Offset"]) == (204, str(end))
    (blob,) = rows_of(office, "blob")
    assert (blob["hash"], blob["size"]) == (hash_of(JPEG), len(JPEG))
    assert blob["media_type"] == "image/jpeg"
    (link,) = rows_of(office, "blob_link")
    assert (link["task_id"], link["principal_id"]) == (job.task_id, worker.principal_id)


async def test_progress_is_told_with_what_was_announced(worker: Person, job: Job) -> None:
    begun = await begin(worker, job.task_id, JPEG, filename="photo.jpg", filetype="image/jpeg")
    told = await ask(worker, begun.headers["Location"])
    assert told.status == 200
    assert told.headers["Upload-Length"] == str(len(JPEG))
    assert told.headers["Cache-Control"] == "no-store"
    assert told.headers["Tus-Resumable"] == "1.0.0"
    assert told.headers["Upload-Metadata"] == metadata(
        hash=hash_of(JPEG), task_id=job.task_id, filename="photo.jpg", filetype="image/jpeg"
    )


async def test_an_upload_that_has_ended_still_says_that_it_is_whole(
    worker: Person, job: Job
) -> None:
    begun = await begin(worker, job.task_id, JPEG)
    await append(worker, begun.headers["Location"], 0, JPEG)
    told = await ask(worker, begun.headers["Location"])
    assert told.headers["Upload-Offset"] == str(len(JPEG))
    again = await append(worker, begun.headers["Location"], 0, JPEG)
    assert_problem(again, "upload_conflict")
    nothing = await append(worker, begun.headers["Location"], len(JPEG), b"")
    assert nothing.status == 204


async def test_an_empty_file_is_whole_when_it_begins(
    office: Office, worker: Person, job: Job
) -> None:
    begun = await begin(worker, job.task_id, b"")
    assert (begun.status, begun.headers["Upload-Offset"]) == (201, "0")
    assert [row["size"] for row in rows_of(office, "blob")] == [0]
    assert (await ask(worker, begun.headers["Location"])).headers["Upload-Length"] == "0"


async def test_an_empty_file_under_another_hash_is_refused(worker: Person, job: Job) -> None:
    begun = await begin(worker, job.task_id, b"", named=hash_of(b"x"))
    assert_problem(begun, "hash_mismatch")


async def test_bytes_with_another_hash_are_discarded_and_may_be_sent_anew(
    office: Office, worker: Person, job: Job
) -> None:
    begun = await begin(worker, job.task_id, JPEG)
    location = begun.headers["Location"]
    damaged = await append(worker, location, 0, b"x" + JPEG[1:])
    assert_problem(damaged, "hash_mismatch")
    assert damaged.headers["Tus-Resumable"] == "1.0.0"
    assert rows_of(office, "blob") == []
    assert (await ask(worker, location)).status == 404
    await upload(worker, job.task_id, JPEG)
    assert len(rows_of(office, "blob")) == 1


async def test_whoever_has_uploaded_a_file_before_sends_no_byte_again(
    office: Office, worker: Person, job: Job
) -> None:
    other = await office.job("accepted", worker=worker)
    await upload(worker, job.task_id, JPEG)
    for task_id in (job.task_id, other.task_id):
        begun = await begin(worker, task_id, JPEG)
        assert (begun.status, begun.headers["Upload-Offset"]) == (201, str(len(JPEG)))
        told = await ask(worker, begun.headers["Location"])
        assert told.headers["Upload-Offset"] == told.headers["Upload-Length"] == str(len(JPEG))
    linked = {row["task_id"] for row in rows_of(office, "blob_link")}
    assert linked == {job.task_id, other.task_id}


async def test_to_know_the_hash_of_anothers_file_is_not_to_have_it(
    office: Office, worker: Person, job: Job
) -> None:
    await upload(worker, job.task_id, JPEG)
    other = await office.hire(Role.WORKER)
    theirs = await office.job("accepted", worker=other)
    begun = await begin(other, theirs.task_id, JPEG)
    assert begun.headers["Upload-Offset"] == "0"
    assert_problem(await other.get(f"/v1/blobs/{hash_of(JPEG)}"), "not_found")
    sent = await append(other, begun.headers["Location"], 0, b"y" * len(JPEG))
    assert_problem(sent, "hash_mismatch")
    assert (await worker.get(f"/v1/blobs/{hash_of(JPEG)}")).body == JPEG


async def test_two_uploads_of_one_file_both_end_well(
    office: Office, worker: Person, job: Job
) -> None:
    other = await office.hire(Role.WORKER)
    theirs = await office.job("accepted", worker=other)
    first = await begin(worker, job.task_id, JPEG)
    second = await begin(other, theirs.task_id, JPEG)
    answers = await asyncio.gather(
        append(worker, first.headers["Location"], 0, JPEG),
        append(other, second.headers["Location"], 0, JPEG),
    )
    assert [answer.status for answer in answers] == [204, 204]
    assert len(rows_of(office, "blob")) == 1
    assert len(rows_of(office, "blob_link")) == 2


async def test_two_files_with_one_name_both_arrive(
    office: Office, worker: Person, job: Job
) -> None:
    await upload(worker, job.task_id, JPEG, filename="photo.jpg")
    await upload(worker, job.task_id, JPEG + b"2", filename="photo.jpg")
    assert len(rows_of(office, "blob")) == 2


async def test_of_two_writers_at_one_offset_one_is_told_to_ask(worker: Person, job: Job) -> None:
    begun = await begin(worker, job.task_id, JPEG)
    location = begun.headers["Location"]
    answers = await asyncio.gather(*(append(worker, location, 0, JPEG[:3000]) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [204, 409, 409, 409]
    assert (await ask(worker, location)).headers["Upload-Offset"] == "3000"
    assert (await append(worker, location, 3000, JPEG[3000:])).status == 204


@pytest.mark.parametrize("offset", [1, 2999, 3001, len(JPEG)])
async def test_bytes_for_another_place_are_refused(worker: Person, job: Job, offset: int) -> None:
    begun = await begin(worker, job.task_id, JPEG)
    await append(worker, begun.headers["Location"], 0, JPEG[:3000])
    sent = await append(worker, begun.headers["Location"], offset, b"x")
    assert_problem(sent, "upload_conflict")
    assert sent.headers["Upload-Offset"] == "3000"


async def test_a_connection_that_is_cut_keeps_the_pieces_that_were_made_durable(
    tmp_path: Path,
) -> None:
    limits = Settings(upload_read_bytes=500, upload_piece_bytes=1000)
    async with open_office(tmp_path, limits) as office:
        worker = await office.somebody(Role.WORKER)
        job = await office.job("accepted", worker=worker)
        location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
        server = office.client.server
        _, writer = await asyncio.open_connection(server.host, server.port)
        head = (
            f"PATCH {location} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {worker.token}\r\n"
            f"Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: {OFFSET_TYPE}\r\n"
            f"Content-Length: {len(JPEG)}\r\n\r\n"
        )
        writer.write(head.encode() + JPEG[:3000])
        held = 0
        async with asyncio.timeout(30):
            while held < 3000:
                held = int((await ask(worker, location)).headers["Upload-Offset"])
        writer.close()
        await writer.wait_closed()
        assert (await append(worker, location, 3000, JPEG[3000:])).status == 204
        assert (await worker.get(f"/v1/blobs/{hash_of(JPEG)}")).body == JPEG


async def test_what_had_come_of_a_piece_when_the_connection_was_cut_is_kept_too(
    office: Office, worker: Person, job: Job
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    uploads = uploads_of(office.services)
    whose = Uploader(office.tenant.tenant_id, worker.principal_id, may_act=True)
    found, offset = await uploads.find(whose, location.rpartition("/")[2])

    async def cut_off() -> AsyncIterator[bytes]:
        yield JPEG[:3000]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await uploads.append(found, offset, cut_off())
    assert (await ask(worker, location)).headers["Upload-Offset"] == "3000"


async def test_a_large_file_is_made_durable_piece_by_piece(tmp_path: Path) -> None:
    limits = Settings(upload_read_bytes=1024, upload_piece_bytes=4096)
    async with open_office(tmp_path, limits) as office:
        worker = await office.somebody(Role.WORKER)
        job = await office.job("accepted", worker=worker)
        content = bytes(range(256)) * 1000
        await upload(worker, job.task_id, content)
        assert (await worker.get(f"/v1/blobs/{hash_of(content)}")).body == content


async def test_more_than_was_announced_is_refused(worker: Person, job: Job) -> None:
    begun = await begin(worker, job.task_id, JPEG)
    sent = await append(worker, begun.headers["Location"], 0, JPEG + b"x")
    assert assert_problem(sent, "too_large")["limit"] == len(JPEG)
    assert (await ask(worker, begun.headers["Location"])).headers["Upload-Offset"] == "0"


async def test_a_file_larger_than_the_limit_never_begins(
    office: Office, worker: Person, job: Job
) -> None:
    limit = office.services.settings.upload_bytes_max
    begun = await begin(worker, job.task_id, JPEG, length=limit + 1)
    assert assert_problem(begun, "too_large")["limit"] == limit
    assert rows_of(office, "upload") == []


@pytest.mark.parametrize("state", ["unassigned", "assigned", "completed", "cancelled"])
async def test_the_assignee_uploads_only_from_accepting_to_the_decision(
    office: Office, worker: Person, state: str
) -> None:
    job = await office.job(state, worker=worker)
    assert_problem(await begin(worker, job.task_id, JPEG), "not_found")


@pytest.mark.parametrize("state", ["accepted", "en_route", "in_progress", "proof_pending"])
async def test_the_assignee_uploads_what_he_likes_while_he_works(
    office: Office, worker: Person, state: str
) -> None:
    job = await office.job(state, worker=worker)
    assert (await begin(worker, job.task_id, JPEG)).status == 201


async def test_whose_command_named_a_file_may_upload_it_whatever_became_of_the_task(
    office: Office, worker: Person
) -> None:
    handheld = await take_handheld(office, worker)
    job = await office.job("in_progress", worker=worker)
    named = await hand_over(handheld, job, hash_of(JPEG))
    assert named == "committed"
    dispatcher = await office.somebody(Role.DISPATCHER)
    await dispatcher.command("release", job, {"personal": {"reason": "needed elsewhere"}})
    assert (await begin(worker, job.task_id, JPEG)).status == 201
    assert_problem(await begin(worker, job.task_id, JPEG + b"2"), "not_found")
    other = await office.hire(Role.WORKER)
    assert_problem(await begin(other, job.task_id, JPEG), "not_found")


async def hand_over(handheld: Handheld, job: Job, blob_hash: str) -> str:
    item = PhotoItem(
        item_id="after-1", slot="after", hash=blob_hash, size=len(JPEG), media_type="image/jpeg"
    )
    proof = job.proof(items=(item,))
    fields: dict[str, Any] = {name: proof[name] for name in ("manifest", "content_hash")}
    (outcome,) = await handheld.outcomes(handheld.signed("hand_over", job, **fields))
    job.version = outcome.version or job.version
    return outcome.status


async def test_a_worker_who_may_no_longer_act_uploads_only_what_his_commands_name(
    office: Office, worker: Person
) -> None:
    handheld = await take_handheld(office, worker)
    job = await office.job("in_progress", worker=worker)
    await office.admin.post(f"/v1/principals/{worker.principal_id}/deactivate")
    assert_problem(await begin(handheld.session, job.task_id, JPEG), "not_found")
    assert await hand_over(handheld, job, hash_of(JPEG)) == "rejected"
    await upload(handheld.session, job.task_id, JPEG)
    assert len(rows_of(office, "blob")) == 1


async def test_an_upload_belongs_to_the_one_who_began_it(
    office: Office, worker: Person, job: Job
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    other = await office.hire(Role.WORKER)
    _, admin = await office.found_tenant()
    for person in (other, admin, await office.somebody(Role.SUPERVISOR)):
        assert (await ask(person, location)).status == 404
        assert_problem(await append(person, location, 0, JPEG), "not_found")
    assert_problem(await append(office.stranger, location, 0, JPEG), "unauthenticated")
    assert (await ask(worker, location)).headers["Upload-Offset"] == "0"


@pytest.mark.parametrize("version", [None, "0.2.2", "2.0.0"])
async def test_another_version_of_the_protocol_is_refused_with_ours(
    worker: Person, job: Job, version: str | None
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    headers = {} if version is None else {"Tus-Resumable": version}
    sent = {"Upload-Offset": "0", "Content-Type": OFFSET_TYPE} | headers
    for method, path in (("POST", "/v1/uploads"), ("PATCH", location)):
        answer = await worker.call(method, path, data=b"x", headers=sent)
        assert_problem(answer, "upload_protocol")
        assert answer.headers["Tus-Version"] == "1.0.0"
    assert (await worker.call("HEAD", location, headers=headers)).status == 412


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/octet-stream"},
        {"Content-Type": "application/json"},
        {"Content-Encoding": "gzip"},
    ],
)
async def test_bytes_of_another_type_or_in_a_coding_are_refused(
    worker: Person, job: Job, headers: dict[str, str]
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    assert_problem(await append(worker, location, 0, JPEG, **headers), "wrong_type")


@pytest.mark.parametrize("offset", ["", "-1", "1.0", "zero", "9" * 40])
async def test_an_offset_that_is_no_number_is_refused(
    worker: Person, job: Job, offset: str
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    answer = await append(worker, location, 0, JPEG, **{"Upload-Offset": offset})
    assert_problem(answer, "invalid_request")


@pytest.mark.parametrize(
    "headers",
    [
        {"Upload-Length": "many"},
        {"Upload-Length": "-1"},
        {"Upload-Defer-Length": "1"},
        {"Upload-Metadata": ""},
        {"Upload-Metadata": "hash"},
        {"Upload-Metadata": "hash !!!,task_id dA=="},
        {"Upload-Metadata": metadata(hash="AB" * 32, task_id="t")},
        {"Upload-Metadata": metadata(hash="ab" * 32, task_id="../../etc")},
        {"Upload-Metadata": metadata(hash="ab" * 32)},
        {"Upload-Metadata": "task_id dA==,task_id dA=="},
        {"Upload-Metadata": "hash //8=,task_id dA=="},
    ],
)
async def test_an_announcement_that_makes_no_sense_is_refused(
    office: Office, worker: Person, job: Job, headers: dict[str, str]
) -> None:
    assert_problem(await begin(worker, job.task_id, JPEG, headers=headers), "invalid_request")
    assert rows_of(office, "upload") == []


async def test_a_hostile_file_name_is_kept_as_a_label_only(
    office: Office, worker: Person, job: Job
) -> None:
    await begin(worker, job.task_id, JPEG, filename="../../\x00\r\nX: y" + "a" * 999)
    (row,) = rows_of(office, "upload")
    assert row["filename"].startswith("../../X: y")
    assert len(row["filename"]) == 255


async def test_networks_that_pass_only_post_can_override_the_method(
    worker: Person, job: Job
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    sent = VERSION | {
        "X-HTTP-Method-Override": "PATCH",
        "Upload-Offset": "0",
        "Content-Type": OFFSET_TYPE,
    }
    assert (await worker.call("POST", location, data=JPEG, headers=sent)).status == 204
    asked = await worker.call(
        "POST", location, headers=VERSION | {"X-HTTP-Method-Override": "HEAD"}
    )
    assert asked.headers["Upload-Offset"] == str(len(JPEG))
    assert_problem(await worker.call("POST", location, headers=VERSION), "method_not_allowed")


async def test_an_upload_whose_bytes_were_complete_before_a_crash_is_finished_when_asked(
    office: Office, worker: Person, job: Job
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    upload_id = location.rpartition("/")[2]
    office.services.blobs.append(upload_id, 0, [JPEG])
    assert (await ask(worker, location)).headers["Upload-Offset"] == str(len(JPEG))
    assert len(rows_of(office, "blob")) == 1


async def test_a_file_finished_without_a_record_must_be_sent_again(
    office: Office, worker: Person, job: Job
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    upload_id = location.rpartition("/")[2]
    office.services.blobs.append(upload_id, 0, [JPEG])
    office.services.blobs.finish(upload_id, office.tenant.tenant_id, hash_of(JPEG))
    assert (await ask(worker, location)).status == 404
    await upload(worker, job.task_id, JPEG)
    assert (await worker.get(f"/v1/blobs/{hash_of(JPEG)}")).body == JPEG


async def test_an_upload_that_nobody_finished_ends_with_its_bytes(
    office: Office, worker: Person, job: Job
) -> None:
    location = (await begin(worker, job.task_id, JPEG)).headers["Location"]
    await append(worker, location, 0, JPEG[:100])
    uploads = uploads_of(office.services)
    assert await uploads.expire() == 0
    office.clock.advance(office.services.settings.upload_life_seconds + 1)
    assert await uploads.expire() == 1
    assert list(office.services.blobs.iterate_uploads()) == []
    assert rows_of(office, "upload") == []


async def test_evidence_counts_as_stored_only_when_this_worker_uploaded_it(
    office: Office, worker: Person, job: Job
) -> None:
    handheld = await take_handheld(office, worker)
    stored = handheld.signed("store_evidence", job, hashes=(hash_of(JPEG),))
    (early,) = await handheld.outcomes(stored)
    assert (early.status, early.code) == ("retry", "bytes_missing")
    await upload(worker, job.task_id, JPEG)
    (on_time,) = await handheld.outcomes(stored)
    assert on_time.status == "committed"
    assert [event.type for event in on_time.events] == ["evidence.stored"]
