"""Enrolment and device sessions over HTTP: a code once, a key proven, a session short."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.office import Device, Office, Person, assert_problem, open_office
from workmate_server.config import Settings
from workmate_shared.kernel.table import Role
from workmate_shared.principals.enrolment import code_hash, key_matches, parse_code
from workmate_shared.wire.batch import command_hash, verify_receipt
from workmate_shared.wire.binary import from_base64, to_base64
from workmate_shared.wire.dsse import COMMAND_TYPE, SESSION_TYPE, sign
from workmate_shared.wire.messages import SignedCommand
from workmate_shared.wire.session import Challenge, encode_challenge, sign_challenge


async def issue(office: Office, worker: Person, key: str = "code") -> dict[str, Any]:
    answer = await office.admin.post(
        "/v1/enrolment-codes", {"principal_id": worker.principal_id}, key=key
    )
    assert answer.status == 200
    told: dict[str, Any] = answer.json
    return told


def resigned(signed: SignedCommand, seed: bytes, **changes: Any) -> SignedCommand:
    """Return the command with other fields, signed anew."""
    fields = msgspec.json.decode(from_base64(signed.envelope.payload))
    return SignedCommand(sign(COMMAND_TYPE, msgspec.json.encode(fields | changes), seed))


async def test_a_code_names_the_server_and_is_shown_once(office: Office) -> None:
    worker = await office.somebody(Role.WORKER)
    first = await issue(office, worker)
    _, prefix = parse_code(first["code"])
    assert key_matches(office.services.keys.log_key.key_id, prefix)
    again = await issue(office, worker)
    assert again["code"] is None
    assert again["already_issued"] is True
    assert again["expires_at"] == first["expires_at"]
    assert again["receipt"] == first["receipt"]


async def test_an_offer_tells_whom_a_code_enrols_until_it_ends(office: Office) -> None:
    worker = await office.somebody(Role.WORKER)
    query = {"code_hash": code_hash((await issue(office, worker))["code"])}
    answer = await office.stranger.post("/v1/enrolments/offer", query, key=None)
    assert answer.status == 200
    assert answer.json["principal_id"] == worker.principal_id
    assert answer.json["display_name"] == f"The {worker.principal_id}"
    assert answer.json["server_keys"] == {name: key.hex() for name, key in office.log_keys.items()}
    assert answer.json["lineage"] == office.tenant.lineage
    office.clock.advance(office.services.settings.enrolment_code_life_seconds)
    late = await office.stranger.post("/v1/enrolments/offer", query, key=None)
    assert_problem(late, "enrolment_unknown")


async def test_the_first_signed_command_enrols_and_a_repeat_gets_the_same_answer(
    office: Office,
) -> None:
    worker = await office.somebody(Role.WORKER)
    device, signed = await office.prepare_enrolment(worker)
    first = await office.stranger.post("/v1/enrolments", signed, key=None)
    assert first.status == 200
    told = first.json
    assert (told["status"], told["outcome"]) == ("committed", "committed")
    assert told["lineage"] == office.tenant.lineage
    verified = verify_receipt(first.receipt, office.log_keys)
    assert verified.leaf.command_hash == command_hash(from_base64(signed.envelope.payload))
    office.clock.advance(office.services.settings.enrolment_code_life_seconds)
    again = await office.stranger.post("/v1/enrolments", signed, key=None)
    assert again.body == first.body
    assert again.headers["Idempotency-Replayed"] == "true"
    [item] = (await office.admin.get("/v1/devices")).json["items"]
    assert (item["device_id"], item["principal_id"]) == (device.device_id, worker.principal_id)


async def test_a_code_binds_one_key_and_no_second(office: Office) -> None:
    worker = await office.somebody(Role.WORKER)
    code = (await issue(office, worker))["code"]
    _, first = await office.prepare_enrolment(worker, number=1, code=code)
    _, second = await office.prepare_enrolment(worker, number=2, code=code)
    assert (await office.stranger.post("/v1/enrolments", first, key=None)).status == 200
    answer = await office.stranger.post("/v1/enrolments", second, key=None)
    assert_problem(answer, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"command_id": "aa" * 32}, "enrolment_unknown"),
        ({"tenant_id": "no-such-tenant"}, "enrolment_unknown"),
        ({"aggregate_id": "usr_none", "actor": None}, "enrolment_unknown"),
        ({"server_key_id": "aa" * 32}, "invalid_command"),
        ({"public_key": "aa" * 32}, "signature_invalid"),
        ({"public_key": "short"}, "invalid_command"),
        ({"type": "accept"}, "invalid_command"),
        ({"unknown": 1}, "invalid_command"),
    ],
)
async def test_an_enrolment_that_is_not_right_is_refused_and_burns_nothing(
    office: Office, changes: dict[str, Any], code: str
) -> None:
    worker = await office.somebody(Role.WORKER)
    device, signed = await office.prepare_enrolment(worker)
    if "actor" in changes:
        actor = {"id": "usr_none", "role": "worker", "device_id": device.device_id}
        changes = changes | {"actor": actor}
    wrong = resigned(signed, device.seed, **changes)
    answer = await office.stranger.post("/v1/enrolments", wrong, key=None)
    assert_problem(answer, code)
    assert (await office.stranger.post("/v1/enrolments", signed, key=None)).status == 200


async def test_what_names_no_code_of_its_actor_leaves_no_trace(office: Office) -> None:
    worker = await office.somebody(Role.WORKER)
    other = await office.hire(Role.DISPATCHER)
    device, signed = await office.prepare_enrolment(worker)
    before = (await office.admin.get("/v1/log/batches?limit=500")).body
    for name, code in ((other.principal_id, None), (worker.principal_id, "aa" * 32)):
        actor = {"id": name, "role": "worker", "device_id": device.device_id}
        changes = {"actor": actor, "aggregate_id": name} | ({"command_id": code} if code else {})
        wrong = resigned(signed, device.seed, **changes)
        answer = await office.stranger.post("/v1/enrolments", wrong, key=None)
        assert_problem(answer, "enrolment_unknown")
    assert (await office.admin.get("/v1/log/batches?limit=500")).body == before


async def test_a_device_without_an_id_enrols_nothing(office: Office) -> None:
    worker = await office.somebody(Role.WORKER)
    device, signed = await office.prepare_enrolment(worker)
    actor = {"id": worker.principal_id, "role": "worker"}
    wrong = resigned(signed, device.seed, actor=actor)
    problem = assert_problem(
        await office.stranger.post("/v1/enrolments", wrong, key=None), "invalid_command"
    )
    assert problem["path"] == "$.actor.device_id"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda e: e | {"payloadType": SESSION_TYPE},
        lambda e: e | {"signatures": []},
        lambda e: e | {"signatures": e["signatures"] * 2},
        lambda e: e | {"payload": e["payload"][:-4]},
        lambda e: e | {"payload": "!"},
        lambda e: e | {"payload": to_base64(b"[]")},
        lambda e: e | {"signatures": [e["signatures"][0] | {"keyid": "aa" * 32}]},
    ],
)
async def test_an_envelope_that_proves_nothing_is_refused(
    office: Office, spoil: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    _, signed = await office.prepare_enrolment(await office.somebody(Role.WORKER))
    envelope = spoil(msgspec.to_builtins(signed)["envelope"])
    answer = await office.stranger.post("/v1/enrolments", {"envelope": envelope}, key=None)
    assert answer.code in ("signature_invalid", "invalid_command")
    assert answer.status == 400


async def challenge(office: Office, device: Device, **changes: Any) -> Challenge:
    named = {"tenant_id": device.tenant_id, "device_id": device.device_id}
    asked = await office.stranger.post("/v1/sessions/nonce", named, key=None)
    fields = {
        "purpose": "workmate.session",
        "server_key_id": asked.json["server_key_id"],
        "nonce": asked.json["nonce"],
        **named,
    }
    return msgspec.convert(fields | changes, Challenge)


async def test_a_session_is_a_workers_and_ends_soon(office: Office) -> None:
    job = await office.job("assigned")
    session = await office.open_session(await office.enrol(job.worker))
    listed = await session.get("/v1/tasks")
    assert [item["task_id"] for item in listed.json["items"]] == [job.task_id]
    office.clock.advance(office.services.settings.session_life_seconds)
    assert_problem(await session.get("/v1/tasks"), "unauthenticated")


async def test_a_session_of_somebody_with_more_roles_has_the_workers_only(
    office: Office,
) -> None:
    person = await office.hire(Role.WORKER, Role.SUPERVISOR)
    session = await office.open_session(await office.enrol(person))
    assert_problem(await session.get("/v1/reviews"), "access_not_allowed")


async def test_a_challenge_for_a_device_that_is_not_there_looks_like_any_other(
    office: Office,
) -> None:
    device = await office.enrol(await office.somebody(Role.WORKER))
    bodies = [
        {"tenant_id": device.tenant_id, "device_id": device.device_id},
        {"tenant_id": device.tenant_id, "device_id": "dev-none"},
        {"tenant_id": "none", "device_id": "dev-none"},
    ]
    answers = [await office.stranger.post("/v1/sessions/nonce", body, key=None) for body in bodies]
    shapes = {(answer.status, tuple(answer.json), len(answer.json["nonce"])) for answer in answers}
    assert len(shapes) == 1


async def test_a_challenge_is_answered_once(office: Office) -> None:
    device = await office.enrol(await office.somebody(Role.WORKER))
    signed = sign_challenge(await challenge(office, device), device.seed)
    assert (await office.stranger.post("/v1/sessions", signed, key=None)).status == 200
    again = await office.stranger.post("/v1/sessions", signed, key=None)
    assert_problem(again, "unauthenticated")


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "00" * 40},
        {"nonce": "zz"},
        {"nonce": "00"},
        {"server_key_id": "aa" * 32},
        {"device_id": "dev-none"},
        {"tenant_id": "none"},
    ],
)
async def test_an_answer_to_another_challenge_opens_nothing(
    office: Office, changes: dict[str, Any]
) -> None:
    device = await office.enrol(await office.somebody(Role.WORKER))
    signed = sign_challenge(await challenge(office, device, **changes), device.seed)
    answer = await office.stranger.post("/v1/sessions", signed, key=None)
    assert_problem(answer, "unauthenticated")


async def test_a_challenge_given_to_one_device_opens_nothing_for_another(
    office: Office,
) -> None:
    worker = await office.somebody(Role.WORKER)
    device, other = await office.enrol(worker), await office.enrol(worker, number=2)
    stolen = await challenge(office, device)
    moved = msgspec.structs.replace(stolen, device_id=other.device_id)
    for wrong in (sign_challenge(moved, other.seed), sign_challenge(stolen, other.seed)):
        answer = await office.stranger.post("/v1/sessions", wrong, key=None)
        assert_problem(answer, "unauthenticated")


async def test_a_command_is_no_answer_to_a_challenge(office: Office) -> None:
    device = await office.enrol(await office.somebody(Role.WORKER))
    data = encode_challenge(await challenge(office, device))
    wrong = sign(COMMAND_TYPE, data, device.seed)
    answer = await office.stranger.post("/v1/sessions", wrong, key=None)
    assert_problem(answer, "unauthenticated")


async def test_a_challenge_ends(office: Office) -> None:
    device = await office.enrol(await office.somebody(Role.WORKER))
    signed = sign_challenge(await challenge(office, device), device.seed)
    office.clock.advance(office.services.settings.nonce_life_seconds)
    answer = await office.stranger.post("/v1/sessions", signed, key=None)
    assert_problem(answer, "unauthenticated")


@pytest.mark.parametrize("how", ["revoked", "deactivated"])
async def test_who_may_act_no_more_still_gets_a_session_that_reaches_nothing_here(
    office: Office, how: str
) -> None:
    job = await office.job("assigned")
    device = await office.enrol(job.worker)
    session = await office.open_session(device)
    if how == "revoked":
        path = f"/v1/devices/{device.device_id}/revoke"
        answer = await office.admin.post(path, {"wipe": True})
        assert (answer.json["device_id"], answer.json["revoked"]) == (device.device_id, True)
        [item] = (await office.admin.get("/v1/devices")).json["items"]
        assert (item["revoked"], item["wipe"]) == (True, True)
    else:
        await office.admin.post(f"/v1/principals/{job.worker.principal_id}/deactivate")
    for person in (session, await office.open_session(device)):
        for path in ("/v1/tasks", f"/v1/tasks/{job.task_id}", "/v1/principals"):
            assert_problem(await person.get(path), "unauthenticated")
        answer = await person.command("accept", job)
        assert_problem(answer, "unauthenticated")


async def test_the_last_contact_of_a_device_is_listed(office: Office) -> None:
    device = await office.enrol(await office.somebody(Role.WORKER))
    [item] = (await office.admin.get("/v1/devices")).json["items"]
    assert item["last_contact_at"] is None
    session = await office.open_session(device)
    await session.get("/v1/tasks")
    [item] = (await office.admin.get("/v1/devices")).json["items"]
    assert item["last_contact_at"] is not None
    assert item["report"] is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/enrolments/offer", {"code_hash": "aa" * 32}),
        ("/v1/sessions/nonce", {"tenant_id": "t", "device_id": "d"}),
    ],
)
async def test_too_many_tries_of_one_address_must_wait(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    settings = Settings(enrolment_attempts_max=3, session_attempts_max=3)
    async with open_office(tmp_path, settings) as office:
        for _ in range(3):
            answer = await office.stranger.post(path, body, key=None)
            assert answer.status != 429
        answer = await office.stranger.post(path, body, key=None)
        assert_problem(answer, "too_many")
        office.clock.advance(int(answer.headers["Retry-After"]))
        assert (await office.stranger.post(path, body, key=None)).status != 429
