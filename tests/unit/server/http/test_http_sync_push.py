"""Commands that devices sync: each decided by itself, in order, whoever carries it."""

import base64
import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from support.handheld import Handheld, rows_of, take_handheld
from support.office import Office, assert_problem, open_office
from workmate_server.config import Settings
from workmate_shared.kernel.table import Role

WORK = ("accept", "start_travel", "arrive", "submit_proof")


@pytest.fixture
async def handheld(office: Office) -> Handheld:
    return await take_handheld(office, await office.somebody(Role.WORKER))


async def state_of(office: Office, task_id: str) -> str:
    dispatcher = await office.somebody(Role.DISPATCHER)
    answer = await dispatcher.get(f"/v1/tasks/{task_id}")
    return str(answer.json["state"])


async def test_a_chain_done_offline_is_committed_in_one_request(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    outcomes = await handheld.outcomes(*handheld.chain(job, *WORK, version=2))
    assert [outcome.status for outcome in outcomes] == ["committed"] * 4
    assert [outcome.version for outcome in outcomes] == [3, 4, 5, 6]
    for outcome in outcomes:
        handheld.prove(outcome)
    assert await state_of(office, job.task_id) == "proof_pending"


async def test_a_request_sent_again_gets_the_same_receipts_and_changes_nothing(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    chain = handheld.chain(job, *WORK, version=2)
    first = await handheld.outcomes(*chain)
    again = await handheld.outcomes(*reversed(chain))
    assert [outcome.receipt for outcome in reversed(again)] == [o.receipt for o in first]
    assert all(outcome.replayed for outcome in again)
    assert [o.events for o in reversed(again)] == [o.events for o in first]


async def test_one_key_twice_in_one_request_has_one_effect(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    first, second = await handheld.outcomes(accept, accept)
    assert (first.status, first.version) == ("committed", 3)
    assert first.receipt == second.receipt
    assert not first.replayed
    assert second.replayed


async def test_one_key_with_other_content_is_refused_and_the_first_stands(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2, command_id="one")
    other = handheld.signed("start_travel", job, expected_version=3, command_id="one")
    first, second = await handheld.outcomes(accept, other)
    assert first.status == "committed"
    assert (second.status, second.code) == ("retry", "idempotency_key_reused")
    assert second.receipt is None


async def test_a_step_that_comes_before_the_one_it_builds_on_waits_for_it(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept, travel = handheld.chain(job, "accept", "start_travel", version=2)
    early, on_time = await handheld.outcomes(travel, accept)
    assert (early.status, early.code) == ("retry", "blocked_by")
    assert early.blocked_by == on_time.command_id
    assert early.after is not None
    assert on_time.status == "committed"
    (late,) = await handheld.outcomes(travel)
    assert late.status == "committed"


def unsigned(handheld: Handheld, job: Any) -> Any:
    good = handheld.signed("observe", job, readings=())
    return msgspec.to_builtins(good) | {"envelope": {"payload": "!", "payloadType": "x"}}


def of_another_key(handheld: Handheld, job: Any) -> Any:
    stranger = Handheld(
        handheld.office, replace(handheld.device, seed=b"\x05" * 32), handheld.session
    )
    return stranger.signed("accept", job, expected_version=2)


def altered(handheld: Handheld, job: Any) -> Any:
    good = handheld.signed("accept", job, expected_version=2)
    payload = base64.b64decode(good.envelope.payload).replace(b"accept", b"decline")
    text = base64.b64encode(payload).decode()
    return replace(good, envelope=replace(good.envelope, payload=text))


def of_no_device(handheld: Handheld, job: Any) -> Any:
    stranger = Handheld(
        handheld.office, replace(handheld.device, device_id="dev-nobody"), handheld.session
    )
    return stranger.signed("accept", job, expected_version=2)


def for_another_person(handheld: Handheld, job: Any) -> Any:
    other = Handheld(
        handheld.office, replace(handheld.device, principal_id="usr_other"), handheld.session
    )
    return other.signed("accept", job, expected_version=2)


def of_another_tenant(handheld: Handheld, job: Any) -> Any:
    return handheld.signed("accept", job, expected_version=2, tenant_id="another")


def from_the_future(handheld: Handheld, job: Any) -> Any:
    payload = handheld.command("accept", job, expected_version=2)
    return handheld.sign(payload.replace(b'"schema_version":1', b'"schema_version":99'))


def with_an_unknown_field(handheld: Handheld, job: Any) -> Any:
    payload = handheld.command("accept", job, expected_version=2)
    return handheld.sign(payload[:-1] + b',"extra":1}')


def without_its_value(handheld: Handheld, job: Any) -> Any:
    good = handheld.signed("arrive", job, expected_version=2)
    return replace(good, disclosures={})


def with_one_name_twice(_handheld: Handheld, _job: Any) -> Any:
    return msgspec.Raw(b'{"envelope":{},"envelope":{}}')


def nested_deeply(_handheld: Handheld, _job: Any) -> Any:
    return msgspec.Raw(b'{"envelope":' + b"[" * 100 + b"]" * 100 + b"}")


def of_another_kind(_handheld: Handheld, _job: Any) -> Any:
    return msgspec.Raw(b'"accept"')


BAD = [
    (unsigned, "invalid_command"),
    (of_another_key, "signature_invalid"),
    (altered, "signature_invalid"),
    (of_no_device, "signature_invalid"),
    (for_another_person, "signature_invalid"),
    (of_another_tenant, "tenant_mismatch"),
    (from_the_future, "unknown_schema"),
    (with_an_unknown_field, "invalid_command"),
    (without_its_value, "disclosure_missing"),
    (with_one_name_twice, "invalid_command"),
    (nested_deeply, "invalid_command"),
    (of_another_kind, "invalid_command"),
]


@pytest.mark.parametrize(("make", "code"), BAD)
async def test_a_bad_command_in_the_middle_costs_no_other_its_outcome(
    office: Office, handheld: Handheld, make: Any, code: str
) -> None:
    job, other = await office.job("assigned"), await office.job("assigned")
    good = handheld.signed("accept", job, expected_version=2)
    last = handheld.signed("accept", other, expected_version=2)
    body = {"protocol": 1, "commands": [good, make(handheld, job), last]}
    answer = await handheld.post(body)
    first, bad, third = answer.json["outcomes"]
    assert (first["status"], third["status"]) == ("committed", "committed")
    assert (bad["status"], bad["code"]) == ("retry", code)
    assert "receipt" not in bad
    assert answer.json["pull"]["changes"]
    decided = [
        row["command_id"] for row in rows_of(office, "command_log") if row["name"] == "accept"
    ]
    assert sorted(decided) == sorted([first["command_id"], third["command_id"]])


async def test_what_cannot_be_taken_apart_is_refused_whole(handheld: Handheld) -> None:
    for body in (b"", b"[]", b'{"commands":{}}', b'{"commands":[{"envelope":NaN}]}', b"\xff{}"):
        answer = await handheld.post(None, data=body, headers={"Content-Type": "application/json"})
        if body:
            assert_problem(answer, "invalid_command")
        else:
            assert answer.json["pull"] == {"refused": "invalid_request"}
    twice = b'{"protocol":1,"protocol":1,"commands":[]}'
    answer = await handheld.post(None, data=twice, headers={"Content-Type": "application/json"})
    assert_problem(answer, "invalid_command")


@pytest.mark.parametrize(
    "part",
    [
        {"protocol": "one"},
        {"cursor": 7},
        {"limit": 0},
        {"device": {"pending": -1}},
        {"newest_header": {"payload": 1}},
    ],
)
async def test_a_part_that_cannot_be_read_refuses_the_pull_and_no_command(
    office: Office, handheld: Handheld, part: dict[str, Any]
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    answer = await handheld.sync(accept, **part)
    assert answer.outcomes[0].status == "committed"
    assert answer.pull.refused == "invalid_request"


async def test_more_commands_than_a_request_may_have_are_refused_with_the_limit(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    limit = office.services.settings.sync_commands_max
    answer = await handheld.post({"protocol": 1, "commands": [accept] * (limit + 1)})
    assert assert_problem(answer, "too_large")["limit"] == limit
    assert await state_of(office, job.task_id) == "assigned"


async def test_a_request_may_come_packed_and_a_bomb_is_refused(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    bomb = gzip.compress(b" " * 50_000_000)
    assert_problem(await handheld.post(None, data=bomb, headers=headers), "too_large")
    body = gzip.compress(msgspec.json.encode({"protocol": 1, "commands": [accept]}))
    answer = await handheld.post(None, data=body, headers=headers)
    assert answer.json["outcomes"][0]["status"] == "committed"


async def test_one_command_that_is_too_large_costs_no_other_its_outcome(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    # In base64 three bytes are four.
    fill = b"x" * (office.services.settings.command_bytes_max * 3 // 4)
    large = handheld.sign(b'{"command_id":"large","x":"' + fill + b'"}')
    first, second = await handheld.outcomes(large, accept)
    assert (first.status, first.code, first.command_id) == ("retry", "too_large", "large")
    assert second.status == "committed"


async def test_a_server_with_a_full_queue_says_so_for_each_command_and_answers_the_pull(
    tmp_path: Path,
) -> None:
    async with open_office(tmp_path, Settings(batch_commands_max=1, commit_queue_max=4)) as office:
        handheld = await take_handheld(office, await office.somebody(Role.WORKER))
        job = await office.job("assigned")
        accept = handheld.signed("accept", job, expected_version=2)
        answer = await handheld.sync(*[accept] * 5)
        assert [(o.status, o.code) for o in answer.outcomes] == [("retry", "overloaded")] * 5
        assert answer.backoff > 0
        assert [change.id for change in answer.pull.changes] == [job.task_id]
        assert (await handheld.outcomes(accept))[0].status == "committed"


async def test_whoever_carries_a_command_its_actor_is_the_one_who_signed(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    courier = await office.hire(Role.AUDITOR)
    answer = await courier.post("/v1/sync", {"protocol": 1, "commands": [accept]}, key=None)
    (outcome,) = answer.json["outcomes"]
    assert outcome["status"] == "committed"
    assert "changes" not in answer.json["pull"]
    (event,) = [row for row in rows_of(office, "audit_event") if row["type"] == "task.accepted"]
    assert event["actor_id"] == handheld.device.principal_id
    (again,) = await handheld.outcomes(accept)
    assert again.receipt == msgspec.convert(outcome["receipt"], type(again.receipt))


async def test_a_carrier_learns_nothing_of_a_task_that_is_not_his_to_see(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("accepted")
    stale = handheld.signed("decline", job, expected_version=2)
    other = await take_handheld(office, await office.hire(Role.WORKER))
    (carried,) = await other.outcomes(stale)
    assert (carried.status, carried.code) == ("conflict", "version_conflict")
    assert carried.current is None
    assert carried.events_since == ()
    (own,) = await handheld.outcomes(stale)
    assert own.receipt == carried.receipt
    assert own.current is not None
    assert own.current["state"] == "accepted"
    assert [event.type for event in own.events_since] == ["task.accepted"]


async def test_a_former_holder_sees_who_holds_the_task_now_and_nothing_else(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    dispatcher, other = await office.somebody(Role.DISPATCHER), await office.hire(Role.WORKER)
    body = {"worker_id": other.principal_id, "personal": {"selection_reason": "nearer"}}
    assert (await dispatcher.command("assign", job, body)).status == 200
    (outcome,) = await handheld.outcomes(handheld.signed("accept", job, expected_version=2))
    assert (outcome.status, outcome.code) == ("conflict", "version_conflict")
    handheld.prove(outcome)
    assert outcome.current is not None
    assert set(outcome.current) == {
        "task_id",
        "state",
        "version",
        "assignee_id",
        "state_entered_at",
    }
    assert outcome.current["assignee_id"] == other.principal_id
    assert outcome.events_since == ()


async def test_work_done_offline_on_a_task_that_was_given_away_is_handed_over(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress")
    proof = handheld.signed("submit_proof", job, expected_version=job.version)
    dispatcher = await office.somebody(Role.DISPATCHER)
    reason = {"personal": {"reason": "needed elsewhere"}}
    assert (await dispatcher.command("release", job, reason)).status == 200
    (outcome,) = await handheld.outcomes(proof)
    assert (outcome.status, outcome.code) == ("conflict", "version_conflict")
    assert [event.type for event in outcome.events] == ["evidence.handed_over"]
    handheld.prove(outcome)
    assert await state_of(office, job.task_id) == "unassigned"


async def test_nobody_of_another_tenant_can_carry_a_command(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("assigned")
    _, stranger = await office.found_tenant()
    accept = handheld.signed("accept", job, expected_version=2)
    answer = await stranger.post("/v1/sync", {"protocol": 1, "commands": [accept]}, key=None)
    (outcome,) = answer.json["outcomes"]
    assert (outcome["status"], outcome["code"]) == ("retry", "signature_invalid")
    assert await state_of(office, job.task_id) == "assigned"


async def test_without_a_credential_nothing_is_synced(office: Office, handheld: Handheld) -> None:
    job = await office.job("assigned")
    accept = handheld.signed("accept", job, expected_version=2)
    body = {"protocol": 1, "commands": [accept]}
    assert_problem(await office.stranger.post("/v1/sync", body, key=None), "unauthenticated")
    assert await state_of(office, job.task_id) == "assigned"
