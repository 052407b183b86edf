"""One part of an answer that cannot be read costs no other part its effect."""

from typing import Any

import msgspec
import pytest

from support.contexts import walk_to
from support.signing_log import NOW
from workmate_client.sync.answers import RawAnswer
from workmate_client.sync.failures import UnreadableAnswerError
from workmate_client.sync.reading import UNREADABLE_PULL, read_sync_answer
from workmate_shared.wire.messages import Change, Limits, Outcome, ProtocolRange, Pull, SyncAnswer

TASK = walk_to("assigned")
CHANGE = Change(kind="task", id=TASK.task_id, seq=3, task=TASK)
ANSWER = SyncAnswer(
    protocol=ProtocolRange(1, 1),
    lineage="l1",
    server_time=NOW,
    limits=Limits(commands=500, request_bytes=1 << 20, upload_bytes=1 << 30, keep_from=1),
    pull=Pull(changes=(CHANGE,), since="1", cursor="2", more=True),
    outcomes=(
        Outcome(command_id="c1", status="retry", code="not_found", after=1.5),
        Outcome(command_id="c2", status="retry", code="not_found"),
    ),
)


def read(said: Any) -> SyncAnswer:
    headers = {"content-type": "application/json"}
    return read_sync_answer(RawAnswer(200, headers, msgspec.json.encode(said)), 100_000)


def said() -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(ANSWER), type=dict[str, Any])


def test_a_whole_answer_is_read_as_it_is() -> None:
    assert read(ANSWER) == ANSWER


def test_an_outcome_that_cannot_be_read_costs_no_other() -> None:
    changed = said()
    changed["outcomes"][0]["status"] = "perhaps"
    found = read(changed)
    assert found.outcomes == ANSWER.outcomes[1:]
    assert found.pull == ANSWER.pull


@pytest.mark.parametrize("pull", [None, 7, [], {"more": "perhaps"}, {"changes": [{"id": "a"}]}])
def test_a_pull_that_cannot_be_read_costs_no_outcome(pull: object) -> None:
    found = read(said() | {"pull": pull})
    assert found.pull == UNREADABLE_PULL
    assert found.outcomes == ANSWER.outcomes


def test_an_object_of_a_kind_known_later_is_left_out_and_the_page_still_counts() -> None:
    changed = said()
    later = {"kind": "article", "id": "a1", "seq": 2, "article": {"title": "t"}}
    changed["pull"]["changes"].insert(0, later)
    assert read(changed) == ANSWER


def test_a_task_that_cannot_be_read_makes_the_page_a_fault() -> None:
    changed = said()
    changed["pull"]["changes"][0]["seq"] = "three"
    assert read(changed).pull == UNREADABLE_PULL


def test_members_of_later_versions_are_ignored() -> None:
    changed = said() | {"weather": "fine"}
    changed["pull"]["weather"] = "fine"
    changed["outcomes"][0]["weather"] = "fine"
    assert read(changed) == ANSWER


@pytest.mark.parametrize("missing", ["lineage", "limits", "pull", "server_time"])
def test_an_answer_without_what_every_answer_has_is_none(missing: str) -> None:
    changed = said()
    del changed[missing]
    with pytest.raises(UnreadableAnswerError):
        read(changed)
