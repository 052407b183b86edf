"""Access tokens: shown once, scoped, ending, revocable; who calls is found out anew each time."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from support.office import Office, Person, assert_problem
from workmate_server.store.tables import ServerTable
from workmate_shared.kernel.instants import format_instant
from workmate_shared.kernel.table import Role


def everything_stored(office: Office) -> str:
    with office.services.database.read() as connection:
        return "".join(
            str(row)
            for table in ServerTable.metadata.sorted_tables
            for row in connection.execute(select(table))
        )


async def test_a_token_is_shown_once_and_only_its_hash_is_kept(office: Office) -> None:
    await office.hire(Role.SUPERVISOR, principal_id="usr_s")
    body = {"principal_id": "usr_s"}
    first = await office.admin.post("/v1/tokens", body, key="one")
    assert first.status == 200
    token = first.json["token"]
    assert token.startswith("wmt_")
    assert len(token) == 4 + 64
    again = await office.admin.post("/v1/tokens", body, key="one")
    assert again.status == 200
    assert again.json["token_id"] == first.json["token_id"]
    assert (again.json["token"], again.json["code"]) == (None, "already_issued")
    assert again.json["receipt"] == first.json["receipt"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert token not in everything_stored(office)
    assert token not in first.json["command_bytes"]
    person = Person(office, "usr_s", token)
    assert (await person.get("/v1/reviews")).status == 200


async def test_a_token_ends_when_it_says(office: Office) -> None:
    now = office.services.clock.now()
    end = format_instant(now + timedelta(seconds=120))
    await office.hire(Role.SUPERVISOR, principal_id="usr_s")
    person = await office.give_token("usr_s", expires_at=end)
    office.clock.advance(60)
    assert (await person.get("/v1/tasks")).status == 200
    office.clock.advance(60)
    assert_problem(await person.get("/v1/tasks"), "unauthenticated")


async def test_a_token_that_names_no_end_has_one(office: Office) -> None:
    person = await office.hire(Role.SUPERVISOR)
    office.clock.advance(office.services.settings.token_life_seconds - 60)
    assert (await person.get("/v1/tasks")).status == 200
    office.clock.advance(120)
    assert_problem(await person.get("/v1/tasks"), "unauthenticated")


@pytest.mark.parametrize("end", ["2019-01-01T00:00:00Z", "2030-02-31T00:00:00Z", "soon"])
async def test_an_end_that_is_over_or_never_comes_is_refused(office: Office, end: str) -> None:
    await office.hire(Role.SUPERVISOR, principal_id="usr_s")
    answer = await office.admin.post("/v1/tokens", {"principal_id": "usr_s", "expires_at": end})
    assert assert_problem(answer, "invalid_command")["path"] == "$.expires_at"


async def test_a_revoked_token_counts_no_more_from_the_next_request_on(office: Office) -> None:
    person = await office.hire(Role.SUPERVISOR, principal_id="usr_s")
    other = await office.give_token("usr_s")
    assert (await person.get("/v1/tasks")).status == 200
    items = (await office.admin.get("/v1/tokens")).json["items"]
    token_id = next(item["token_id"] for item in items if item["principal_id"] == "usr_s")
    path = f"/v1/tokens/{token_id}"
    answer = await office.admin.call("DELETE", path)
    assert answer.status == 200
    assert (answer.json["token_id"], answer.json["revoked"]) == (token_id, True)
    assert_problem(await person.get("/v1/tasks"), "unauthenticated")
    assert (await other.get("/v1/tasks")).status == 200
    again = await office.admin.call("DELETE", path)
    assert again.status == 200
    assert again.headers["Idempotency-Replayed"] == "true"
    keyed = await office.admin.call("DELETE", path, key="another")
    assert keyed.json["outcome"] == "unchanged"
    items = (await office.admin.get("/v1/tokens")).json["items"]
    assert [item["token_id"] for item in items if item["revoked"]] == [token_id]
    assert_problem(await office.admin.call("DELETE", "/v1/tokens/none"), "not_found")


async def test_the_list_says_when_a_token_was_used_to_the_minute(office: Office) -> None:
    person = await office.hire(Role.SUPERVISOR, principal_id="usr_s")

    async def last_used() -> str | None:
        items = (await office.admin.get("/v1/tokens")).json["items"]
        [used] = [item["last_used_at"] for item in items if item["principal_id"] == "usr_s"]
        return None if used is None else str(used)

    assert await last_used() is None
    await person.get("/v1/tasks")
    first = await last_used()
    assert first is not None
    office.clock.advance(30)
    await person.get("/v1/tasks")
    assert await last_used() == first
    office.clock.advance(31)
    await person.get("/v1/tasks")
    assert str(await last_used()) > first


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer wmt_" + "0" * 64,
        "Bearer wms_" + "0" * 64,
        "Bearer other",
        "Bearer " + "x" * 201,
        "Bearer ä",
        "wmt_" + "0" * 64,
    ],
)
async def test_anything_but_a_token_that_counts_is_answered_alike(
    office: Office, header: str
) -> None:
    answer = await office.stranger.get("/v1/tasks", headers={"Authorization": header})
    problem = assert_problem(answer, "unauthenticated")
    assert problem["detail"] == "The request carries no credential that this server accepts now."
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="workmate"')


async def test_the_scheme_is_read_in_any_case(office: Office) -> None:
    headers = {"Authorization": f"bEARER {office.admin.token}"}
    assert (await office.stranger.get("/v1/principals", headers=headers)).status == 200


async def test_a_token_for_somebody_who_is_not_there_is_not_found(office: Office) -> None:
    answer = await office.admin.post("/v1/tokens", {"principal_id": "usr_none"})
    assert_problem(answer, "not_found")
    assert "token" not in answer.json


async def test_tokens_are_listed_page_by_page(office: Office) -> None:
    for _ in range(4):
        await office.hire(Role.WORKER)
    whole = (await office.admin.get("/v1/tokens")).json["items"]
    first = (await office.admin.get("/v1/tokens?limit=3")).json
    rest = (await office.admin.get(f"/v1/tokens?limit=3&cursor={first['next']}")).json
    assert first["items"] + rest["items"] == whole
    assert rest["next"] is None
    assert whole[1]["roles"] == ["worker"]
