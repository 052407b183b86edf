"""Who may do and read what over HTTP is what the transition tables say, and nothing else."""

from typing import Any

import pytest

from support.office import FIX, Answer, Job, Office, Person, assert_problem
from workmate_server.http.sight import TASK_LOG_ROLES
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.table import OFFICE_ROLES, TASK_TABLE

ROLES = [role for role in Role if role is not Role.SYSTEM]
REASON = {"personal": {"reason": "because"}}
READING = {"kind": "eta", "at": "2026-03-01T09:00:00Z", "arrive_at": "2026-03-01T09:30:00Z"}

BODIES: dict[str, Any] = {
    "assign": {"worker_id": "usr_w", "personal": {"selection_reason": "nearest"}},
    "decline": {"reason_code": "other", **REASON},
    "arrive": {"position": FIX},
    "submit_proof": {"manifest_id": "manifest"},
    "approve_proof": {"manifest_id": "manifest"},
    "reject_proof": {"manifest_id": "manifest", **REASON},
    "release": REASON,
    "amend": {"priority": 1},
    "cancel": REASON,
    "observe": {"readings": [READING]},
    "store_evidence": {"hashes": ["aa" * 32]},
    "dismiss_handover": {"manifest_id": "manifest", **REASON},
}
READS = {
    "/v1/tasks": OFFICE_ROLES | {Role.WORKER},
    "/v1/reviews": {Role.SUPERVISOR},
    "/v1/log": TASK_LOG_ROLES,
    "/v1/log/batches": {Role.AUDITOR, Role.ADMIN, Role.SUPERVISOR},
    "/v1/principals": {Role.ADMIN, Role.AUDITOR, Role.DISPATCHER, Role.SUPERVISOR},
    "/v1/tokens": {Role.ADMIN, Role.AUDITOR},
    "/v1/devices": {Role.ADMIN, Role.AUDITOR},
}


async def send(person: Person, command: str, job: Job) -> Answer:
    body = job.proof() if command == "hand_over" else BODIES.get(command)
    path = f"/v1/tasks/{job.task_id}/{command.replace('_', '-')}"
    return await person.post(path, body, version=99)


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_may_issue_the_commands_that_its_rows_name(
    office: Office, role: Role
) -> None:
    job = await office.job("assigned")
    person = await office.hire(role)
    created = await person.post("/v1/tasks", {"external_id": "one"})
    if role in TASK_TABLE.row("create_task").roles:
        assert created.status == 201
    else:
        assert_problem(created, "creation_not_allowed")
    for row in TASK_TABLE.rows:
        if row.creates:
            continue
        answer = await send(person, row.command, job)
        if role not in OFFICE_ROLES:
            assert_problem(answer, "not_found")
        elif role in row.roles:
            assert answer.code not in ("role_not_allowed", "not_found"), row.command
        else:
            assert_problem(answer, "role_not_allowed")


async def test_the_holder_may_issue_the_commands_of_a_worker_and_no_others(
    office: Office,
) -> None:
    job = await office.job("assigned")
    for row in TASK_TABLE.rows:
        if row.creates:
            continue
        answer = await send(job.worker, row.command, job)
        if Role.WORKER in row.roles:
            assert answer.code != "role_not_allowed", row.command
        else:
            assert_problem(answer, "role_not_allowed")


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_reads_the_lists_that_are_its_own(office: Office, role: Role) -> None:
    person = await office.hire(role)
    for path, readers in READS.items():
        answer = await person.get(path)
        if role in readers:
            assert answer.status == 200, path
        else:
            assert_problem(answer, "access_not_allowed")


@pytest.mark.parametrize("role", [role for role in ROLES if role is not Role.ADMIN])
async def test_only_an_administrator_administers(office: Office, role: Role) -> None:
    person = await office.hire(role)
    other = await office.hire(Role.WORKER, principal_id="usr_w")
    device = await office.enrol(other)
    token_id = (await office.admin.get("/v1/tokens")).json["items"][-1]["token_id"]
    new = {"kind": "person", "display_name": "New"}
    assert_problem(await person.post("/v1/principals", new), "creation_not_allowed")
    refused = [
        await person.post("/v1/principals/usr_w/deactivate"),
        await person.post("/v1/principals/usr_w/change", {"roles": []}),
        await person.post("/v1/tokens", {"principal_id": "usr_w"}),
        await person.post("/v1/enrolment-codes", {"principal_id": "usr_w"}),
        await person.post(f"/v1/devices/{device.device_id}/revoke"),
        await person.call("DELETE", f"/v1/tokens/{token_id}"),
    ]
    for answer in refused:
        assert answer.code in ("not_found", "role_not_allowed"), answer.body
        if role is not Role.AUDITOR and "receipt" not in answer.json:
            assert_problem(answer, "not_found")
    assert (await other.get("/v1/tasks")).status == 200


async def test_nobody_raises_his_own_rights(office: Office) -> None:
    worker = await office.somebody(Role.WORKER)
    path = f"/v1/principals/{worker.principal_id}/change"
    assert_problem(await worker.post(path, {"roles": ["admin"]}), "role_not_allowed")
    body = {"principal_id": worker.principal_id, "roles": ["admin"]}
    assert_problem(await worker.post("/v1/tokens", body), "role_not_allowed")


async def test_a_token_for_more_roles_than_its_principal_has_gives_no_more(
    office: Office,
) -> None:
    worker = await office.somebody(Role.WORKER)
    more = await office.give_token(worker.principal_id, roles=["worker", "supervisor"])
    assert_problem(await more.get("/v1/reviews"), "access_not_allowed")


async def test_a_token_for_fewer_roles_gives_fewer(office: Office) -> None:
    both = await office.hire(Role.SUPERVISOR, Role.DISPATCHER)
    fewer = await office.give_token(both.principal_id, roles=["dispatcher"])
    assert (await both.get("/v1/reviews")).status == 200
    assert_problem(await fewer.get("/v1/reviews"), "access_not_allowed")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/principals", {"kind": "service", "display_name": "X", "roles": ["system"]}),
        ("/v1/principals/usr_w/change", {"roles": ["system"]}),
        ("/v1/tokens", {"principal_id": "usr_w", "roles": ["system"]}),
    ],
)
async def test_the_servers_own_role_is_given_to_nobody(
    office: Office, path: str, body: dict[str, Any]
) -> None:
    await office.hire(Role.WORKER, principal_id="usr_w")
    problem = assert_problem(await office.admin.post(path, body), "invalid_command")
    assert problem["path"] == "$.roles"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/principals/system/deactivate", {}),
        ("/v1/principals/system/change", {"roles": []}),
        ("/v1/tokens", {"principal_id": "system", "roles": ["admin"]}),
        ("/v1/enrolment-codes", {"principal_id": "system"}),
    ],
)
async def test_the_server_itself_is_administered_by_nobody(
    office: Office, path: str, body: dict[str, Any]
) -> None:
    assert_problem(await office.admin.post(path, body), "not_found")
