"""Requests and answers ignore what they do not know, and hold what a peer must keep to."""

import json
from typing import Any

import msgspec
import pytest

from support.commands import DISCLOSURES, disclose, make_command
from support.contexts import walk_to
from workmate_shared.wire import messages as m
from workmate_shared.wire.batch import Receipt
from workmate_shared.wire.codec import MalformedError, decode, encode
from workmate_shared.wire.dsse import COMMAND_TYPE, Envelope, sign

SEED = bytes(range(32))
ENVELOPE = sign(COMMAND_TYPE, encode(make_command("assign")), SEED)
COMMITMENT, DISCLOSURE = disclose({"selection_reason": "nearest with the skill"})
SIGNED = m.SignedCommand(ENVELOPE, {COMMITMENT: DISCLOSURE})
RECEIPT = Receipt(leaf="{}", path=("0a" * 32,), leaf_index=1, header=ENVELOPE)
EVENT = m.WireEvent(seq=7, aggregate_version=1, type="task.created", payload="{}")
NOW = "2026-03-01T09:00:00.000Z"

REQUEST = m.SyncRequest(
    protocol=m.PROTOCOL,
    newest_header=ENVELOPE,
    cursor="after-7",
    device=m.DeviceReport(build="1.0", pending=3, oldest_pending_at=NOW, disk_free=0, clock=NOW),
    commands=(SIGNED,),
)
ANSWER = m.SyncAnswer(
    protocol=m.ProtocolRange(m.PROTOCOL_MINIMUM, m.PROTOCOL),
    lineage="lineage-1",
    server_time=NOW,
    limits=m.Limits(commands=500, request_bytes=1 << 20, upload_bytes=1 << 26, keep_from=4),
    keys=(m.KeyNotice(EVENT, RECEIPT),),
    backoff=1.5,
    outcomes=(
        m.Outcome(
            command_id="key-1",
            status="conflict",
            code="version_conflict",
            details={"expected_version": 3},
            version=5,
            receipt=RECEIPT,
            events_since=(EVENT,),
        ),
        m.Outcome(command_id="key-2", status="retry", code="blocked_by", blocked_by="key-1"),
    ),
    pull=m.Pull(
        changes=(
            m.Change(
                kind="task", id="t-1", seq=7, task=walk_to("accepted"), disclosures=DISCLOSURES
            ),
            m.Change(kind="task", id="t-2", seq=8, removed="reassigned"),
        ),
        since="after-6",
        cursor="after-8",
    ),
)
OTHERS = (
    m.NonceRequest("tenant-1", "device-1"),
    m.NonceAnswer("00", "0a" * 32, NOW),
    m.SessionAnswer("secret", NOW, "tenant-1", "usr_ann", "device-1"),
    m.EnrolmentQuery("0a" * 32),
    m.EnrolmentOffer("tenant-1", "usr_ann", "lineage-1", None, {"0a" * 32: "0b" * 32}, NOW),
)
ALL = (REQUEST, ANSWER, SIGNED, *OTHERS)


def read(value: object, kind: Any) -> Any:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return decode(data, kind, max_bytes=1 << 22, floats=True)


def request_with(**changes: Any) -> dict[str, Any]:
    members: dict[str, Any] = json.loads(encode(REQUEST))
    return members | changes


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_from_its_bytes(message: Any) -> None:
    assert read(encode(message), type(message)) == message


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_a_message_ignores_fields_of_the_future(message: Any) -> None:
    members = json.loads(encode(message)) | {"of_the_future": {"anything": [1, 2.5, None]}}
    assert read(members, type(message)) == message


def test_fields_of_the_future_are_ignored_in_the_parts_of_a_message_too() -> None:
    members = request_with()
    members["commands"][0]["hint"] = 1
    members["commands"][0]["envelope"]["hint"] = 1
    members["device"]["hint"] = 1
    assert read(members, m.SyncRequest) == REQUEST


def test_an_envelope_travels_under_the_names_of_its_standard() -> None:
    members = json.loads(encode(SIGNED))
    assert set(members["envelope"]) == {"payload", "payloadType", "signatures"}
    assert set(members["disclosures"][COMMITMENT]) == {"salt", "class", "value"}
    assert read(members["envelope"], Envelope) == ENVELOPE


def test_the_bytes_of_a_command_survive_the_journey() -> None:
    again = read(encode(REQUEST), m.SyncRequest).commands[0]
    assert again.envelope.payload == ENVELOPE.payload


def test_a_request_may_be_almost_empty() -> None:
    request = read({"protocol": 1}, m.SyncRequest)
    assert (request.cursor, request.limit, request.commands) == (None, 500, ())


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": None},
        {"protocol": "1"},
        {"limit": 0},
        {"limit": 501},
        {"cursor": "x" * 401},
        {"cursor": 7},
        {"newest_header": {}},
        {"commands": [SIGNED] * 501},
        {"commands": [{"envelope": ENVELOPE, "disclosures": {"no hash": DISCLOSURE}}]},
        {"commands": [{"disclosures": {}}]},
        {"device": {"pending": -1}},
        {"device": {"clock": "yesterday"}},
        {"device": {"build": "x" * 101}},
    ],
)
def test_a_request_that_breaks_a_limit_is_refused(change: dict[str, Any]) -> None:
    members = msgspec.to_builtins(request_with() | change)
    with pytest.raises(MalformedError):
        read(members, m.SyncRequest)


def test_a_request_at_every_limit_is_taken() -> None:
    limits: dict[str, Any] = {"limit": 500, "cursor": "x" * 400, "commands": [SIGNED] * 500}
    assert len(read(msgspec.to_builtins(request_with(**limits)), m.SyncRequest).commands) == 500


def test_what_an_outcome_has_nothing_to_say_about_is_left_out() -> None:
    members = json.loads(encode(m.Outcome(command_id="key-1", status="unchanged", version=3)))
    assert members == {"command_id": "key-1", "status": "unchanged", "version": 3}


@pytest.mark.parametrize("status", ["ok", "pending", "", None])
def test_an_outcome_ends_in_one_of_five_ways(status: Any) -> None:
    with pytest.raises(MalformedError):
        read({"command_id": "key-1", "status": status}, m.Outcome)


def test_a_problem_says_an_outcome_only_where_a_decision_was_recorded() -> None:
    problem = m.Problem(
        type="urn:workmate:problem:not_found", code="not_found", title="T", status=404, detail="D"
    )
    assert set(json.loads(encode(problem))) == {"type", "code", "title", "status", "detail"}
    recorded = msgspec.structs.replace(problem, outcome="conflict", version=3, receipt=RECEIPT)
    assert {"outcome", "version", "receipt"} <= set(json.loads(encode(recorded)))


def test_a_command_answer_holds_the_bytes_that_its_receipt_is_about() -> None:
    answer = m.CommandAnswer(
        outcome="committed", version=1, events=(EVENT,), receipt=RECEIPT, command_bytes="{}"
    )
    members = json.loads(encode(answer))
    assert members["command_bytes"] == "{}"
    assert not {"task", "principal", "code"} & set(members)
