"""`verify` reports what the server signed and the lifecycle does not allow."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from support import commands as build
from support.eventful import CODE_HASH, DEVICE_SEED, NEVER, prepare, signed, task_of, worker
from support.log import Log, open_log
from support.tampering import Decide, Tables, forge, opened_copy, put_back, read_tables
from workmate_server.engine import commit
from workmate_shared.kernel.command import Command, Event
from workmate_shared.kernel.decision import Committed, Conflict, Rejection, Unchanged
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import DeviceKey, EnrolmentCode, LogKey
from workmate_shared.principals.enrolment import code_check
from workmate_shared.tasks.events import TaskCancelled, TaskObserved
from workmate_shared.wire.batch import Continuation, build_batch
from workmate_shared.wire.dsse import public_key_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Log, Tables]]:
    prepared = tmp_path_factory.mktemp("prepared")
    asyncio.run(prepare(prepared))
    with opened_copy(prepared, tmp_path_factory.mktemp("copy")) as copy:
        yield copy, read_tables(copy)


@pytest.fixture
def log(whole: tuple[Log, Tables]) -> Iterator[Log]:
    copy, before = whole
    yield copy
    put_back(copy, before)


def _command(log: Log, task: str, kind: str, **fields: Any) -> Command:
    given = {"command_id": "forged", "aggregate_id": task_of(log, task)}
    return log.make(kind, **(given | fields))


def _reasons(log: Log, seq: int) -> list[str]:
    """Return why the event at `seq` is forbidden; nothing else is found."""
    found = log.verify().findings
    assert {(f.place, f.fault) for f in found} == {(f"audit_event seq {seq}", "forbidden")}, found
    return [f.detail for f in found]


def _dispatcher(principal_id: str | None = None) -> Any:
    return build.make_actor(Role.DISPATCHER, principal_id)


@pytest.mark.parametrize(
    ("task", "kind", "fields", "reason"),
    [
        ("assigned", "accept", {"actor": _dispatcher()}, "accept is not for the role dispatcher"),
        ("assigned", "accept", {"actor": worker(build.FORMER)}, "usr_ben is not assignee"),
        ("assigned", "arrive", {}, "arrive is not allowed in state assigned"),
        ("completed", "cancel", {}, "cancel is not allowed in state completed"),
        ("cancelled", "amend", {}, "amend is not allowed in state cancelled"),
        ("accepted", "release", {"actor": _dispatcher(build.ASSIGNEE)}, "usr_ann is no dispatcher"),
        ("accepted", "release", {"actor": _dispatcher("usr_who")}, "usr_who is no dispatcher"),
        ("accepted", "amend", {"actor": build.make_actor("system")}, "amend is not for the role"),
        ("cancelled", "observe", {"actor": worker(build.STRANGER)}, "usr_cleo is deactivated"),
        ("accepted", "observe", {"actor": worker(build.FORMER)}, "usr_ben is not present or"),
        (
            "assigned",
            "accept",
            {
                "actor": _dispatcher(),
                "override": build.ASSIGNEE,
                "personal": build.disclose(build.OVERRIDE_REASON)[0],
            },
            "accept is not for the role dispatcher",
        ),
        (
            "assigned",
            "accept",
            {
                "actor": build.make_actor(Role.SUPERVISOR),
                "override": build.FORMER,
                "personal": build.disclose(build.OVERRIDE_REASON)[0],
            },
            "usr_sven is not assignee",
        ),
    ],
)
def test_an_event_for_which_its_actor_has_not_the_role_or_the_task_not_the_state_is_reported(
    log: Log, task: str, kind: str, fields: dict[str, Any], reason: str
) -> None:
    seq = forge(log, log.submission(_command(log, task, kind, **fields)))
    assert any(reason in detail for detail in _reasons(log, seq))


def test_what_a_revoked_device_still_did_is_reported(log: Log) -> None:
    actor = worker(device_id=build.DEVICE)
    seq = forge(log, signed(log, _command(log, "by-device", "observe", actor=actor)))
    assert _reasons(log, seq) == [f"device {build.DEVICE} is revoked"]


@pytest.mark.parametrize(
    ("principal_id", "kind", "fields", "reason"),
    [
        (build.STRANGER, "change_principal", {}, "change_principal is not allowed in state"),
        (build.FORMER, "deactivate_principal", {"actor": _dispatcher()}, "deactivate_principal is"),
        (
            "usr_new",
            "create_principal",
            {"actor": worker()},
            "create_principal is not for the role",
        ),
        (
            build.FORMER,
            "add_credential",
            {"actor": worker(), "credential": LogKey(credential_id="k", public_key="0a" * 32)},
            "add_credential of role worker, committed, writes no",
        ),
        (
            build.FORMER,
            "add_credential",
            {"actor": worker(), "credential": DeviceKey(credential_id="d", public_key="0a" * 32)},
            "enrol is not for usr_ann",
        ),
    ],
)
def test_principals_change_by_their_table_only(
    log: Log, principal_id: str, kind: str, fields: dict[str, Any], reason: str
) -> None:
    given = {"actor": build.make_actor(Role.SYSTEM), "aggregate_id": principal_id, **fields}
    seq = forge(log, log.submission(log.make(kind, command_id="forged", **given)))
    assert any(reason in detail for detail in _reasons(log, seq))


def _instead(kind: type[Event], **fields: Any) -> Decide:
    """Commit another event than the command's own."""

    def decide(events: Any) -> Any:
        (event,) = events
        stamped = msgspec.structs.asdict(event)
        kept = {name: stamped[name] for name in kind.__struct_fields__ if name in stamped}
        return Committed((kind(**(kept | fields)),))

    return decide


@pytest.mark.parametrize(
    ("kind", "decide"),
    [
        ("observe", _instead(TaskCancelled, personal=build.disclose(build.PERSONAL["cancel"])[0])),
        ("cancel", _instead(TaskObserved, readings=(), personal=None)),
        ("cancel", partial(Rejection, "role_not_allowed", {})),
        ("cancel", partial(Conflict, "version_conflict", {})),
        ("cancel", lambda events: Committed((replace(events[0], occurred_at=build.NOW),))),
        ("cancel", lambda events: Committed((replace(events[0], on_behalf_of="usr_ann"),))),
    ],
)
def test_an_event_that_its_command_cannot_cause_is_reported(
    log: Log, kind: str, decide: Decide
) -> None:
    command = _command(log, "accepted", kind, actor=build.make_actor(Role.DISPATCHER))
    assert _reasons(log, forge(log, log.submission(command), decide))


def test_an_event_under_another_actors_name_is_reported(log: Log) -> None:
    command = _command(log, "accepted", "cancel")
    other = build.make_actor(Role.SUPERVISOR)
    seq = forge(
        log,
        log.submission(command),
        lambda events: Committed((replace(events[0], actor=other),)),
    )
    found = {(f.place, f.fault) for f in log.verify().findings}
    assert (f"audit_event seq {seq} actor_id", "changed") in found


def test_what_is_allowed_is_not_reported_when_it_was_committed_without_checks(log: Log) -> None:
    forge(log, log.submission(_command(log, "accepted", "start_travel")))
    forge(log, log.submission(_command(log, "assigned", "observe", command_id="more")))
    silent = _command(log, "assigned", "accept", command_id="silent")
    forge(log, log.submission(silent), lambda _: Unchanged())
    assert log.verify().clean


def _continue(log: Log, monkeypatch: pytest.MonkeyPatch, continues: Continuation | None) -> None:
    log.tamper("UPDATE tenant_head SET lineage = 'l2'")
    monkeypatch.setattr(commit, "build_batch", partial(build_batch, continues=continues))
    forge(log, log.submission(_command(log, "accepted", "start_travel")))


def test_a_lineage_that_continues_another_says_where_it_left_it(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    (head,) = log.rows("tenant_head")
    left = Continuation(log.lineage, head["batch"], head["header_hash"])
    _continue(log, monkeypatch, left)
    assert log.verify().clean


@pytest.mark.parametrize("says", ["nothing", "another batch", "another hash"])
def test_a_lineage_that_does_not_say_so_is_reported(
    log: Log, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    (head,) = log.rows("tenant_head")
    batch, hashed = head["batch"], head["header_hash"]
    wrong = {
        "nothing": None,
        "another batch": Continuation(log.lineage, batch - 1, hashed),
        "another hash": Continuation(log.lineage, batch, "0a" * 32),
    }
    _continue(log, monkeypatch, wrong[says])
    (found,) = log.verify().findings
    assert (found.place, found.fault) == (f"commit_batch {batch + 1}", "forbidden")


async def test_a_device_may_enrol_and_act_in_one_batch(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.walk("assigned")
        code = EnrolmentCode(
            credential_id="code-1", code_check=code_check(CODE_HASH), expires_at=NEVER
        )
        administrator = build.make_actor(Role.SYSTEM)
        await log.run(log.make("add_credential", actor=administrator, credential=code))
        by_device = {"actor": worker(device_id=build.DEVICE)}
        key = public_key_of(DEVICE_SEED).hex()
        enrol = log.make(
            "enrol", command_id=CODE_HASH, public_key=key, expected_version=None, **by_device
        )
        accept = log.make("accept", expected_version=2, **by_device)
        revoke = log.make("revoke_credential", actor=administrator, expected_version=None)
        late = log.make("start_travel", expected_version=3, **by_device)
        answers = await log.engine.submit(
            log.tenant_id,
            [signed(log, enrol), signed(log, accept), log.submission(revoke), signed(log, late)],
        )
        assert [(a.status, a.code) for a in answers] == [
            *[("committed", None)] * 3,
            ("rejected", "device_revoked"),
        ]
        report = log.verify()
        assert report.clean, report.findings
