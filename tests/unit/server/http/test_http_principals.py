"""Principals over HTTP: commands of the engine, with receipts, under keys."""

from typing import Any

import pytest

from support.office import Office, assert_problem
from workmate_shared.kernel.table import Role
from workmate_shared.wire.batch import command_hash, verify_receipt

NEW: dict[str, Any] = {
    "kind": "person",
    "display_name": "Ann Onym",
    "roles": ["worker"],
    "skills": ["electrical"],
    "domains": ["electrical"],
}


async def test_a_principal_is_created_under_its_own_id_with_a_receipt(office: Office) -> None:
    body = NEW | {"principal_id": "usr_8x92a"}
    answer = await office.admin.post("/v1/principals", body)
    assert answer.status == 201
    assert answer.headers["Location"] == "/v1/principals/usr_8x92a"
    told = answer.json
    assert told["principal_id"] == "usr_8x92a"
    assert told["outcome"] == "committed"
    assert told["principal"]["display_name"] == "Ann Onym"
    assert told["principal"]["roles"] == ["worker"]
    verified = verify_receipt(answer.receipt, office.log_keys)
    assert verified.leaf.command_hash == command_hash(told["command_bytes"].encode())
    assert "Ann Onym" not in told["command_bytes"]
    shown = await office.admin.get("/v1/principals/usr_8x92a")
    assert shown.json == told["principal"]
    assert shown.headers["ETag"] == '"1"'
    same = await office.admin.get("/v1/principals/usr_8x92a", headers={"If-None-Match": '"1"'})
    assert same.status == 304


async def test_without_an_id_the_key_names_the_principal(office: Office) -> None:
    first = await office.admin.post("/v1/principals", NEW, key="one")
    again = await office.admin.post("/v1/principals", NEW, key="one")
    other = await office.admin.post("/v1/principals", NEW, key="two")
    assert first.json["principal_id"] == again.json["principal_id"]
    assert first.json["principal_id"] != other.json["principal_id"]
    assert again.status == 201
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.body == first.body


async def test_the_same_principal_again_is_unchanged_and_another_content_a_conflict(
    office: Office,
) -> None:
    body = NEW | {"principal_id": "usr_a"}
    await office.admin.post("/v1/principals", body)
    again = await office.admin.post("/v1/principals", body)
    assert (again.status, again.json["outcome"]) == (200, "unchanged")
    other = await office.admin.post("/v1/principals", body | {"skills": []})
    assert_problem(other, "principal_exists")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/principals", NEW),
        ("/v1/principals/usr_a/change", {"skills": []}),
        ("/v1/principals/usr_a/deactivate", {}),
        ("/v1/tokens", {"principal_id": "usr_a"}),
        ("/v1/enrolment-codes", {"principal_id": "usr_a"}),
        ("/v1/devices/dev/revoke", {}),
    ],
)
async def test_every_post_of_administration_needs_a_key(
    office: Office, path: str, body: dict[str, Any]
) -> None:
    assert_problem(await office.admin.post(path, body, key=None), "idempotency_key_missing")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (NEW | {"unknown": 1}, "$"),
        (NEW | {"roles": ["king"]}, "$.roles[0]"),
        (NEW | {"kind": "robot"}, "$.kind"),
        (NEW | {"display_name": " "}, "$.personal.display_name"),
        (NEW | {"principal_id": "a b"}, "$.principal_id"),
        ({"kind": "person"}, "$"),
    ],
)
async def test_what_is_no_principal_is_refused_with_the_path(
    office: Office, body: dict[str, Any], path: str
) -> None:
    problem = assert_problem(await office.admin.post("/v1/principals", body), "invalid_command")
    assert problem["path"] == path


async def test_a_change_replaces_what_it_names_and_leaves_the_rest(office: Office) -> None:
    await office.admin.post("/v1/principals", NEW | {"principal_id": "usr_a"})
    body = {"skills": ["heights"], "away": True, "display_name": "Ann Other"}
    answer = await office.admin.post("/v1/principals/usr_a/change", body)
    assert answer.status == 200
    principal = answer.json["principal"]
    assert principal["skills"] == ["heights"]
    assert principal["roles"] == ["worker"]
    assert (principal["away"], principal["display_name"]) == (True, "Ann Other")
    stale = await office.admin.post("/v1/principals/usr_a/change", {"away": False}, version=1)
    assert_problem(stale, "version_conflict")


async def test_who_is_deactivated_holds_no_token_that_counts(office: Office) -> None:
    worker = await office.hire(Role.WORKER, principal_id="usr_a")
    assert (await worker.get("/v1/tasks")).status == 200
    answer = await office.admin.post("/v1/principals/usr_a/deactivate")
    assert answer.json["principal"]["state"] == "deactivated"
    assert_problem(await worker.get("/v1/tasks"), "unauthenticated")
    again = await office.admin.post("/v1/principals/usr_a/deactivate")
    assert_problem(again, "state_not_allowed")


async def test_principals_are_listed_by_id_page_by_page(office: Office) -> None:
    for number in range(5):
        await office.admin.post("/v1/principals", NEW | {"principal_id": f"usr_{number}"})
    found: list[str] = []
    query: str | None = "limit=2"
    while query is not None:
        page = (await office.admin.get(f"/v1/principals?{query}")).json
        found += [item["principal_id"] for item in page["items"]]
        query = f"limit=2&cursor={page['next']}" if page["next"] else None
    assert found == sorted(found)
    assert set(found) == {f"usr_{n}" for n in range(5)} | {"system", office.admin.principal_id}


async def test_credentials_are_no_part_of_what_readers_of_principals_see(
    office: Office,
) -> None:
    dispatcher = await office.hire(Role.DISPATCHER)
    listed = await dispatcher.get("/v1/principals")
    assert "credential" not in str(listed.json)
    assert "hash" not in str(listed.json)


async def test_everybody_may_see_himself(office: Office) -> None:
    worker = await office.hire(Role.WORKER)
    other = await office.hire(Role.WORKER)
    mine = await worker.get(f"/v1/principals/{worker.principal_id}")
    assert mine.json["principal_id"] == worker.principal_id
    theirs = await worker.get(f"/v1/principals/{other.principal_id}")
    assert_problem(theirs, "not_found")


async def test_a_key_of_administration_with_other_content_is_refused(office: Office) -> None:
    body = NEW | {"principal_id": "usr_a"}
    await office.admin.post("/v1/principals", body, key="one")
    for path, other in (
        ("/v1/principals", body | {"display_name": "Other"}),
        ("/v1/principals/usr_a/deactivate", {}),
        ("/v1/tokens", {"principal_id": "usr_a"}),
    ):
        answer = await office.admin.post(path, other, key="one")
        assert_problem(answer, "idempotency_key_reused")
