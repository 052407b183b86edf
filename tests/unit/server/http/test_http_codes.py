"""Every code of the catalogue that the HTTP core can answer is reached, with its status."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import text

from support.office import (
    FIX,
    Answer,
    Office,
    assert_problem,
    close_office,
    disclose,
    make_office,
    open_office,
)
from workmate_server.config import Settings
from workmate_shared.kernel.catalogue import CATALOGUE
from workmate_shared.kernel.table import Role
from workmate_shared.wire.batch import verify_receipt

D, N, S, W = Role.DISPATCHER, Role.INTEGRATION, Role.SUPERVISOR, Role.WORKER
REASON = {"personal": {"reason": "because"}}
PHOTO = "aa" * 32

Case = Callable[[Office], Awaitable[Answer]]
CASES: dict[str, Case] = {}


def case(scenario: Case) -> Case:
    CASES[scenario.__name__] = scenario
    return scenario


@case
async def version_conflict(office: Office) -> Answer:
    job = await office.job("accepted")
    return await (await office.somebody(D)).command("release", job, REASON, version=2)


@case
async def external_id_conflict(office: Office) -> Answer:
    await office.create(external_id="one", priority=1)
    return (await office.create(external_id="one", priority=2, idempotency_key="other"))[0]


@case
async def principal_exists(office: Office) -> Answer:
    await office.hire(W, principal_id="usr_twice")
    body = {"principal_id": "usr_twice", "kind": "service", "display_name": "Other"}
    return await office.admin.post("/v1/principals", body)


@case
async def state_not_allowed(office: Office) -> Answer:
    job = await office.job("accepted")
    return await job.worker.command("arrive", job, {"position": FIX})


@case
async def manifest_decided(office: Office) -> Answer:
    job = await office.job("proof_pending")
    supervisor = await office.somebody(S)
    await supervisor.command("reject_proof", job, {"manifest_id": job.manifest_id, **REASON})
    return await job.worker.command("submit_proof", job, job.proof(task_version=5))


@case
async def manifest_id_reused(office: Office) -> Answer:
    job = await office.job("in_progress")
    await job.worker.command("hand_over", job, job.proof())
    return await job.worker.command("submit_proof", job, job.proof(task_version=1))


@case
async def credential_exists(office: Office) -> Answer:
    worker = await office.somebody(W)
    await office.enrol(worker)
    _, signed = await office.prepare_enrolment(worker)
    return await office.stranger.post("/v1/enrolments", signed, key=None)


@case
async def role_not_allowed(office: Office) -> Answer:
    job = await office.job("assigned")
    return await (await office.somebody(D)).command("accept", job)


@case
async def not_assignee(office: Office) -> Answer:
    job = await office.job("assigned")
    other = await office.hire(W)
    dispatcher = await office.somebody(D)
    body = {"worker_id": other.principal_id, "personal": {"selection_reason": "nearer"}}
    await dispatcher.command("assign", job, body)
    return await job.worker.command("accept", job)


@case
async def override_invalid(office: Office) -> Answer:
    job = await office.job("assigned")
    override = {"on_behalf_of": "usr_nobody", "personal": {"reason": "laptop broken"}}
    return await (await office.somebody(S)).command("accept", job, {"override": override})


@case
async def self_approval(office: Office) -> Answer:
    job = await office.job("in_progress")
    supervisor = await office.somebody(S)
    override = {"on_behalf_of": job.worker.principal_id, "personal": {"reason": "laptop broken"}}
    await supervisor.command("submit_proof", job, {**job.proof(), "override": override})
    return await supervisor.command("approve_proof", job, {"manifest_id": job.manifest_id})


@case
async def observation_not_allowed(office: Office) -> Answer:
    job = await office.job("assigned")
    reading = {"kind": "sla_risk", "at": "2026-03-01T09:00:00Z", "due_at": "2026-03-01T10:00:00Z"}
    return await job.worker.command("observe", job, {"readings": [reading]})


@case
async def worker_not_eligible(office: Office) -> Answer:
    job = await office.job(required_skills=["heights"])
    body = {"worker_id": job.worker.principal_id, "personal": {"selection_reason": "near"}}
    return await (await office.somebody(D)).command("assign", job, body)


@case
async def proof_policy_unmet(office: Office) -> Answer:
    item = {"item_id": "isolated", "prompt": "Isolated?", "kind": "confirm", "required": True}
    job = await office.job("proof_pending", proof_policy={"checklist": [item]})
    body = {"manifest_id": job.manifest_id}
    return await (await office.somebody(S)).command("approve_proof", job, body)


@case
async def manifest_unknown(office: Office) -> Answer:
    job = await office.job("proof_pending")
    return await (await office.somebody(S)).command("approve_proof", job, {"manifest_id": "other"})


@case
async def policy_locked(office: Office) -> Answer:
    job = await office.job("in_progress")
    return await (await office.somebody(D)).command("amend", job, {"proof_policy": {}})


@case
async def not_found(office: Office) -> Answer:
    return await (await office.somebody(S)).get("/v1/tasks/none")


@case
async def version_ahead(office: Office) -> Answer:
    job = await office.job("assigned")
    return await job.worker.command("accept", job, version=9)


@case
async def bytes_missing(office: Office) -> Answer:
    job = await office.job("in_progress")
    return await job.worker.command("store_evidence", job, {"hashes": [PHOTO]})


@case
async def disclosure_missing(office: Office) -> Answer:
    job = await office.job("in_progress")
    personal, _ = disclose({"notes": "done"})
    return await job.worker.command("submit_proof", job, job.proof(personal=personal))


@case
async def invalid_command(office: Office) -> Answer:
    job = await office.job("assigned")
    return await job.worker.command("accept", job, {"wroker": 1})


@case
async def invalid_request(office: Office) -> Answer:
    return await (await office.somebody(S)).get("/v1/tasks?limit=501")


@case
async def idempotency_key_missing(office: Office) -> Answer:
    job = await office.job("assigned")
    return await job.worker.command("accept", job, key=None)


@case
async def idempotency_key_mismatch(office: Office) -> Answer:
    job = await office.job("assigned")
    return await job.worker.command("accept", job, {"idempotency_key": "a"}, key="b")


@case
async def disclosure_mismatch(office: Office) -> Answer:
    job = await office.job("in_progress")
    personal, disclosure = disclose({"notes": "done"})
    changed = msgspec.structs.replace(disclosure, value='{"notes":"more"}')
    proof = job.proof({personal: changed}, personal=personal)
    return await job.worker.command("submit_proof", job, proof)


@case
async def content_hash_mismatch(office: Office) -> Answer:
    job = await office.job("in_progress")
    return await job.worker.command("submit_proof", job, job.proof() | {"content_hash": PHOTO})


@case
async def bad_cursor(office: Office) -> Answer:
    return await (await office.somebody(S)).get("/v1/tasks?cursor=AAAA")


@case
async def signature_invalid(office: Office) -> Answer:
    _, signed = await office.prepare_enrolment(await office.somebody(W))
    forged = msgspec.to_builtins(signed)
    forged["envelope"]["signatures"][0]["sig"] = "A" * 86 + "=="
    return await office.stranger.post("/v1/enrolments", forged, key=None)


@case
async def unauthenticated(office: Office) -> Answer:
    return await office.stranger.get("/v1/tasks")


@case
async def creation_not_allowed(office: Office) -> Answer:
    return (await office.create(await office.somebody(D)))[0]


@case
async def access_not_allowed(office: Office) -> Answer:
    return await (await office.somebody(W)).get("/v1/reviews")


@case
async def location_purpose_refused(office: Office) -> Answer:
    return await (await office.somebody(S)).get("/v1/tasks", purpose="curiosity")


@case
async def method_not_allowed(office: Office) -> Answer:
    return await office.admin.call("PUT", "/v1/tasks")


@case
async def cursor_expired(office: Office) -> Answer:
    await office.job()
    await office.job()
    supervisor = await office.somebody(S)
    cursor = (await supervisor.get("/v1/tasks?limit=1")).json["next"]
    with office.services.database.write() as connection:
        connection.execute(text("UPDATE tenant_head SET lineage = 'another-life'"))
    return await supervisor.get(f"/v1/tasks?limit=1&cursor={cursor}")


@case
async def too_large(office: Office) -> Answer:
    sender = await office.somebody(N)
    body = b'{"external_id":"' + b"x" * office.services.settings.request_bytes_max + b'"}'
    headers = {"Content-Type": "application/json"}
    return await sender.call("POST", "/v1/tasks", data=body, headers=headers)


@case
async def wrong_type(office: Office) -> Answer:
    return await (await office.somebody(N)).call("POST", "/v1/tasks", data=b"a=1")


@case
async def idempotency_key_reused(office: Office) -> Answer:
    job = await office.job("assigned")
    await job.worker.command("accept", job, key="one")
    return await job.worker.command("start_travel", job, key="one")


@case
async def expected_version_required(office: Office) -> Answer:
    job = await office.job("assigned")
    return await job.worker.command("accept", job, version=None)


@case
async def enrolment_unknown(office: Office) -> Answer:
    return await office.stranger.post("/v1/enrolments/offer", {"code_hash": PHOTO}, key=None)


@case
async def shutting_down(office: Office) -> Answer:
    sender = await office.somebody(N)
    await office.services.engine.stop()
    return (await office.create(sender))[0]


@case
async def database_away(office: Office) -> Answer:
    with office.services.database.write() as connection:
        connection.execute(text("ALTER TABLE tenant_head RENAME TO gone"))
    return await office.stranger.get("/health/ready")


@case
async def internal(office: Office) -> Answer:
    supervisor, job = await office.somebody(S), await office.job()
    with office.services.database.write() as connection:
        connection.execute(text("UPDATE task_snapshot SET snapshot = x'00'"))
    return await supervisor.get(f"/v1/tasks/{job.task_id}")


ELSEWHERE = {
    "overloaded": "below, with a short queue",
    "too_many": "below, with a low limit",
    "chain_broken": "needs `after`, which only signed commands have",
    "blocked_by": "needs `after`, which only signed commands have",
    "history_lost": "the server writes the lineage of JSON commands itself",
    "device_revoked": "only signed commands come from a device",
    "actor_deactivated": "a deactivated caller's token is refused before; sync tells it",
    "validation_not_automatic": "only the server's own rules approve as the system",
    "credential_unknown": "a credential that is not there is not found before",
    "unknown_schema": "the server writes the newest version itself",
    "tenant_mismatch": "the server writes the tenant itself",
    "range_not_satisfiable": "blobs",
    "protocol_too_old": "sync",
    "re_enrol": "sync",
    "upload_conflict": "uploads",
    "hash_mismatch": "uploads",
    "upload_protocol": "uploads",
}


@pytest.mark.parametrize("code", CASES)
async def test_a_code_comes_as_a_problem_with_its_status_and_a_receipt_if_recorded(
    office: Office, code: str
) -> None:
    answer = await CASES[code](office)
    problem = assert_problem(answer, code)
    if "receipt" not in problem:
        return
    verified = verify_receipt(answer.receipt, office.log_keys)
    assert verified.leaf.code == code
    assert verified.leaf.outcome == problem["outcome"]
    assert problem["details"] == verified.leaf.details


def test_every_code_of_the_catalogue_is_reached_or_named_with_the_reason_why_not() -> None:
    assert set(CASES) | set(ELSEWHERE) == set(CATALOGUE)
    assert not set(CASES) & set(ELSEWHERE)


async def test_a_full_queue_answers_overloaded_and_records_nothing(tmp_path: Path) -> None:
    settings = Settings(batch_commands_max=1, commit_queue_max=4)
    async with open_office(tmp_path, settings) as office:
        sender = await office.somebody(N)
        await office.create(sender)
        waiting = set()
        with office.services.database.write():
            waiting = {asyncio.create_task(office.create(sender)) for _ in range(9)}
            refused: list[Answer] = []
            while len(refused) < 5:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                refused += [task.result()[0] for task in done]
        for answer in refused:
            assert_problem(answer, "overloaded")
        taken = [answer for answer, _ in await asyncio.gather(*waiting)]
        assert [answer.status for answer in taken] == [201] * 4
        assert len((await sender.get("/v1/tasks")).json["items"]) == 5


async def test_too_many_unknown_tokens_are_told_to_wait_and_a_known_one_is_not(
    tmp_path: Path,
) -> None:
    office = await make_office(tmp_path, Settings(token_failures_max=2))
    try:
        guess = {"Authorization": "Bearer wmt_" + "0" * 64}
        for _ in range(2):
            answer = await office.stranger.get("/v1/tasks", headers=guess)
            assert_problem(answer, "unauthenticated")
        answer = await office.stranger.get("/v1/tasks", headers=guess)
        assert_problem(answer, "too_many")
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert (await office.admin.get("/v1/principals")).status == 200
        office.clock.advance(61)
        answer = await office.stranger.get("/v1/tasks", headers=guess)
        assert_problem(answer, "unauthenticated")
    finally:
        await close_office(office)
