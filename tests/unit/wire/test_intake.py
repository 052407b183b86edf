"""A command is taken only if every byte of it, and of what came with it, is as it must be."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commands import (
    ANSWERS,
    ASSIGNEE,
    DISCLOSURES,
    DRAWING,
    FIX,
    FIXES,
    OTHER_FILE,
    OVERRIDE_REASON,
    PERSONAL,
    PHOTO,
    SITE,
    TENANT,
    disclose,
    make_actor,
    make_command,
    make_manifest,
    make_reading,
    manifest_fields,
)
from support.contexts import story_to
from workmate_shared.kernel.catalogue import CATALOGUE, Recorded
from workmate_shared.kernel.command import COMMAND_SCHEMA, Command
from workmate_shared.kernel.table import Role
from workmate_shared.tasks.manifest import content_hash
from workmate_shared.tasks.values import (
    Fix,
    ManifestPersonal,
    OverridePersonal,
    SelectionPersonal,
    SitePosition,
    TaskPersonal,
)
from workmate_shared.wire.binary import to_base64
from workmate_shared.wire.codec import encode
from workmate_shared.wire.intake import (
    MAX_COMMAND_BYTES,
    Message,
    MessageError,
    check_message,
    decode_command,
    decode_event,
    open_manifest,
)
from workmate_shared.wire.registry import COMMAND_TYPES, KINDS, kind_of_command

CREATIONS = {row.command for kind in KINDS for row in kind.lifecycle.table.rows if row.creates}


def plain_command(kind: str, /, **changes: Any) -> dict[str, Any]:
    """Return a command as JSON members; a change to None removes the member."""
    members = json.loads(encode(make_command(kind))) | changes
    return {name: value for name, value in members.items() if value is not None}


def refuse_bytes(payload: bytes) -> MessageError:
    with pytest.raises(MessageError) as caught:
        decode_command(payload)
    return caught.value


def refuse(kind: str, /, **changes: Any) -> tuple[str, str]:
    """Return code and path of the refusal of a command with these members."""
    error = refuse_bytes(json.dumps(plain_command(kind, **changes)).encode())
    return error.code, error.path


def take(command: Command, disclosures: Any = DISCLOSURES) -> Message:
    return check_message(command, disclosures, TENANT)


def refuse_message(command: Command, disclosures: Any = DISCLOSURES) -> tuple[str, str]:
    with pytest.raises(MessageError) as caught:
        take(command, disclosures)
    return caught.value.code, caught.value.path


@pytest.mark.parametrize("kind", COMMAND_TYPES)
def test_every_command_comes_back_from_its_bytes(kind: str) -> None:
    command = make_command(kind, device=make_reading())
    assert decode_command(encode(command)) == command


@pytest.mark.parametrize("kind", COMMAND_TYPES)
def test_every_example_is_taken_with_its_values_opened(kind: str) -> None:
    message = take(make_command(kind))
    assert set(message.opened) >= set(message.command.commitments())


def test_the_values_of_a_command_are_opened_as_their_kinds() -> None:
    created = make_command("create_task")
    opened = take(created).opened
    assert opened[created.personal or ""] == TaskPersonal(**PERSONAL["create_task"])
    assert opened[created.position or ""] == SitePosition(**SITE)
    arrived = make_command("arrive")
    assert take(arrived).opened == {arrived.position: Fix(**FIX)}
    assigned = make_command("assign")
    assert take(assigned).opened == {assigned.personal: SelectionPersonal(**PERSONAL["assign"])}


@pytest.mark.parametrize("kind", ["submit_proof", "hand_over"])
def test_a_manifest_is_decoded_and_its_values_opened(kind: str) -> None:
    message = take(make_command(kind))
    manifest = make_manifest()
    assert message.manifest == manifest
    assert message.opened == {
        manifest.personal: ManifestPersonal(**ANSWERS),
        manifest.position: {"after-1": Fix(**FIX)},
    }
    assert open_manifest(manifest, DISCLOSURES) == message.opened


def test_the_files_that_a_message_names_are_its_evidence() -> None:
    assert take(make_command("submit_proof")).evidence == (PHOTO, DRAWING)
    assert take(make_command("arrive")).evidence == (OTHER_FILE,)
    assert take(make_command("store_evidence", hashes=(PHOTO, PHOTO))).evidence == (PHOTO,)
    assert take(make_command("accept")).evidence == ()


def test_a_proof_that_was_handed_over_before_comes_without_a_manifest() -> None:
    by_id = {"manifest": None, "content_hash": None, "manifest_id": "manifest-1"}
    message = take(make_command("submit_proof", **by_id))
    assert (message.manifest, message.opened, message.evidence) == (None, {}, ())


def test_a_supervisor_says_why_he_acts_for_somebody() -> None:
    command = make_command("accept", actor=make_actor(Role.SUPERVISOR), override=ASSIGNEE)
    assert take(command).opened == {command.personal: OverridePersonal(**OVERRIDE_REASON)}


# Bytes that are no command.


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b'"accept"',
        b"{}",
        b'{"type": "accept"}',
        b'{"type": 1, "schema_version": 1}',
        b'{"type": "accept", "schema_version": "1"}',
        b'{"type": "accept", "schema_version": 1, "schema_version": 1}',
        b'{"type": "accept", "schema_version": 1} x',
        b"\xef\xbb\xbf{}",
        b"\xff\xfe",
        b'{"type": "\\ud800", "schema_version": 1}',
        b'{"type": "accept", "schema_version": NaN}',
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_command_are_refused(payload: bytes) -> None:
    assert refuse_bytes(payload).code == "invalid_command"


def test_more_bytes_than_the_limit_are_refused_before_they_are_parsed() -> None:
    assert refuse_bytes(b"[" * (MAX_COMMAND_BYTES + 1)).code == "too_large"
    assert refuse_bytes(b"[" * MAX_COMMAND_BYTES).code == "invalid_command"


def test_a_command_of_the_largest_manifest_fits() -> None:
    carried = manifest_fields(make_manifest())
    longest = make_command("hand_over", **(carried | {"manifest": "A" * 350_000}))
    assert isinstance(decode_command(encode(longest)), Command)
    assert refuse("hand_over", manifest="A" * 350_001) == ("invalid_command", "$.manifest")


@pytest.mark.parametrize(
    ("kind", "version"),
    [("teleport", 1), ("accept", COMMAND_SCHEMA + 1), ("task.accepted", 1), ("", 1)],
)
def test_a_kind_or_version_from_the_future_is_waited_for(kind: str, version: int) -> None:
    members = plain_command("accept", type=kind, schema_version=version)
    error = refuse_bytes(json.dumps(members).encode())
    assert (error.code, error.path) == ("unknown_schema", "$.type")
    assert CATALOGUE[error.code].recorded is Recorded.RETRY


def test_an_unknown_kind_is_not_repeated_at_full_length() -> None:
    members = plain_command("accept", type="x" * 500_000)
    assert len(str(refuse_bytes(json.dumps(members).encode()))) < 200


@pytest.mark.parametrize("change", [{"x" * 500_000: 1}, {"occurred_at": "x" * 500_000}])
def test_a_fault_is_not_repeated_at_full_length(change: dict[str, Any]) -> None:
    error = refuse_bytes(json.dumps(plain_command("accept", **change)).encode())
    assert error.code == "invalid_command"
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"schema_version": 0}, "$.schema_version"),
        ({"schema_version": -1}, "$.schema_version"),
        ({"tenant_id": None}, "$"),
        ({"tenant_id": ""}, "$.tenant_id"),
        ({"tenant_id": "t\n"}, "$.tenant_id"),
        ({"tenant_id": ["t"]}, "$.tenant_id"),
        ({"aggregate_id": "../../etc"}, "$.aggregate_id"),
        ({"aggregate_id": "x" * 129}, "$.aggregate_id"),
        ({"actor": "usr_ann"}, "$.actor"),
        ({"actor": {"id": "usr_ann", "role": "king"}}, "$.actor.role"),
        ({"actor": {"id": "usr_ann", "role": "worker", "admin": True}}, "$.actor"),
        ({"actor": {"id": "usr ann", "role": "worker"}}, "$.actor.id"),
        ({"command_id": "a b"}, "$.command_id"),
        ({"command_id": "a\n"}, "$.command_id"),
        ({"command_id": ""}, "$.command_id"),
        ({"command_id": "x" * 256}, "$.command_id"),
        ({"command_id": "ü"}, "$.command_id"),
        ({"after": ""}, "$.after"),
        ({"supersedes": "a b"}, "$.supersedes"),
        ({"expected_version": -1}, "$.expected_version"),
        ({"expected_version": "1"}, "$.expected_version"),
        ({"expected_version": 2**53}, "$.expected_version"),
        ({"expected_version": True}, "$.expected_version"),
        ({"expected_version": 1.5}, "$.expected_version"),
        ({"expected_version": 1.0}, "$.expected_version"),
        ({"occurred_at": "2026-03-01T09:00:00"}, "$.occurred_at"),
        ({"occurred_at": "2026-03-01"}, "$.occurred_at"),
        ({"occurred_at": 1772355600}, "$.occurred_at"),
        ({"occurred_at": "2026-03-01T09:00:00Z\n"}, "$.occurred_at"),
        ({"occurred_at": "2026-02-30T09:00:00Z"}, "$"),
        ({"occurred_at": "0000-01-01T09:00:00Z"}, "$"),
        ({"occurred_at": "0001-01-01T09:00:00+09:01"}, "$"),
        ({"occurred_at": "9999-12-31T15:00:00-09:00"}, "$"),
        ({"override": {"on_behalf_of": "usr_ann", "reason": "in the clear"}}, "$.override"),
        ({"override": True}, "$.override"),
        ({"personal": {"reason": "in the clear"}}, "$.personal"),
        ({"personal": "AB" * 32}, "$.personal"),
        ({"position": {"lat_e7": 1, "lon_e7": 1}}, "$.position"),
        ({"surprise": 1}, "$"),
        ({"manifest_id": "m-1"}, "$"),
    ],
)
def test_a_field_that_breaks_its_rule_is_named(change: dict[str, Any], path: str) -> None:
    assert refuse("accept", **change) == ("invalid_command", path)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"device_seq": 0}, "$.device.device_seq"),
        ({"device_seq": 2**53}, "$.device.device_seq"),
        ({"monotonic_ms": 2**53}, "$.device.monotonic_ms"),
        ({"monotonic_ms": -1}, "$.device.monotonic_ms"),
        ({"boot_id": ""}, "$.device.boot_id"),
        ({"last_server_time": "2026-02-30T00:00:00Z"}, "$"),
        ({"battery": 50}, "$.device"),
    ],
)
def test_a_reading_of_a_device_that_breaks_its_rule_is_named(
    change: dict[str, Any], path: str
) -> None:
    reading = json.loads(encode(make_reading())) | change
    assert refuse("accept", device=reading) == ("invalid_command", path)


POLICY = {"checklist": [{"kind": "number", "item_id": "x", "prompt": "?"}]}


@pytest.mark.parametrize(
    ("kind", "change", "path"),
    [
        ("create_task", {"external_id": "a b"}, "$.external_id"),
        ("create_task", {"external_id": "x" * 201}, "$.external_id"),
        ("create_task", {"source": None}, "$"),
        ("create_task", {"source": "a:b"}, "$.source"),
        ("create_task", {"source": "x" * 101}, "$.source"),
        ("create_task", {"priority": 10}, "$.priority"),
        ("create_task", {"due_at": "2026-02-30T00:00:00Z"}, "$"),
        (
            "create_task",
            {"window": {"start": "2026-03-01T09:00:00Z", "end": "2026-03-01T09:30:00+01:00"}},
            "$.window",
        ),
        (
            "create_task",
            {"window": {"start": "2026-02-30T09:00:00Z", "end": "2026-03-01T09:30:00Z"}},
            "$.window",
        ),
        ("create_task", {"required_skills": ["Electrical"]}, "$.required_skills[0]"),
        ("create_task", {"required_skills": ["x"] * 51}, "$.required_skills"),
        ("create_task", {"proof_policy": {"checklists": []}}, "$.proof_policy"),
        (
            "create_task",
            {"proof_policy": {"checklist": [{**POLICY["checklist"][0], "min": 1}]}},
            "$.proof_policy.checklist[0].min",
        ),
        ("create_task", {"pinned_articles": [{"article_id": "a"}]}, "$.pinned_articles[0]"),
        ("assign", {"personal": None}, "$"),
        ("assign", {"worker_id": "usr\n"}, "$.worker_id"),
        ("decline", {"reason_code": "tired"}, "$.reason_code"),
        ("arrive", {"position": None}, "$"),
        ("arrive", {"no_fix_reason": "indoors"}, "$"),
        ("arrive", {"evidence": ["AA" * 32]}, "$.evidence[0]"),
        ("submit_proof", {"content_hash": None}, "$"),
        ("submit_proof", {"manifest": None}, "$"),
        ("submit_proof", {"manifest": None, "content_hash": None}, "$"),
        ("submit_proof", {"manifest_id": "m-1"}, "$"),
        ("hand_over", {"manifest": None, "content_hash": None}, "$"),
        ("approve_proof", {"manifest_id": None}, "$"),
        ("reject_proof", {"personal": None}, "$"),
        ("release", {"personal": None}, "$"),
        ("cancel", {"personal": None}, "$"),
        ("dismiss_handover", {"personal": None}, "$"),
        ("amend", {"priority": None}, "$"),
        ("amend", {"state": "completed"}, "$"),
        ("amend", {"due_at": "2026-02-30T00:00:00Z"}, "$"),
        ("observe", {"readings": []}, "$.readings"),
        (
            "observe",
            {"readings": [{"kind": "mood", "at": "2026-03-01T09:00:00Z"}]},
            "$.readings[0].kind",
        ),
        (
            "observe",
            {"readings": [{"kind": "note", "at": "2026-02-30T09:00:00Z"}]},
            "$.readings[0]",
        ),
        (
            "observe",
            {
                "readings": [
                    {
                        "kind": "sla_risk",
                        "at": "2026-03-01T09:00:00Z",
                        "due_at": "2026-02-30T09:00:00Z",
                    }
                ]
            },
            "$.readings[0]",
        ),
        ("observe", {"readings": [{"kind": "note", "at": "2026-03-01T09:00:00Z"}]}, "$"),
        ("observe", {"readings": [{"kind": "position", "at": "2026-03-01T09:00:00Z"}]}, "$"),
        ("store_evidence", {"hashes": []}, "$.hashes"),
        ("store_evidence", {"hashes": ["0a" * 32] * 501}, "$.hashes"),
        ("create_principal", {"roles": ["king"]}, "$.roles[0]"),
        ("change_principal", {"skills": None}, "$"),
        ("enrol", {"public_key": "0b" * 31}, "$.public_key"),
    ],
)
def test_a_field_of_a_command_that_breaks_its_rule_is_named(
    kind: str, change: dict[str, Any], path: str
) -> None:
    assert refuse(kind, **change) == ("invalid_command", path)


@pytest.mark.parametrize("kind", COMMAND_TYPES)
def test_a_command_with_an_unknown_field_is_refused(kind: str) -> None:
    assert refuse(kind, piority=1) == ("invalid_command", "$")


def test_amending_to_null_takes_a_value_away_and_leaving_out_keeps_it() -> None:
    members = plain_command("amend")
    command: Any = decode_command(json.dumps(members | {"due_at": None}).encode())
    assert command.changes() == {"priority": 1, "due_at": None}


def test_a_window_may_be_a_moment() -> None:
    window = {"start": "2026-03-01T09:00:00Z", "end": "2026-03-01T10:00:00+01:00"}
    command: Any = decode_command(json.dumps(plain_command("create_task", window=window)).encode())
    assert (command.window.start, command.window.end) == (window["start"], window["end"])


@pytest.mark.parametrize("kind", ["sla_risk", "sla_breach"])
def test_a_deadline_is_told_and_not_withdrawn_unless_it_says_so(kind: str) -> None:
    reading = {"kind": kind, "at": "2026-03-01T09:00:00Z", "due_at": "2026-03-01T12:00:00Z"}
    for said, withdrawn in (({}, False), ({"withdrawn": True}, True)):
        members = plain_command("observe", readings=[reading | said])
        command: Any = decode_command(json.dumps(members).encode())
        assert command.readings[0].withdrawn is withdrawn


def test_a_note_comes_with_its_words_and_a_position_reading_with_its_fix() -> None:
    words, place = disclose({"note": "the gate is locked"}, salt=9)[0], disclose(FIX)[0]
    for kind, field, commitment in (("note", "personal", words), ("position", "position", place)):
        reading = {"kind": kind, "at": "2026-03-01T09:00:00Z"}
        members = plain_command("observe", readings=[reading], **{field: commitment})
        assert decode_command(json.dumps(members).encode()).commitments() == (commitment,)


def test_a_day_that_no_calendar_has_is_told_as_it_was_written() -> None:
    members = plain_command("accept", occurred_at="2026-02-30T09:00:00Z")
    error = refuse_bytes(json.dumps(members).encode())
    assert error.detail == "2026-02-30T09:00:00Z is no moment of the calendar"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=8), parts),
    max_leaves=8,
)


@given(
    st.sampled_from(sorted(COMMAND_TYPES)),
    st.dictionaries(
        st.sampled_from(
            sorted({field for t in COMMAND_TYPES.values() for field in t.__struct_fields__})
        ),
        JSON,
        max_size=3,
    ),
)
def test_whatever_stands_in_the_fields_it_is_taken_or_refused_with_a_code(
    kind: str, changes: dict[str, Any]
) -> None:
    payload = json.dumps(plain_command(kind) | changes).encode()
    codes: list[str] = []
    try:
        take(decode_command(payload))
    except MessageError as error:
        codes = [error.code]
    assert all(CATALOGUE[code].recorded in (Recorded.RETRY, Recorded.REFUSED) for code in codes)


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_they_are_refused_with_a_code(payload: bytes) -> None:
    assert refuse_bytes(payload).code == "invalid_command"


# Commands that decode, with something wrong around them.


def test_a_command_for_another_tenant_is_refused() -> None:
    assert refuse_message(make_command("accept", tenant_id="other")) == (
        "tenant_mismatch",
        "$.tenant_id",
    )


@pytest.mark.parametrize("kind", ["store_evidence", "hand_over", "approve_proof", "enrol"])
def test_a_command_that_has_no_personal_value_commits_to_none(kind: str) -> None:
    command = make_command(kind, personal=disclose(OVERRIDE_REASON)[0])
    assert refuse_message(command) == ("invalid_command", "$.personal")


@pytest.mark.parametrize("kind", ["accept", "submit_proof", "cancel", "create_principal"])
def test_a_command_that_has_no_position_commits_to_none(kind: str) -> None:
    command = make_command(kind, position=disclose(FIX)[0])
    assert refuse_message(command) == ("invalid_command", "$.position")


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("assign", "$.personal"),
        ("arrive", "$.position"),
        ("submit_proof", "$.manifest.personal"),
        ("create_task", "$.personal"),
    ],
)
def test_a_value_that_did_not_come_along_is_waited_for(kind: str, path: str) -> None:
    assert refuse_message(make_command(kind), {}) == ("disclosure_missing", path)


def test_the_fixes_of_a_manifest_are_waited_for_too() -> None:
    given_values = dict(DISCLOSURES)
    del given_values[disclose(FIXES)[0]]
    assert refuse_message(make_command("submit_proof"), given_values) == (
        "disclosure_missing",
        "$.manifest.position",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"value": '{"selection_reason":"another"}'},
        {"value": '{"selection_reason": "nearest with the skill"}'},
        {"salt": to_base64(bytes(32))},
        {"salt": to_base64(bytes(31))},
        {"salt": "no base64"},
        {"value": "\ud800"},
    ],
)
def test_a_value_that_does_not_open_its_commitment_is_refused(change: dict[str, Any]) -> None:
    commitment, disclosure = disclose(PERSONAL["assign"])
    tampered = {commitment: msgspec.structs.replace(disclosure, **change)}
    assert refuse_message(make_command("assign"), tampered) == ("disclosure_mismatch", "$.personal")


def test_a_retention_class_is_no_part_of_what_was_committed_to() -> None:
    commitment, disclosure = disclose(PERSONAL["assign"], retention_class="legal_hold")
    assert take(make_command("assign"), {commitment: disclosure}).opened


def test_values_that_nothing_commits_to_are_left_alone() -> None:
    assert take(make_command("accept")).opened == {}


@pytest.mark.parametrize(
    ("kind", "field", "value", "path"),
    [
        ("assign", "personal", {"selection_reason": " "}, "$.personal.selection_reason"),
        ("assign", "personal", {"reason": "x"}, "$.personal"),
        ("assign", "personal", {}, "$.personal"),
        ("assign", "personal", None, "$.personal"),
        ("cancel", "personal", {"reason": 1}, "$.personal.reason"),
        ("create_task", "personal", {"client": "x" * 501}, "$.personal.client"),
        ("create_task", "position", {"lat_e7": 1}, "$.position"),
        ("create_task", "position", {"lat_e7": 40.5, "lon_e7": 1}, "$.position.lat_e7"),
        ("arrive", "position", {**FIX, "source": "guess"}, "$.position.source"),
        ("arrive", "position", [FIX], "$.position"),
        ("observe", "position", {**FIX, "at": "2026-02-30T00:00:00Z"}, "$.position"),
        ("observe", "personal", {"notes": "x"}, "$.personal"),
        ("create_principal", "personal", {"display_name": ""}, "$.personal.display_name"),
    ],
)
def test_a_value_that_opens_and_breaks_its_rule_is_refused_with_its_path(
    kind: str, field: str, value: Any, path: str
) -> None:
    commitment, disclosure = disclose(value, salt=9)
    command = make_command(kind, **{field: commitment})
    given_values = {**DISCLOSURES, commitment: disclosure}
    assert refuse_message(command, given_values) == ("invalid_command", path)


def test_a_value_with_two_meanings_is_refused() -> None:
    twice = '{"selection_reason":"a","selection_reason":"b"}'
    commitment, disclosure = disclose(msgspec.Raw(twice.encode()), salt=9)
    command = make_command("assign", personal=commitment)
    code, path = refuse_message(command, {commitment: disclosure})
    assert (code, path) == ("invalid_command", "$.personal")


@pytest.mark.parametrize("kind", ["accept", "submit_proof"])
@pytest.mark.parametrize("value", [None, {}, {"override_reason": None}])
def test_an_override_without_a_reason_is_refused(kind: str, value: Any) -> None:
    commitment, disclosure = disclose(value, salt=9)
    personal = None if value is None else commitment
    command = make_command(kind, override=ASSIGNEE, personal=personal)
    refused = refuse_message(command, {**DISCLOSURES, commitment: disclosure})
    assert refused == ("invalid_command", "$.override")


@pytest.mark.parametrize(
    "kind",
    [
        row.command
        for kind in KINDS
        for row in kind.lifecycle.table.rows
        if not row.overridable and row.command in kind.personal_kinds
    ],
)
def test_an_override_of_a_command_that_knows_no_assignee_is_refused(kind: str) -> None:
    personal = make_command(kind).personal
    command = make_command(kind, override=ASSIGNEE, personal=personal)
    assert refuse_message(command) == ("invalid_command", "$.override")


def refuse_manifest(**fields: Any) -> tuple[str, str]:
    carried = manifest_fields(make_manifest())
    return refuse_message(make_command("submit_proof", **(carried | fields)))


def carry(data: bytes) -> dict[str, str]:
    return {"manifest": to_base64(data), "content_hash": content_hash(data)}


def test_a_manifest_and_a_hash_of_something_else_are_refused() -> None:
    refused = refuse_manifest(content_hash="0a" * 32)
    assert refused == ("content_hash_mismatch", "$.content_hash")


@pytest.mark.parametrize(
    "spoil", [lambda t: t[:-1], lambda t: t + "\n", lambda t: "-" + t[1:], lambda _: "é"]
)
def test_a_manifest_has_one_spelling_in_base64(spoil: Any) -> None:
    text = manifest_fields(make_manifest())["manifest"]
    assert refuse_manifest(manifest=spoil(text)) == ("invalid_command", "$.manifest")


def test_a_manifest_of_another_task_is_refused() -> None:
    other = manifest_fields(make_manifest(task_id="another-task"))
    assert refuse_manifest(**other) == ("invalid_command", "$.manifest.task_id")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"items": [{"kind": "photo", "item_id": "p1"}]}, "$.manifest.items[0]"),
        ({"items": [{"kind": "answer", "item_id": "a"}] * 2}, "$.manifest"),
        ({"items": [{"kind": "answer", "item_id": "a", "value": "x"}]}, "$.manifest.items[0]"),
        ({"capture_time": "2026-02-30T00:00:00Z"}, "$.manifest"),
        ({"task_version": 5.0}, "$.manifest.task_version"),
        ({"surprise": 1}, "$.manifest"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused_with_its_path(
    change: dict[str, Any], path: str
) -> None:
    members = json.loads(encode(make_manifest())) | change
    assert refuse_manifest(**carry(json.dumps(members).encode())) == ("invalid_command", path)


@pytest.mark.parametrize("data", [b"", b"null", b"{", b"\xff"])
def test_bytes_that_are_no_manifest_are_refused(data: bytes) -> None:
    assert refuse_manifest(**carry(data)) == ("invalid_command", "$.manifest")


def test_the_answers_of_a_manifest_are_judged_by_their_kinds() -> None:
    commitment, disclosure = disclose({"answers": {"volts": 231}}, salt=9)
    carried = manifest_fields(make_manifest(personal=commitment))
    refused = refuse_message(
        make_command("submit_proof", **carried), {**DISCLOSURES, commitment: disclosure}
    )
    assert refused == ("invalid_command", "$.manifest.personal.answers[...]")


# Creations.


def test_a_task_has_the_id_that_follows_from_its_job() -> None:
    command = make_command("create_task", aggregate_id="task-of-my-own")
    assert refuse_message(command) == ("invalid_command", "$.aggregate_id")


@pytest.mark.parametrize("kind", sorted(CREATIONS))
def test_a_creation_builds_on_nothing(kind: str) -> None:
    assert refuse_message(make_command(kind, expected_version=1)) == (
        "invalid_command",
        "$.expected_version",
    )
    assert refuse_message(make_command(kind, after="key-1")) == ("invalid_command", "$.after")
    assert take(make_command(kind, expected_version=None)).command.after is None


def test_every_event_is_read_back_from_its_bytes_by_its_name() -> None:
    for event in story_to("completed", hand_over=True).events:
        assert decode_event(event.type, encode(event)) == event
    with pytest.raises(KeyError):
        decode_event("task.teleported", b"{}")
    with pytest.raises(msgspec.ValidationError):
        decode_event("task.accepted", b'{"type":"task.accepted"}')


def test_every_kind_of_value_belongs_to_a_command_of_its_aggregate() -> None:
    for kind in KINDS:
        for name in (*kind.personal_kinds, *kind.position_kinds):
            assert kind_of_command(name) is kind
