"""What somebody may not see is answered exactly like what is not there, across tenants as well."""

from typing import Any

import pytest

from support.office import Answer, Office, Person, assert_problem
from workmate_shared.kernel.table import Role

ABSENT = "01930000-0000-8000-8000-00000000dead"
REASON = {"personal": {"reason": "because"}}
COMMANDS: list[tuple[str, Any]] = [
    ("accept", {}),
    ("cancel", REASON),
    (
        "observe",
        {
            "readings": [{"kind": "note", "at": "2026-03-01T09:00:00Z"}],
            "personal": {"note": "seen"},
        },
    ),
    ("approve-proof", {"manifest_id": "manifest"}),
]
READS = ["", "/events", "/observations"]


def told(answer: Answer) -> tuple[int, bytes, set[str]]:
    return answer.status, answer.body, set(answer.headers)


async def assert_alike(person: Person, there: str) -> None:
    """Demand that a task that is there and one that is not are answered in the same way."""
    for path in READS:
        hidden = await person.get(f"/v1/tasks/{there}{path}")
        absent = await person.get(f"/v1/tasks/{ABSENT}{path}")
        assert_problem(hidden, "not_found")
        assert told(hidden) == told(absent)
    for name, body in COMMANDS:
        hidden = await person.post(f"/v1/tasks/{there}/{name}", body, version=1)
        absent = await person.post(f"/v1/tasks/{ABSENT}/{name}", body, version=1)
        assert_problem(hidden, "not_found")
        assert told(hidden) == told(absent)


async def test_a_colleagues_task_is_like_one_that_is_not_there(office: Office) -> None:
    job = await office.job("accepted")
    await assert_alike(await office.hire(Role.WORKER), job.task_id)


@pytest.mark.parametrize("role", [Role.SUPERVISOR, Role.DISPATCHER, Role.AUDITOR, Role.WORKER])
async def test_another_tenants_task_is_like_one_that_is_not_there(
    office: Office, role: Role
) -> None:
    job = await office.job("accepted")
    _, admin = await office.found_tenant()
    await assert_alike(await office.hire(role, admin=admin), job.task_id)


async def test_another_tenants_ids_are_unknown_to_every_list_and_command(office: Office) -> None:
    job = await office.job("proof_pending")
    device = await office.enrol(job.worker)
    token_id = (await office.admin.get("/v1/tokens")).json["items"][0]["token_id"]
    _, admin = await office.found_tenant()
    supervisor = await office.hire(Role.SUPERVISOR, admin=admin)
    for path in ("/v1/tasks", "/v1/reviews"):
        assert (await supervisor.get(path)).json["items"] == []
    assert (await supervisor.get("/v1/log")).json["events"] == []
    for path in ("/v1/principals", "/v1/tokens", "/v1/devices", "/v1/log/batches"):
        listed = await admin.get(path)
        assert office.tenant.tenant_id not in str(listed.json)
        assert job.worker.principal_id not in str(listed.json)
    worker = job.worker.principal_id
    for answer in (
        await admin.get(f"/v1/principals/{worker}"),
        await admin.post(f"/v1/principals/{worker}/deactivate"),
        await admin.post("/v1/tokens", {"principal_id": worker}),
        await admin.post("/v1/enrolment-codes", {"principal_id": worker}),
        await admin.post(f"/v1/devices/{device.device_id}/revoke"),
        await admin.call("DELETE", f"/v1/tokens/{token_id}"),
    ):
        assert_problem(answer, "not_found")


async def test_the_same_job_of_two_tenants_is_two_tasks(office: Office) -> None:
    first, _ = await office.create(external_id="one")
    _, admin = await office.found_tenant()
    integration = await office.hire(Role.INTEGRATION, admin=admin)
    second, _ = await office.create(integration, external_id="one")
    assert first.status == second.status == 201
    assert first.json["task"]["task_id"] != second.json["task"]["task_id"]


async def test_a_cursor_of_one_tenant_opens_nothing_in_another(office: Office) -> None:
    await office.job()
    await office.job()
    mine = await office.somebody(Role.SUPERVISOR)
    cursor = (await mine.get("/v1/tasks?limit=1")).json["next"]
    _, admin = await office.found_tenant()
    theirs = await office.hire(Role.SUPERVISOR, admin=admin)
    assert_problem(await theirs.get(f"/v1/tasks?limit=1&cursor={cursor}"), "bad_cursor")


@pytest.mark.parametrize("name", ["..%2Fx", "%00", "a%20b", "-", "x" * 129, "%F0%9F%98%80"])
async def test_a_name_that_can_be_no_id_is_like_one_that_is_not_there(
    office: Office, name: str
) -> None:
    supervisor = await office.somebody(Role.SUPERVISOR)
    absent = await supervisor.get(f"/v1/tasks/{ABSENT}")
    answer = await supervisor.get(f"/v1/tasks/{name}")
    assert told(answer) == told(absent)
