"""What anybody may ask for: schemas, and whether the server lives and works."""

import jsonschema_rs
from sqlalchemy import text

from support.office import Office, assert_problem
from workmate_shared.wire.schemas import schema_names


async def test_every_command_and_event_has_a_schema_for_anybody(office: Office) -> None:
    listed = await office.stranger.get("/v1/schemas")
    assert listed.json == {"items": list(schema_names()), "next": None}
    for name in listed.json["items"]:
        answer = await office.stranger.get(f"/v1/schemas/{name}")
        assert answer.headers["Content-Type"].startswith("application/schema+json")
        assert answer.json["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert jsonschema_rs.meta.is_valid(answer.json)
    assert_problem(await office.stranger.get("/v1/schemas/none"), "not_found")


async def test_health_tells_life_from_readiness(office: Office) -> None:
    assert (await office.stranger.get("/health/live")).json == {"status": "live"}
    assert (await office.stranger.get("/health/ready")).json == {"status": "ready"}
    with office.services.database.write() as connection:
        connection.execute(text("ALTER TABLE tenant_head RENAME TO gone"))
    assert_problem(await office.stranger.get("/health/ready"), "database_away")
    assert (await office.stranger.get("/health/live")).status == 200
