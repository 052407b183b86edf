"""Only what a receipt of our server proves of the very command that was sent is believed."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from support import commands as build
from support.signing_log import NOW, OTHER_SEED, SEED, SigningLog, event_of
from workmate_client.sync.proven import Pinned, learn_keys
from workmate_client.sync.verify import HeldCommand, Judgement, Sent, UnknownOutcome, judge
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.commands import StoreEvidence
from workmate_shared.wire.batch import Continuation, Receipt
from workmate_shared.wire.codec import encode
from workmate_shared.wire.dsse import key_id, keys_by_id, public_key_of
from workmate_shared.wire.intake import decode_command
from workmate_shared.wire.messages import (
    Change,
    Limits,
    Outcome,
    ProtocolRange,
    Pull,
    SyncAnswer,
    WireEvent,
)

LIMITS = Limits(commands=500, request_bytes=1 << 20, upload_bytes=1 << 30, keep_from=0)
PAYLOAD = encode(build.make_command("accept", command_id="c1", expected_version=2))
SENT = Sent(
    command_id="c1",
    aggregate_id=build.TASK,
    principal_id=build.ASSIGNEE,
    payload=PAYLOAD,
)
PAGE = Pull(cursor="p1")


def pinned(**fields: Any) -> Pinned:
    given: dict[str, Any] = {
        "tenant_id": build.TENANT,
        "principal_id": build.ASSIGNEE,
        "device_id": build.DEVICE,
        "lineage": "l1",
        "keys": keys_by_id([public_key_of(SEED)]),
    }
    return Pinned(**(given | fields))


def log(**fields: Any) -> SigningLog:
    return SigningLog(build.TENANT, **fields)


def answer(*outcomes: Outcome, **fields: Any) -> SyncAnswer:
    given: dict[str, Any] = {
        "protocol": ProtocolRange(1, 1),
        "lineage": "l1",
        "server_time": NOW,
        "limits": LIMITS,
        "pull": PAGE,
    }
    return SyncAnswer(outcomes=outcomes, **(given | fields))


def judged(*outcomes: Outcome, sent: Sent = SENT, **fields: Any) -> Judgement:
    return judge(answer(*outcomes, **fields), [sent], None, pinned())


def receipt_of(outcome: Outcome) -> Receipt:
    assert outcome.receipt is not None
    return outcome.receipt


def reason(*outcomes: Outcome, **fields: Any) -> str:
    """Return why nothing is known after an answer, and make sure that nothing else came of it."""
    found = judged(*outcomes, **fields)
    assert not found.outcomes
    assert not found.held
    (unknown,) = found.unknown
    assert unknown.command_id == "c1"
    return unknown.reason


@pytest.mark.parametrize("status", ["committed", "unchanged", "conflict", "rejected"])
def test_each_of_the_four_outcomes_counts_with_its_receipt(status: str) -> None:
    code = {"conflict": "version_conflict", "rejected": "not_assignee"}.get(status)
    outcome = log().decide(PAYLOAD, status, code, {"version": 3} if code else {})
    found = judged(outcome)
    (verified,) = found.outcomes
    assert (verified.command_id, verified.status, verified.batch) == ("c1", status, 1)
    assert verified.outcome == outcome
    assert not found.unknown
    assert found.newest_header == receipt_of(outcome).header
    assert found.newest_batch == 1


def test_a_rejection_may_carry_annotations() -> None:
    command = decode_command(PAYLOAD)
    note = event_of(command, 1, "evidence.handed_over")
    outcome = log().decide(PAYLOAD, "rejected", "actor_deactivated", events=[note])
    assert judged(outcome).outcomes


def test_a_retry_consumes_nothing_and_says_what_it_waits_for() -> None:
    outcome = Outcome(
        command_id="c1", status="retry", code="blocked_by", blocked_by="c0", after=4.0
    )
    found = judged(outcome)
    assert found.held == (
        HeldCommand(command_id="c1", code="blocked_by", blocked_by="c0", after_seconds=4.0),
    )
    assert not found.outcomes


def test_no_outcome_two_outcomes_or_one_without_a_receipt_prove_nothing() -> None:
    outcome = log().decide(PAYLOAD)
    assert reason() == "outcome_missing"
    assert reason(outcome, outcome) == "outcome_repeated"
    assert reason(replace(outcome, receipt=None)) == "receipt_missing"
    assert reason(replace(outcome, command_id="c2")) == "outcome_missing"


def test_a_receipt_of_a_key_that_is_not_pinned_proves_nothing() -> None:
    assert reason(log(seed=OTHER_SEED).decide(PAYLOAD)) == "receipt_signature"


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_id": "another-tenant"},
        {"principal_id": build.STRANGER},
        {"command_id": "c2"},
        {"command_hash": "00" * 32},
        {"outcome": "unchanged"},
        {"code": "version_conflict"},
        {"details": {"version": 4}},
        {"aggregate_id": "another-task"},
        {"events": ()},
    ],
)
def test_a_leaf_that_says_anything_else_than_was_asked_and_told_proves_nothing(
    changes: dict[str, Any],
) -> None:
    signer = log()
    outcome = signer.decide(PAYLOAD)
    leaf = judged(outcome).outcomes[0].leaf
    assert judged(replace(outcome, receipt=signer.commit(leaf))).outcomes
    signer.tenant_id = changes.get("tenant_id", build.TENANT)
    forged = signer.commit(replace(leaf, **changes))
    assert reason(replace(outcome, receipt=forged)) == "receipt_mismatch"


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "unchanged"},
        {"status": "rejected"},
        {"code": "not_assignee"},
        {"details": {"state": "accepted"}},
        {"version": 7},
        {"version": None},
    ],
)
def test_an_outcome_that_says_anything_else_than_its_receipt_proves_nothing(
    changes: dict[str, Any],
) -> None:
    assert reason(replace(log().decide(PAYLOAD), **changes)) == "receipt_mismatch"


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": 2},
        {"aggregate_version": 2},
        {"type": "task.completed"},
        {"payload": '{"type":"task.accept"}'},
    ],
)
def test_an_event_that_is_not_the_one_decided_makes_the_outcome_unknown(
    changes: dict[str, Any],
) -> None:
    outcome = log().decide(PAYLOAD)
    event = replace(outcome.events[0], **changes)
    assert reason(replace(outcome, events=(event,))) == "receipt_mismatch"
    assert reason(replace(outcome, events=(*outcome.events, event))) == "receipt_mismatch"


def test_an_event_that_is_withheld_takes_nothing_from_the_proof() -> None:
    outcome = log().decide(PAYLOAD)
    assert judged(replace(outcome, events=())).outcomes


def test_any_change_to_the_receipt_makes_the_outcome_unknown() -> None:
    outcome = log().decide(PAYLOAD)
    receipt = receipt_of(outcome)
    header = receipt.header
    forged = [
        replace(receipt, leaf=receipt.leaf.replace('"committed"', '"unchanged"')),
        replace(receipt, leaf=receipt.leaf + " "),
        replace(receipt, leaf="{}"),
        replace(receipt, path=receipt.path[:-1]),
        replace(receipt, path=(*receipt.path, "00" * 32)),
        replace(receipt, path=("zz", *receipt.path[1:])),
        replace(receipt, leaf_index=0),
        replace(receipt, leaf_index=99),
        replace(receipt, header=replace(header, payload=header.payload[::-1])),
        replace(receipt, header=replace(header, payload_type="application/json")),
        replace(receipt, header=replace(header, signatures=())),
        replace(receipt, header=receipt_of(log(lineage="l2").decide(PAYLOAD)).header),
    ]
    for other in forged:
        assert reason(replace(outcome, receipt=other)).startswith("receipt_")


def test_other_bytes_under_the_same_id_are_not_what_the_receipt_is_for() -> None:
    outcome = log().decide(PAYLOAD)
    other = encode(build.make_command("accept", command_id="c1", expected_version=3))
    assert reason(outcome, sent=replace(SENT, payload=other)) == "receipt_mismatch"


def test_one_bad_outcome_leaves_the_others_as_they_are() -> None:
    signer = log()
    second = encode(build.make_command("start_travel", command_id="c2", expected_version=2))
    outcomes = [signer.decide(PAYLOAD), signer.decide(second)]
    bad = replace(outcomes[0], receipt=None)
    found = judge(
        answer(bad, outcomes[1]),
        [SENT, replace(SENT, command_id="c2", payload=second)],
        None,
        pinned(),
    )
    assert [verified.command_id for verified in found.outcomes] == ["c2"]
    assert found.unknown == (UnknownOutcome("c1", "receipt_missing"),)


def test_a_key_that_the_log_announced_counts_from_then_on() -> None:
    signer = log()
    notice = signer.add_key(OTHER_SEED)
    outcome = signer.decide(PAYLOAD)
    assert reason(outcome) == "receipt_signature"
    found = judged(outcome, keys=(notice,))
    assert found.outcomes
    assert found.new_keys == {key_id(public_key_of(OTHER_SEED)): public_key_of(OTHER_SEED)}


def test_keys_follow_one_another_and_each_needs_the_one_before() -> None:
    signer = log()
    third = bytes(reversed(SEED))
    first, second = signer.add_key(OTHER_SEED), signer.add_key(third)
    assert key_id(public_key_of(third)) in learn_keys([first, second], pinned())
    assert len(learn_keys([second], pinned())) == 1


@pytest.mark.parametrize("fault", ["signer", "role", "event", "tenant", "key_id"])
def test_a_key_notice_that_is_not_proven_adds_no_key(fault: str | None) -> None:
    signer = SigningLog(
        "another-tenant" if fault == "tenant" else build.TENANT,
        seed=bytes(reversed(SEED)) if fault == "signer" else SEED,
    )
    notice = signer.add_key(OTHER_SEED, Role.ADMIN if fault == "role" else Role.SYSTEM)
    if fault == "event":
        other = notice.event.payload.replace(public_key_of(OTHER_SEED).hex(), "ab" * 32)
        notice = replace(notice, event=replace(notice.event, payload=other))
    if fault == "key_id":
        notice = log_key_under_a_false_name(log())
    assert learn_keys([notice], pinned()) == dict(pinned().keys)


def log_key_under_a_false_name(signer: SigningLog) -> Any:
    right = signer.add_key(OTHER_SEED)
    false = right.event.payload.replace(key_id(public_key_of(OTHER_SEED)), "ab" * 32)
    signer.seed = SEED
    return signer._tell(false.encode(), "credential.added", "system", "add-key")


def test_two_headers_for_one_batch_are_a_fork_and_the_second_proves_nothing() -> None:
    signer = log()
    held = receipt_of(signer.decide(encode(build.make_command("accept", command_id="c0")))).header
    rival = log().decide(PAYLOAD)
    found = judge(answer(rival), [SENT], None, pinned(newest_header=held))
    assert found.unknown == (UnknownOutcome("c1", "receipt_fork"),)
    assert [(fork.lineage, fork.batch) for fork in found.forks] == [("l1", 1)]
    assert found.newest_header == held


def test_a_header_that_does_not_follow_the_one_held_is_a_fork() -> None:
    signer, rival = log(), log()
    held = receipt_of(signer.decide(encode(build.make_command("accept", command_id="c0")))).header
    rival.batch, rival.previous = 1, "ab" * 32
    found = judge(answer(rival.decide(PAYLOAD)), [SENT], None, pinned(newest_header=held))
    assert found.forks
    assert not found.outcomes


def test_the_newest_header_is_that_of_the_highest_batch() -> None:
    signer = log()
    old = signer.decide(PAYLOAD)
    held = receipt_of(signer.decide(encode(build.make_command("accept", command_id="c2")))).header
    found = judge(answer(old), [SENT], None, pinned(newest_header=held))
    assert found.newest_header == held
    assert found.newest_batch == 2


def test_a_new_lineage_is_noted_and_its_header_becomes_the_newest() -> None:
    before = log()
    earlier = [encode(build.make_command("accept", command_id=f"o{n}")) for n in range(3)]
    header = receipt_of([before.decide(payload) for payload in earlier][-1]).header
    restored = log(lineage="l2")
    restored.previous = before.previous
    outcome = restored.decide(PAYLOAD)
    found = judge(answer(outcome, lineage="l2"), [SENT], None, pinned(newest_header=header))
    assert (found.lineage, found.lineage_changed) == ("l2", True)
    assert found.outcomes
    assert (found.newest_header, found.newest_batch) == (receipt_of(outcome).header, 1)


def test_what_a_restored_server_kept_is_believed_with_the_receipt_of_its_own_lineage() -> None:
    kept = log().decide(PAYLOAD)
    found = judge(answer(kept, lineage="l2"), [SENT], None, pinned(lineage="l2"))
    assert found.outcomes


def test_the_first_header_of_a_lineage_must_continue_where_the_one_held_ends() -> None:
    before = log()
    held = receipt_of(before.decide(encode(build.make_command("accept", command_id="c0"))))
    restored = log(lineage="l2")
    leaf = judged(log().decide(PAYLOAD)).outcomes[0].leaf
    outcome = log().decide(PAYLOAD)
    for kept, believed in ((before.previous, True), ("ab" * 32, False)):
        restored.batch = 0
        receipt = restored.commit(
            replace(leaf, lineage="l2"), continues=Continuation("l1", 1, kept or "")
        )
        found = judge(
            answer(replace(outcome, receipt=receipt), lineage="l2"),
            [SENT],
            None,
            pinned(newest_header=held.header),
        )
        assert bool(found.outcomes) is believed
        assert bool(found.forks) is not believed


def test_a_stale_server_of_a_lineage_that_was_left_is_not_believed_at_all() -> None:
    header = log(lineage="l2").decide(encode(build.make_command("accept", command_id="c0")))
    known = pinned(
        lineage="l2", past_lineages=frozenset({"l1"}), newest_header=receipt_of(header).header
    )
    found = judge(answer(log().decide(PAYLOAD)), [SENT], None, known)
    assert found.unknown == (UnknownOutcome("c1", "lineage_left"),)
    assert (found.lineage, found.lineage_changed) == ("l2", False)
    assert found.pull.fault == "lineage_left"


def test_a_server_that_went_back_is_heard_while_nothing_proves_the_other_lineage() -> None:
    known = pinned(lineage="l2", past_lineages=frozenset({"l1"}))
    found = judge(answer(log().decide(PAYLOAD)), [SENT], None, known)
    assert found.lineage_changed
    assert found.outcomes


def test_a_page_joins_only_at_the_cursor_that_was_sent() -> None:
    page = Pull(since="p1", cursor="p2")
    assert judge(answer(pull=page), [], "p1", pinned()).pull.cursor == "p2"
    for cursor in (None, "p0"):
        verdict = judge(answer(pull=page), [], cursor, pinned()).pull
        assert (verdict.cursor, verdict.fault) == (None, "pull_not_joined")


def test_a_page_that_gets_nowhere_or_has_no_end_is_a_fault() -> None:
    stuck = Pull(since="p1", cursor="p1", more=True)
    assert judge(answer(pull=stuck), [], "p1", pinned()).pull.fault == "pull_stuck"
    endless = Pull(since="p1")
    assert judge(answer(pull=endless), [], "p1", pinned()).pull.fault == "pull_malformed"


def gone(name: str, seq: int) -> Change:
    return Change(kind="task", id=name, seq=seq, removed="reassigned")


@pytest.mark.parametrize(
    "changes",
    [
        (gone("a", 2), gone("b", 1)),
        (gone("a", 1), gone("a", 2)),
        (Change(kind="task", id="a", seq=1),),
    ],
)
def test_a_page_out_of_order_or_with_an_object_twice_or_neither_there_nor_gone_is_a_fault(
    changes: tuple[Change, ...],
) -> None:
    page = Pull(changes=changes, cursor="p1")
    assert judge(answer(pull=page), [], None, pinned()).pull.fault == "pull_malformed"


def test_a_refused_pull_keeps_its_code_and_leaves_outcomes_alone() -> None:
    found = judged(log().decide(PAYLOAD), pull=Pull(refused="protocol_too_old"))
    assert found.outcomes
    assert (found.pull.refused, found.pull.wipe) == ("protocol_too_old", False)


def test_under_a_new_lineage_the_cursor_is_void_whatever_the_page_says() -> None:
    page = Pull(since="p1", cursor="p2")
    verdict = judge(answer(pull=page, lineage="l2"), [], "p1", pinned()).pull
    assert (verdict.refused, verdict.cursor) == ("cursor_expired", None)


def wipe_pull(signer: SigningLog, **fields: Any) -> Pull:
    given: dict[str, Any] = {"principal_id": build.ASSIGNEE, "device_id": build.DEVICE}
    notice = signer.revoke(**(given | {"wipe": True} | fields))
    return Pull(refused="device_revoked", receipt=notice.receipt, event=notice.event)


def test_a_wipe_is_ordered_only_by_a_receipt_of_our_server_for_this_device() -> None:
    def ordered(pull: Pull) -> bool:
        return judge(answer(pull=pull), [], None, pinned()).pull.wipe

    right = wipe_pull(log())
    assert ordered(right)
    assert not ordered(wipe_pull(log(), wipe=False))
    assert not ordered(wipe_pull(log(), device_id="another-device"))
    assert not ordered(wipe_pull(log(), principal_id=build.STRANGER))
    assert not ordered(wipe_pull(log(seed=OTHER_SEED)))
    assert not ordered(wipe_pull(SigningLog("another-tenant")))
    assert not ordered(replace(right, receipt=None))
    assert not ordered(replace(right, event=None))
    louder = wipe_pull(log(), wipe=False)
    assert not ordered(replace(louder, event=right.event))


def test_an_event_of_a_later_version_orders_nothing() -> None:
    event = WireEvent(1, 1, "credential.vanished", '{"type":"credential.vanished"}')
    pull = replace(wipe_pull(log()), event=event)
    assert not judge(answer(pull=pull), [], None, pinned()).pull.wipe


def test_the_receipt_of_a_store_evidence_proves_which_files_are_held() -> None:
    kind = StoreEvidence(
        schema_version=1,
        tenant_id=build.TENANT,
        aggregate_id=build.TASK,
        actor=decode_command(PAYLOAD).actor,
        command_id="c1",
        lineage="l1",
        occurred_at=NOW,
        hashes=("aa" * 32,),
    )
    payload = encode(kind)
    found = judged(log().decide(payload), sent=replace(SENT, payload=payload))
    stored = msgspec.json.decode(found.outcomes[0].outcome.events[0].payload)
    assert stored["hashes"] == ["aa" * 32]


def test_receipts_are_values_that_survive_the_wire() -> None:
    receipt = receipt_of(log().decide(PAYLOAD))
    assert msgspec.json.decode(encode(receipt), type=Receipt) == receipt
