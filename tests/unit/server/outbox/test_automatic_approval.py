"""The rule that approves proofs by itself, from upload to completion."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.handheld import Handheld, rows_of, take_handheld
from support.office import Job, Office, open_office
from support.tus import hash_of, upload
from workmate_server.outbox.relay import Relay, RelayParts
from workmate_server.outbox.rules import AUTOMATIC_APPROVAL, RULE_PREFIX, AutomaticApproval
from workmate_server.store import outbox
from workmate_server.store.outbox import Subscription
from workmate_server.store.tables import OutboxRow, table_of
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.manifest import PhotoItem

JPEG = b"\xff\xd8\xff\xe0" + b"pixels" * 100
KIND = RULE_PREFIX + AUTOMATIC_APPROVAL
POLICY: dict[str, Any] = {
    "photos": [{"slot": "after", "prompt": "Finished work"}],
    "validation": "automatic",
}


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with open_office(tmp_path) as opened:
        known = {row["kind"] for row in rows_of(opened, "subscription")}
        if KIND not in known:
            add_rule(opened)
        yield opened


@pytest.fixture
async def handheld(office: Office) -> Handheld:
    return await take_handheld(office, await office.somebody(Role.WORKER))


def add_rule(office: Office) -> None:
    with office.services.database.write() as connection:
        outbox.add_subscription(
            connection,
            Subscription(
                tenant_id=office.tenant.tenant_id,
                subscription_id="rule-of-the-test",
                kind=KIND,
                target="",
                sealed_secret=None,
                active=True,
            ),
        )


async def work_rules(office: Office) -> None:
    """Let the rules do everything that is due."""
    services = office.services
    rule = AutomaticApproval(
        database=services.database,
        engine=services.engine,
        fingerprint_key=services.keys.fingerprint_key,
        clock=services.clock,
        run_blocking=services.run_blocking,
    )
    parts = RelayParts(
        database=services.database,
        settings=services.settings,
        clock=services.clock,
        entropy=services.entropy,
        run_blocking=services.run_blocking,
        owner="relay-1",
    )
    while await Relay(parts, {KIND: rule}).run_once():
        pass


async def submit(
    handheld: Handheld, job: Job, content: bytes = JPEG, manifest_id: str | None = None
) -> None:
    """Submit a proof with one photo, its bytes not sent yet."""
    photo = PhotoItem(
        item_id="after-1",
        slot="after",
        hash=hash_of(content),
        size=len(content),
        media_type="image/jpeg",
    )
    proof = job.proof(items=(photo,), manifest_id=manifest_id or job.manifest_id)
    fields = {name: proof[name] for name in ("manifest", "content_hash")}
    signed = handheld.signed("submit_proof", job, expected_version=job.version, **fields)
    (outcome,) = await handheld.outcomes(signed)
    assert outcome.status == "committed", outcome
    job.version = outcome.version or 0


async def store(handheld: Handheld, job: Job, content: bytes = JPEG) -> None:
    """Upload a file and have it recorded as stored."""
    worker = await handheld.office.somebody(Role.WORKER)
    await upload(worker, job.task_id, content)
    signed = handheld.signed("store_evidence", job, hashes=(hash_of(content),))
    (outcome,) = await handheld.outcomes(signed)
    assert outcome.status == "committed", outcome
    job.version = outcome.version or 0


async def state_of(office: Office, job: Job) -> str:
    dispatcher = await office.somebody(Role.DISPATCHER)
    return str((await dispatcher.get(f"/v1/tasks/{job.task_id}")).json["state"])


def due_again(office: Office, moment: str = "2000-01-01T00:00:00.000Z") -> None:
    """Put every row back to where it waits, due at a moment."""
    with office.services.database.write() as connection:
        table = table_of(OutboxRow)
        connection.execute(table.update().values(status="pending", next_attempt_at=moment))


def tries(office: Office) -> list[tuple[str, str | None]]:
    """Return how each approval that the system tried ended."""
    return [
        (row["outcome"], row["code"])
        for row in rows_of(office, "command_log")
        if row["name"] == "approve_proof"
    ]


async def test_a_proof_is_approved_when_its_last_file_is_stored(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress", proof_policy=POLICY)
    await submit(handheld, job)
    await work_rules(office)
    assert (await state_of(office, job), tries(office)) == ("proof_pending", [])
    await store(handheld, job)
    await work_rules(office)
    assert (await state_of(office, job), tries(office)) == ("completed", [("committed", None)])
    (event,) = [row for row in rows_of(office, "audit_event") if row["type"] == "task.completed"]
    assert (event["actor_id"], event["actor_role"]) == ("system", "system")


async def test_a_proof_is_approved_when_its_last_byte_comes_though_nobody_says_so(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress", proof_policy=POLICY)
    await submit(handheld, job)
    await work_rules(office)
    await upload(await office.somebody(Role.WORKER), job.task_id, JPEG)
    await work_rules(office)
    assert (await state_of(office, job), tries(office)) == ("completed", [("committed", None)])


async def test_a_proof_whose_files_came_first_is_approved_when_it_is_submitted(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress", proof_policy=POLICY)
    await store(handheld, job)
    await submit(handheld, job)
    await work_rules(office)
    assert await state_of(office, job) == "completed"


async def test_the_key_names_the_rule_and_the_event(office: Office, handheld: Handheld) -> None:
    job = await office.job("in_progress", proof_policy=POLICY)
    await store(handheld, job)
    await work_rules(office)
    await submit(handheld, job)
    await work_rules(office)
    (command,) = [row for row in rows_of(office, "command_log") if row["name"] == "approve_proof"]
    events = {row["event_id"]: row["type"] for row in rows_of(office, "audit_event")}
    rule, _, event_id = command["command_id"].partition("/")
    assert (rule, events[event_id]) == ("automatic_approval", "task.proof_submitted")
    assert command["principal_id"] == "system"


async def test_a_proof_that_a_person_must_approve_is_left_alone(
    office: Office, handheld: Handheld
) -> None:
    policy = POLICY | {"validation": "supervisor"}
    job = await office.job("in_progress", proof_policy=policy)
    await store(handheld, job)
    await submit(handheld, job)
    await work_rules(office)
    assert (await state_of(office, job), tries(office)) == ("proof_pending", [])


async def test_a_proof_with_something_wrong_is_tried_once_and_stays_for_a_supervisor(
    office: Office, handheld: Handheld
) -> None:
    policy = POLICY | {"photos": [{"slot": "after", "prompt": "Finished work", "min": 2, "max": 2}]}
    job = await office.job("in_progress", proof_policy=policy)
    await submit(handheld, job)
    await work_rules(office)
    await store(handheld, job)
    await work_rules(office)
    # As after a crash between the commit and the settling of the rows: at another version.
    due_again(office)
    await work_rules(office)
    assert await state_of(office, job) == "proof_pending"
    assert tries(office) == [("rejected", "proof_policy_unmet")]


async def test_only_the_present_proof_is_approved(office: Office, handheld: Handheld) -> None:
    job = await office.job("in_progress", proof_policy=POLICY)
    await submit(handheld, job)
    supervisor = await office.somebody(Role.SUPERVISOR)
    body = {"manifest_id": job.manifest_id, "personal": {"reason": "the photo is blurred"}}
    assert (await supervisor.command("reject_proof", job, body)).status == 200
    await store(handheld, job)
    await work_rules(office)
    assert (await state_of(office, job), tries(office)) == ("in_progress", [])
    await submit(handheld, job, manifest_id="second")
    await work_rules(office)
    assert await state_of(office, job) == "completed"


async def test_a_rule_that_is_asked_twice_has_one_effect(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress", proof_policy=POLICY)
    await store(handheld, job)
    await submit(handheld, job)
    await work_rules(office)
    due_again(office)
    await work_rules(office)
    assert tries(office) == [("committed", None)]
    assert {row["status"] for row in rows_of(office, "outbox")} == {"delivered"}


async def test_a_rules_row_holds_up_no_other_row_of_its_task(
    office: Office, handheld: Handheld
) -> None:
    job = await office.job("in_progress", proof_policy=POLICY)
    due_again(office, "2999-01-01T00:00:00.000Z")
    await store(handheld, job)
    await submit(handheld, job)
    await work_rules(office)
    assert await state_of(office, job) == "completed"
