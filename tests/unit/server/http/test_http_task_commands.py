"""Commands over HTTP: one address a row, one effect a key, one version at a time."""

import asyncio
from typing import Any

import msgspec
import pytest

from support.office import (
    FIX,
    PERSONAL,
    SITE,
    SOURCE,
    Answer,
    Job,
    Office,
    Person,
    assert_problem,
    disclose,
)
from workmate_shared.kernel.explain import explain
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.manifest import AnswerItem
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.wire.batch import check_events, command_hash, verify_receipt
from workmate_shared.wire.commitment import Disclosure, open_disclosure
from workmate_shared.wire.intake import decode_command

D, N, S, W = Role.DISPATCHER, Role.INTEGRATION, Role.SUPERVISOR, Role.WORKER
REASON = {"personal": {"reason": "because"}}
READING = {"kind": "eta", "at": "2026-03-01T09:00:00Z", "arrive_at": "2026-03-01T09:30:00Z"}

WALKS: dict[str, tuple[str, Role, Any]] = {
    "assign": (
        "unassigned",
        D,
        {"worker_id": "usr_w", "personal": {"selection_reason": "nearest"}},
    ),
    "accept": ("assigned", W, None),
    "decline": ("accepted", W, {"reason_code": "nobody_home", **REASON}),
    "start_travel": ("accepted", W, {}),
    "arrive": ("en_route", W, {"no_fix_reason": "indoors"}),
    "submit_proof": ("in_progress", W, "proof"),
    "approve_proof": ("proof_pending", S, "named"),
    "reject_proof": ("proof_pending", S, "named with a reason"),
    "release": ("en_route", D, REASON),
    "amend": ("assigned", N, {"priority": 1, "due_at": None}),
    "cancel": ("proof_pending", S, REASON),
    "observe": ("assigned", W, {"readings": [READING]}),
    "hand_over": ("in_progress", W, "proof"),
    "dismiss_handover": ("in_progress", S, "named with a reason"),
}
"""For each command a state in which it works, who issues it, and the body."""


async def actor_of(office: Office, role: Role, job: Job) -> Person:
    return job.worker if role is W else await office.somebody(role)


def body_of(job: Job, body: Any) -> Any:
    match body:
        case "proof":
            return job.proof()
        case "named":
            return {"manifest_id": job.manifest_id}
        case "named with a reason":
            return {"manifest_id": job.manifest_id, **REASON}
        case _:
            return body


def assert_proven(office: Office, answer: Answer) -> None:
    """Demand that the receipt proves the outcome, its events and the command's bytes."""
    told = answer.json
    verified = verify_receipt(answer.receipt, office.log_keys)
    assert verified.leaf.command_hash == command_hash(told["command_bytes"].encode())
    assert verified.leaf.outcome == told["outcome"]
    check_events(verified, [event["payload"].encode() for event in told["events"]])
    for commitment, disclosure in told.get("disclosures", {}).items():
        named = decode_command(told["command_bytes"].encode()).commitments()
        assert commitment in named or "manifest" in told["command_bytes"]
        open_disclosure(commitment, msgspec.convert(disclosure, Disclosure))


@pytest.mark.parametrize("name", WALKS)
async def test_each_command_commits_its_event_and_state_with_a_receipt_that_proves_it(
    office: Office, name: str
) -> None:
    state, role, body = WALKS[name]
    row = TASK_TABLE.row(name)
    worker = await office.hire(W, principal_id="usr_w")
    job = await office.job(state, worker=worker)
    if name == "dismiss_handover":
        await worker.command("hand_over", job, job.proof())
    before = job.version
    answer = await (await actor_of(office, role, job)).command(name, job, body_of(job, body))
    assert answer.status == 200, answer.body
    told = answer.json
    assert told["outcome"] == "committed"
    assert [event["type"] for event in told["events"]] == [row.event]
    assert told["version"] == before + 1 == told["events"][0]["aggregate_version"]
    assert answer.headers["ETag"] == f'"{before + 1}"'
    shown = told["task"] or {}
    assert shown["version"] == before + 1
    assert shown["state"] == (row.result or state)
    assert_proven(office, answer)


def test_the_walks_and_the_other_tests_here_issue_every_command_of_the_table() -> None:
    elsewhere = {"create_task", "store_evidence"}
    assert set(WALKS) | elsewhere == {row.command for row in TASK_TABLE.rows}


async def test_storing_evidence_waits_for_the_files_and_records_nothing(office: Office) -> None:
    job = await office.job("in_progress")
    answer = await job.worker.command("store_evidence", job, {"hashes": ["aa" * 32]}, key="one")
    problem = assert_problem(answer, "bytes_missing")
    assert problem["details"]["hashes"] == ["aa" * 32]
    assert problem["current"]["state"] == "in_progress"
    again = await job.worker.command("store_evidence", job, {"hashes": ["bb" * 32]}, key="one")
    assert_problem(again, "bytes_missing")


async def test_a_creation_answers_201_with_its_address_version_and_whole_task(
    office: Office,
) -> None:
    answer, task_id = await office.create(
        external_id="42254749",
        priority=2,
        due_at="2019-04-19T05:55:45-04:00",
        window={"start": "2019-04-18T22:00:00-04:00", "end": "2019-04-19T06:00:00-04:00"},
        required_skills=["electrical"],
        pinned_articles=[{"article_id": "isolate", "version": "v2.1.0"}],
        personal=PERSONAL,
        position=SITE | {"mappls_pin": "3f45cb"},
    )
    assert answer.status == 201
    assert answer.headers["Location"] == f"/v1/tasks/{task_id}"
    assert answer.headers["ETag"] == '"1"'
    assert "Idempotency-Replayed" not in answer.headers
    assert_proven(office, answer)
    task = answer.json["task"]
    assert task["task_id"] == task_id
    assert task["due_at"] == "2019-04-19T05:55:45-04:00"
    assert task["personal"] == PERSONAL
    assert task["position"] is None
    assert task["withheld"] == ["position"]
    values = [msgspec.json.decode(d["value"]) for d in answer.json["disclosures"].values()]
    assert PERSONAL in values
    assert SITE in values, "the pin has one spelling"


async def test_without_a_key_source_and_external_id_are_the_key(office: Office) -> None:
    sender = await office.somebody(N)
    body = {"source": SOURCE, "external_id": "one"}
    first = await sender.post("/v1/tasks", body, key=None)
    assert decode_command(first.json["command_bytes"].encode()).command_id == f"{SOURCE}:one"
    again = await sender.post("/v1/tasks", body, key=f"{SOURCE}:one")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.status == 201
    long = {"source": "s" * 100, "external_id": "e" * 200}
    assert_problem(await sender.post("/v1/tasks", long, key=None), "idempotency_key_missing")
    assert (await sender.post("/v1/tasks", long, key="short")).status == 201


async def test_the_source_is_the_integration_itself_unless_it_names_another(
    office: Office,
) -> None:
    sender = await office.somebody(N)
    answer = await sender.post("/v1/tasks", {"external_id": "one"}, key=None)
    assert answer.json["task"]["source"] == sender.principal_id
    task_id = task_id_for(office.tenant.tenant_id, sender.principal_id, "one")
    assert answer.json["task"]["task_id"] == task_id


async def test_a_job_that_exists_with_the_same_content_is_unchanged_under_another_key(
    office: Office,
) -> None:
    first, _ = await office.create(external_id="one", priority=1, personal=PERSONAL)
    again, _ = await office.create(
        external_id="one", priority=1, personal=PERSONAL, idempotency_key="other"
    )
    assert first.status == 201
    assert again.status == 200
    assert again.json["outcome"] == "unchanged"
    assert again.json["events"] == []
    assert "Location" not in again.headers
    assert again.json["task"] == first.json["task"]
    assert_proven(office, again)


async def test_a_job_that_exists_with_other_content_comes_with_the_conflict(
    office: Office,
) -> None:
    _, task_id = await office.create(external_id="one", priority=1)
    answer, _ = await office.create(external_id="one", priority=2, idempotency_key="other")
    problem = assert_problem(answer, "external_id_conflict")
    assert problem["current"]["task_id"] == task_id
    assert problem["current"]["priority"] == 1
    assert problem["outcome"] == "conflict"


async def test_a_refused_creation_leaves_no_trace_and_the_key_free(office: Office) -> None:
    dispatcher = await office.hire(D, N, principal_id="usr_both")
    only = await office.give_token("usr_both", roles=["dispatcher"])
    body = {"source": SOURCE, "external_id": "one"}
    assert_problem(await only.post("/v1/tasks", body, key="k"), "creation_not_allowed")
    assert (await dispatcher.post("/v1/tasks", body, key="k")).status == 201


@pytest.mark.parametrize("name", [name for name in WALKS if name != "assign"])
async def test_a_repeated_key_gets_the_same_answer_byte_for_byte_and_says_so(
    office: Office, name: str
) -> None:
    state, role, body = WALKS[name]
    worker = await office.hire(W, principal_id="usr_w")
    job = await office.job(state, worker=worker)
    if name == "dismiss_handover":
        await worker.command("hand_over", job, job.proof())
    actor, version, sent = await actor_of(office, role, job), job.version, body_of(job, body)
    first = await actor.command(name, job, sent, key="one", version=version)
    again = await actor.command(name, job, sent, key="one", version=version)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.body == first.body
    assert again.status == first.status
    assert again.headers["ETag"] == first.headers["ETag"]


async def test_a_replay_tells_the_old_outcome_beside_the_present_task(office: Office) -> None:
    job = await office.job("assigned")
    first = await job.worker.command("accept", job, key="one", version=2)
    await job.worker.command("start_travel", job)
    again = await job.worker.command("accept", job, key="one", version=2)
    for member in ("outcome", "version", "events", "receipt", "command_bytes"):
        assert again.json[member] == first.json[member]
    assert again.json["task"]["state"] == "en_route"


async def test_a_recorded_refusal_is_replayed_byte_for_byte_as_well(office: Office) -> None:
    job = await office.job("accepted")
    dispatcher = await office.somebody(D)
    first = await dispatcher.command("release", job, REASON, key="one", version=2)
    again = await dispatcher.command("release", job, REASON, key="one", version=2)
    assert_problem(again, "version_conflict")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert again.body == first.body


async def test_quoted_and_bare_keys_are_one_key_and_the_body_may_repeat_it(
    office: Office,
) -> None:
    job = await office.job("assigned")
    path = f"/v1/tasks/{job.task_id}/accept"
    spellings: list[dict[str, Any]] = [
        {"headers": {"Idempotency-Key": '"k"'}},
        {"headers": {"Idempotency-Key": "k"}},
        {"json_body": {"idempotency_key": "k"}},
        {"headers": {"Idempotency-Key": "k"}, "json_body": {"idempotency_key": "k"}},
    ]
    answers = [await job.worker.call("POST", path, version=2, **spelling) for spelling in spellings]
    assert [answer.status for answer in answers] == [200] * 4
    assert len({answer.body for answer in answers}) == 1
    assert "Idempotency-Replayed" not in answers[0].headers
    assert all(a.headers["Idempotency-Replayed"] == "true" for a in answers[1:])


@pytest.mark.parametrize("change", ["body", "command", "version", "task"])
async def test_a_key_with_other_content_is_refused_and_the_first_stands(
    office: Office, change: str
) -> None:
    job, other = await office.job("assigned"), await office.job("assigned")
    dispatcher = await office.somebody(D)
    first = await dispatcher.command("amend", job, {"priority": 1}, key="one", version=2)
    match change:
        case "body":
            again = await dispatcher.command("amend", job, {"priority": 2}, key="one", version=2)
        case "command":
            again = await dispatcher.command("cancel", job, REASON, key="one", version=2)
        case "version":
            again = await dispatcher.command("amend", job, {"priority": 1}, key="one", version=3)
        case _:
            again = await dispatcher.command("amend", other, {"priority": 1}, key="one", version=2)
    assert_problem(again, "idempotency_key_reused")
    repeat = await dispatcher.command("amend", job, {"priority": 1}, key="one", version=2)
    assert repeat.body == first.body


async def test_another_time_said_for_the_same_request_is_still_the_same_request(
    office: Office,
) -> None:
    job = await office.job("assigned")
    early, late = "2026-03-01T09:00:00+01:00", "2026-03-01T09:05:00+01:00"
    first = await job.worker.command("accept", job, {"occurred_at": early}, key="k", version=2)
    again = await job.worker.command("accept", job, {"occurred_at": late}, key="k", version=2)
    assert again.body == first.body
    assert early in first.json["events"][0]["payload"]


async def test_twenty_posts_of_one_key_at_once_have_one_effect(office: Office) -> None:
    job = await office.job("assigned")
    answers = await asyncio.gather(
        *(job.worker.command("accept", job, key="one", version=2) for _ in range(20))
    )
    assert {answer.status for answer in answers} == {200}
    assert len({str(answer.json["receipt"]) for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    events = await job.worker.get(f"/v1/tasks/{job.task_id}/events")
    assert [event["type"] for event in events.json["events"]].count("task.accepted") == 1


async def test_the_same_key_of_another_person_is_another_key(office: Office) -> None:
    job = await office.job("assigned")
    dispatcher = await office.somebody(D)
    await job.worker.command("observe", job, {"readings": [READING]}, key="one")
    answer = await dispatcher.command("observe", job, {"readings": [READING]}, key="one")
    assert answer.status == 200
    assert "Idempotency-Replayed" not in answer.headers


async def test_a_stale_version_comes_with_the_present_task_and_what_happened_since(
    office: Office,
) -> None:
    job = await office.job("accepted")
    await job.worker.command("start_travel", job)
    dispatcher = await office.somebody(D)
    answer = await dispatcher.command("release", job, REASON, version=2)
    problem = assert_problem(answer, "version_conflict")
    assert problem["current"]["state"] == "en_route"
    assert problem["version"] == 4
    assert [event["type"] for event in problem["events_since"]] == [
        "task.accepted",
        "task.en_route",
    ]
    assert problem["detail"] == explain("conflict", "version_conflict", problem["details"])
    assert problem["details"]["expected_version"] == 2


async def test_a_former_holder_learns_only_where_the_task_is_now(office: Office) -> None:
    job = await office.job("accepted")
    former, other = job.worker, await office.hire(W)
    dispatcher = await office.somebody(D)
    await dispatcher.command("release", job, REASON)
    body = {"worker_id": other.principal_id, "personal": {"selection_reason": "nearer"}}
    await dispatcher.command("assign", job, body)
    answer = await former.command("start_travel", job, version=3)
    problem = assert_problem(answer, "version_conflict")
    assert problem["current"] == {
        "task_id": job.task_id,
        "state": "assigned",
        "version": 5,
        "assignee_id": other.principal_id,
        "state_entered_at": problem["current"]["state_entered_at"],
    }
    assert problem["events_since"] == []
    assert b"Lange Gasse" not in answer.body
    assert b"because" not in answer.body


async def test_annotations_need_no_version_and_make_none_stale(office: Office) -> None:
    job = await office.job("assigned")
    answer = await job.worker.command("observe", job, {"readings": [READING]}, version=None)
    assert answer.status == 200
    assert (await job.worker.command("accept", job, version=2)).status == 200


@pytest.mark.parametrize("tag", ["*", 'W/"2"', "2", '"2", "3"', '"two"', '"-1"', '"02"', ""])
async def test_if_match_that_names_no_one_version_is_refused(office: Office, tag: str) -> None:
    job = await office.job("assigned")
    answer = await job.worker.command("accept", job, version=None, headers={"If-Match": tag})
    assert assert_problem(answer, "invalid_request")["path"] == "If-Match"


async def test_a_supervisor_acts_for_the_assignee_and_the_reason_is_personal(
    office: Office,
) -> None:
    job = await office.job("assigned")
    supervisor = await office.somebody(S)
    override = {"on_behalf_of": job.worker.principal_id, "personal": {"reason": "broken laptop"}}
    answer = await supervisor.command("accept", job, {"override": override})
    assert answer.json["outcome"] == "committed"
    event = answer.json["events"][0]
    assert f'"on_behalf_of":"{job.worker.principal_id}"' in event["payload"]
    assert "broken laptop" not in event["payload"]
    [disclosure] = event["disclosures"].values()
    assert msgspec.json.decode(disclosure["value"]) == {"override_reason": "broken laptop"}


async def test_an_override_is_a_field_only_of_commands_that_can_hold_its_reason(
    office: Office,
) -> None:
    job = await office.job("proof_pending")
    override = {"on_behalf_of": job.worker.principal_id, "personal": {"reason": "laptop"}}
    body = {"manifest_id": job.manifest_id, "override": override}
    answer = await (await office.somebody(S)).command("approve_proof", job, body)
    assert "override" in assert_problem(answer, "invalid_command")["detail"]


async def test_a_proof_with_values_is_checked_kept_and_completed(office: Office) -> None:
    policy = {
        "checklist": [{"item_id": "ok", "prompt": "Done?", "kind": "confirm", "required": True}],
        "retention": {
            "photo": "contract_7y",
            "signature": "contract_7y",
            "personal": "contract_10y",
            "position": "operational_30d",
        },
    }
    job = await office.job("in_progress", proof_policy=policy)
    personal, answers = disclose({"answers": {"ok": True}})
    position, fixes = disclose({"ok": FIX}, 8)
    stray, unnamed = disclose({"notes": "of nothing"}, 9)
    proof = job.proof(
        {personal: answers, position: fixes, stray: unnamed},
        personal=personal,
        position=position,
        items=(AnswerItem(item_id="ok"),),
    )
    answer = await job.worker.command("submit_proof", job, proof)
    assert answer.status == 200, answer.body
    kept = answer.json["disclosures"]
    assert {name: one["class"] for name, one in kept.items()} == {
        personal: "contract_10y",
        position: "operational_30d",
    }
    assert_proven(office, answer)
    supervisor = await office.somebody(S)
    done = await supervisor.command("approve_proof", job, {"manifest_id": job.manifest_id})
    assert done.json["task"]["state"] == "completed"


async def test_what_a_policy_finds_wanting_is_listed(office: Office) -> None:
    item = {"item_id": "isolated", "prompt": "Isolated?", "kind": "confirm", "required": True}
    job = await office.job("proof_pending", proof_policy={"checklist": [item]})
    supervisor = await office.somebody(S)
    answer = await supervisor.command("approve_proof", job, {"manifest_id": job.manifest_id})
    problem = assert_problem(answer, "proof_policy_unmet")
    assert problem["findings"] == [{"code": "answer_missing", "about": "isolated"}]
    assert problem["detail"] == explain("rejected", "proof_policy_unmet", problem["details"])


async def test_the_reason_for_a_decision_takes_the_class_of_the_proof_it_decides(
    office: Office,
) -> None:
    job = await office.job("in_progress")
    await job.worker.command("submit_proof", job, job.proof(retention_class="legal_hold"))
    supervisor = await office.somebody(S)
    body = {"manifest_id": job.manifest_id, **REASON}
    answer = await supervisor.command("reject_proof", job, body)
    [disclosure] = answer.json["disclosures"].values()
    assert disclosure["class"] == "legal_hold"


async def test_what_a_body_leaves_out_or_sets_to_null_is_told_apart_in_an_amendment(
    office: Office,
) -> None:
    job = await office.job(due_at="2026-03-02T12:00:00+01:00", priority=2)
    dispatcher = await office.somebody(D)
    body = {"due_at": None, "personal": {"client": None, "site_name": "Depot 8"}}
    answer = await dispatcher.command("amend", job, body)
    task = answer.json["task"]
    assert task["due_at"] is None
    assert task["priority"] == 2
    expected = PERSONAL | {"site_name": "Depot 8"}
    del expected["client"]
    assert task["personal"] == expected


async def test_work_lost_to_a_reassignment_is_handed_over_with_the_refusal(
    office: Office,
) -> None:
    job = await office.job("in_progress")
    former, other = job.worker, await office.hire(W)
    proof = job.proof()
    dispatcher = await office.somebody(D)
    await dispatcher.command("release", job, REASON)
    body = {"worker_id": other.principal_id, "personal": {"selection_reason": "nearer"}}
    await dispatcher.command("assign", job, body)
    answer = await former.command("submit_proof", job, proof, version=5)
    problem = assert_problem(answer, "version_conflict")
    assert [event["type"] for event in problem["events"]] == ["evidence.handed_over"]
    supervisor = await office.somebody(S)
    waiting = (await supervisor.get("/v1/reviews")).json["items"]
    assert [(item["kind"], item["manifest_id"]) for item in waiting] == [
        ("handover", job.manifest_id)
    ]


async def test_the_first_of_the_tokens_roles_that_may_is_the_one_that_acts(
    office: Office,
) -> None:
    both = await office.hire(D, S, principal_id="usr_both")
    job = await office.job("unassigned")
    answer = await both.command("cancel", job, REASON)
    command = decode_command(answer.json["command_bytes"].encode())
    assert command.actor.role is D
    other = await office.job("assigned")
    override = {"on_behalf_of": other.worker.principal_id, "personal": {"reason": "laptop"}}
    answer = await both.command("accept", other, {"override": override})
    assert decode_command(answer.json["command_bytes"].encode()).actor.role is S


async def test_a_token_of_somebody_who_lost_the_role_sees_the_task_no_more(
    office: Office,
) -> None:
    job = await office.job("unassigned")
    dispatcher = await office.hire(D)
    path = f"/v1/principals/{dispatcher.principal_id}/change"
    assert (await office.admin.post(path, {"roles": ["auditor"]})).status == 200
    assert_problem(await dispatcher.command("cancel", job, REASON), "not_found")
    assert_problem(await dispatcher.get(f"/v1/tasks/{job.task_id}"), "not_found")
