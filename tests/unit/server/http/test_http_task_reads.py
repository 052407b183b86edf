"""Reading tasks: filters, pages that miss nothing, entity tags, history, observations, reviews."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from support.office import (
    FIX,
    PERSONAL,
    SITE,
    Job,
    Office,
    Person,
    assert_problem,
    disclose,
    open_office,
)
from workmate_server.config import Settings
from workmate_server.store.tables import LocationAccess, table_of
from workmate_shared.kernel.table import Role

D, N, S, W = Role.DISPATCHER, Role.INTEGRATION, Role.SUPERVISOR, Role.WORKER
REASON = {"personal": {"reason": "because"}}
AT = "2026-03-01T09:00:00Z"


async def ids(person: Person, query: str = "") -> list[str]:
    answer = await person.get(f"/v1/tasks{query}")
    assert answer.status == 200, answer.body
    return [item["external_id"] for item in answer.json["items"]]


async def walk_pages(person: Person, path: str, name: str = "items") -> list[Any]:
    """Follow the Link headers to the end; return all items."""
    found: list[Any] = []
    while True:
        answer = await person.get(path)
        assert answer.status == 200, answer.body
        found += answer.json[name]
        link = answer.headers.get("Link")
        assert (link is None) == (answer.json["next"] is None)
        if link is None:
            return found
        assert link.endswith('>; rel="next"')
        path = link[1 : link.index(">")]


def accesses(office: Office) -> list[tuple[str, str, str, str, str]]:
    c = table_of(LocationAccess).c
    with office.services.database.read() as connection:
        rows = connection.execute(
            select(c.subject_id, c.reader_id, c.purpose, c.retention_class, c.object_id)
        )
        return [tuple(row) for row in rows]


async def test_filters_show_the_tasks_that_they_name(office: Office) -> None:
    worker = await office.somebody(W)
    dues = {"a": "2026-03-01T12:00:00+01:00", "b": "2026-03-01T11:30:00Z", "c": None}
    for name, due_at in dues.items():
        personal = {"site_name": f"Depot {name.upper()}", "client": "100 % Müller"}
        await office.job("assigned", external_id=name, due_at=due_at, personal=personal)
    await office.create(external_id="d", source="other", due_at="2026-03-01T10:00:00Z")
    supervisor = await office.somebody(S)
    assert await ids(supervisor) == ["d", "a", "b", "c"]
    assert await ids(supervisor, "?state=unassigned") == ["d"]
    assert await ids(supervisor, "?state=unassigned&state=assigned") == ["d", "a", "b", "c"]
    assert await ids(supervisor, f"?assignee={worker.principal_id}") == ["a", "b", "c"]
    assert await ids(supervisor, "?external_id=b") == ["b"]
    assert await ids(supervisor, "?source=other") == ["d"]
    assert await ids(supervisor, "?q=depot%20b") == ["b"]
    assert await ids(supervisor, "?q=MÜLLER") == ["a", "b", "c"]
    assert await ids(supervisor, "?q=%25") == ["a", "b", "c"], "no wildcard"
    assert await ids(supervisor, "?q=_") == []
    assert await ids(supervisor, "?due_before=2026-03-01T11:30:00Z") == ["d", "a"]
    assert await ids(supervisor, "?due_before=2026-03-01T12:30:00%2B01:00") == ["d", "a"]
    assert await ids(supervisor, "?q=depot&state=unassigned") == []


async def test_changed_since_takes_a_seq_or_a_moment(office: Office) -> None:
    supervisor = await office.somebody(S)
    first = await office.job(external_id="a")
    await office.job(external_id="b")
    office.clock.advance(60)
    moment = office.services.now()
    office.clock.advance(60)
    await office.job(external_id="c")
    await (await office.somebody(D)).command("amend", first, {"priority": 1})
    assert await ids(supervisor, f"?sort=changed&changed_since={moment}") == ["c", "a"]
    log = (await supervisor.get("/v1/log")).json["events"]
    seq = log[1]["seq"]
    assert await ids(supervisor, f"?sort=changed&changed_since={seq}") == ["c", "a"]
    assert await ids(supervisor, "?sort=changed&changed_since=2000-01-01T00:00:00Z") == [
        "b",
        "c",
        "a",
    ]


async def test_a_worker_lists_what_he_holds_and_nothing_else(office: Office) -> None:
    held = await office.job("accepted", external_id="mine")
    given_back = await office.job("accepted", external_id="given-back")
    await office.job(external_id="nobodys")
    await (await office.somebody(D)).command("release", given_back, REASON)
    assert await ids(held.worker) == ["mine"]
    assert await ids(held.worker, f"?assignee={held.worker.principal_id}") == ["mine"]
    answer = await held.worker.get("/v1/tasks?assignee=somebody-else")
    assert_problem(answer, "access_not_allowed")


@pytest.mark.parametrize("sort", ["due", "changed"])
async def test_pages_hold_every_task_once_in_order(office: Office, sort: str) -> None:
    due_at = "2026-03-01T10:00:00Z"
    for number in range(7):
        await office.create(external_id=f"t{number}", due_at=due_at if number % 2 else None)
    supervisor = await office.somebody(S)
    whole = await ids(supervisor, f"?sort={sort}")
    paged = await walk_pages(supervisor, f"/v1/tasks?sort={sort}&limit=3")
    assert [item["external_id"] for item in paged] == whole
    assert len(set(whole)) == 7


async def test_what_changes_while_pages_are_turned_is_never_missed(office: Office) -> None:
    jobs = [await office.job(external_id=f"t{number}") for number in range(6)]
    supervisor, dispatcher = await office.somebody(S), await office.somebody(D)
    first = (await supervisor.get("/v1/tasks?sort=changed&limit=3")).json
    await dispatcher.command("amend", jobs[0], {"priority": 1})
    await dispatcher.command("amend", jobs[4], {"priority": 1})
    await office.create(external_id="new")
    rest = await walk_pages(supervisor, f"/v1/tasks?sort=changed&limit=2&cursor={first['next']}")
    seen = [item["external_id"] for item in first["items"] + rest]
    assert seen == ["t0", "t1", "t2", "t3", "t5", "t0", "t4", "new"]


async def test_a_page_ends_early_rather_than_grow_too_large(tmp_path: Path) -> None:
    item = {"prompt": "p" * 500, "kind": "confirm"}
    policy = {"checklist": [item | {"item_id": f"i{number}"} for number in range(100)]}
    async with open_office(tmp_path, Settings(list_page_bytes_max=130_000)) as office:
        for number in range(4):
            await office.create(external_id=f"t{number}", proof_policy=policy)
        supervisor = await office.somebody(S)
        assert len(await ids(supervisor)) == 2
        assert len(await walk_pages(supervisor, "/v1/tasks")) == 4
        assert len(await walk_pages(supervisor, "/v1/log", "events")) == 4


@pytest.mark.parametrize("change", ["another filter", "another list", "one letter"])
async def test_a_cursor_is_good_for_its_own_list_only(office: Office, change: str) -> None:
    for _ in range(3):
        await office.job("proof_pending")
    supervisor = await office.somebody(S)
    cursor = (await supervisor.get("/v1/tasks?limit=1")).json["next"]
    match change:
        case "another filter":
            path = f"/v1/tasks?limit=1&state=assigned&cursor={cursor}"
        case "another list":
            path = f"/v1/reviews?limit=1&cursor={cursor}"
        case _:
            flipped = "A" if cursor[5] != "A" else "B"
            path = f"/v1/tasks?cursor={cursor[:5]}{flipped}{cursor[6:]}"
    assert_problem(await supervisor.get(path), "bad_cursor")


@pytest.mark.parametrize("cursor", ["x", "%00", "ä", "A" * 3000, "AAAA", "====", "-_-_"])
async def test_text_that_is_no_cursor_is_refused(office: Office, cursor: str) -> None:
    supervisor = await office.somebody(S)
    answer = await supervisor.get(f"/v1/tasks?cursor={cursor}")
    assert answer.code in ("bad_cursor", "invalid_request")
    assert answer.status == 400


async def test_an_entity_tag_is_the_version_and_saves_the_body(office: Office) -> None:
    job, supervisor = await office.job("assigned"), await office.somebody(S)
    path = f"/v1/tasks/{job.task_id}"
    answer = await supervisor.get(path)
    assert answer.headers["ETag"] == '"2"'
    for tag in ('"2"', 'W/"2"', '"1", "2"', "*"):
        same = await supervisor.get(path, headers={"If-None-Match": tag})
        assert (same.status, same.body, same.headers["ETag"]) == (304, b"", '"2"')
    await job.worker.command("accept", job)
    other = await supervisor.get(path, headers={"If-None-Match": '"2"'})
    assert (other.status, other.headers["ETag"]) == (200, '"3"')


async def test_a_former_holder_sees_where_the_task_is_and_nothing_more(office: Office) -> None:
    job = await office.job("accepted")
    await (await office.somebody(D)).command("release", job, REASON)
    answer = await job.worker.get(f"/v1/tasks/{job.task_id}")
    assert set(answer.json) == {"task_id", "state", "version", "assignee_id", "state_entered_at"}
    for path in ("events", "observations"):
        hidden = await job.worker.get(f"/v1/tasks/{job.task_id}/{path}")
        assert_problem(hidden, "not_found")


async def test_the_history_is_the_exact_events_with_their_values(office: Office) -> None:
    job, supervisor = await office.job("proof_pending"), await office.somebody(S)
    path = f"/v1/tasks/{job.task_id}/events"
    whole = await walk_pages(supervisor, path, "events")
    assert whole == await walk_pages(supervisor, f"{path}?limit=2", "events")
    assert [event["aggregate_version"] for event in whole] == [1, 2, 3, 4, 5, 6]
    assert [event["type"] for event in whole][:3] == [
        "task.created",
        "task.assigned",
        "task.accepted",
    ]
    values = [msgspec.json.decode(d["value"]) for d in whole[0]["disclosures"].values()]
    assert values == [PERSONAL], "the site's place needs a purpose"
    assert msgspec.json.decode(whole[0]["payload"])["actor"]["role"] == "integration"


async def test_who_chose_a_worker_why_is_not_the_workers_to_read(office: Office) -> None:
    job = await office.job("accepted")
    path = f"/v1/tasks/{job.task_id}/events"
    mine = (await job.worker.get(path)).json["events"]
    assert [bool(event["disclosures"]) for event in mine] == [True, False, False]
    theirs = (await (await office.somebody(D)).get(path)).json["events"]
    assert [bool(event["disclosures"]) for event in theirs] == [True, True, False]


async def test_positions_need_a_purpose_and_a_sites_place_is_nobodys(office: Office) -> None:
    job, supervisor = await office.job(), await office.somebody(S)
    path = f"/v1/tasks/{job.task_id}"
    without = (await supervisor.get(path)).json
    assert (without["position"], without["withheld"]) == (None, ["position"])
    stated = (await supervisor.get(path, purpose="dispatch")).json
    assert (stated["position"], stated["withheld"]) == (SITE, [])
    listed = (await supervisor.get("/v1/tasks", purpose="dispatch")).json["items"]
    assert listed[0]["position"] == SITE
    assert accesses(office) == []


@pytest.mark.parametrize("path", ["/v1/log", "/v1/tasks/{}/events", "/v1/tasks/{}/observations"])
async def test_every_reading_of_anothers_fix_is_recorded(office: Office, path: str) -> None:
    job, supervisor = await office.job("in_progress"), await office.somebody(S)
    reading = {"kind": "position", "at": AT}
    body = {"readings": [reading], "position": FIX}
    assert (await job.worker.command("observe", job, body)).status == 200
    address = path.format(job.task_id)
    unstated = await supervisor.get(address)
    assert str(FIX["lat_e7"]).encode() not in unstated.body
    assert accesses(office) == []
    stated = await supervisor.get(address, purpose="review")
    assert str(FIX["lat_e7"]).encode() in stated.body
    recorded = (
        job.worker.principal_id,
        supervisor.principal_id,
        "review",
        "operational_90d",
        job.task_id,
    )
    assert accesses(office) == [recorded]
    await supervisor.get(address, purpose="review")
    assert accesses(office) == [recorded] * 2


async def test_ones_own_fix_needs_no_purpose_and_leaves_no_record(office: Office) -> None:
    job = await office.job("in_progress")
    events = await job.worker.get(f"/v1/tasks/{job.task_id}/events")
    assert str(FIX["lat_e7"]).encode() in events.body
    assert accesses(office) == []


async def test_fixes_in_a_proof_are_its_authors(office: Office) -> None:
    job, supervisor = await office.job("in_progress"), await office.somebody(S)
    position, fixes = disclose({"photo": FIX})
    proof = job.proof({position: fixes}, position=position)
    answer = await job.worker.command("submit_proof", job, proof)
    assert answer.status == 200, answer.body
    events = await supervisor.get(f"/v1/tasks/{job.task_id}/events", purpose="audit")
    assert position in events.json["events"][-1]["disclosures"]
    subjects = [(row[0], row[2]) for row in accesses(office)]
    assert subjects == [(job.worker.principal_id, "audit")]


async def test_an_integration_reads_no_persons_fix(office: Office) -> None:
    job = await office.job("in_progress")
    integration = await office.somebody(N)
    events = await integration.get(f"/v1/tasks/{job.task_id}/events", purpose="dispatch")
    assert str(FIX["lat_e7"]).encode() not in events.body
    assert str(SITE["lat_e7"]) in str(events.json["events"][0]["disclosures"])


async def test_observations_come_with_note_readings_and_who_said_so(office: Office) -> None:
    job = await office.job("assigned")
    body = {"readings": [{"kind": "note", "at": AT}], "personal": {"note": "The gate is locked."}}
    await job.worker.command("observe", job, body)
    dispatcher = await office.somebody(D)
    [item] = (await dispatcher.get(f"/v1/tasks/{job.task_id}/observations")).json["items"]
    assert item["readings"] == [{"kind": "note", "at": AT}]
    assert item["personal"] == {"note": "The gate is locked."}
    assert (item["position"], item["withheld"]) == (None, [])
    assert item["actor_id"] == job.worker.principal_id
    integration = await office.somebody(N)
    [item] = (await integration.get(f"/v1/tasks/{job.task_id}/observations")).json["items"]
    assert (item["personal"], item["withheld"]) == (None, ["personal"])


async def test_reviews_list_what_waits_earliest_deadline_first(office: Office) -> None:
    async def waiting(state: str, **fields: Any) -> Job:
        return await office.job(state, **fields)

    late = await waiting("proof_pending", due_at="2026-03-03T00:00:00Z")
    early = await waiting("in_progress", due_at="2026-03-01T00:00:00Z")
    await early.worker.command("hand_over", early, early.proof())
    never = await waiting("proof_pending")
    decided = await waiting("proof_pending")
    await waiting("in_progress")
    supervisor = await office.somebody(S)
    body = {"manifest_id": decided.manifest_id, **REASON}
    assert (await supervisor.command("reject_proof", decided, body)).status == 200
    gone = await waiting("proof_pending")
    assert (await supervisor.command("cancel", gone, REASON)).status == 200
    expected = [
        ("handover", early.manifest_id, early.task_id),
        ("proof", late.manifest_id, late.task_id),
        ("proof", never.manifest_id, never.task_id),
    ]
    items = await walk_pages(supervisor, "/v1/reviews")
    found = [(item["kind"], item["manifest_id"], item["task"]["task_id"]) for item in items]
    assert found == expected
    assert await walk_pages(supervisor, "/v1/reviews?limit=1") == items
    assert items[0]["author_id"] == early.worker.principal_id
