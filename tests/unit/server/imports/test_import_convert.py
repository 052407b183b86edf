"""A row becomes the job that its mapping says, or a refusal that names the rule."""

import json
from typing import Any

import pytest

from support.job_files import (
    PORTAL_ROW,
    convert_portal_row,
    convert_row,
    make_converter,
    make_mapping,
)
from workmate_server.config import Settings
from workmate_server.imports.convert import Converter
from workmate_server.imports.mapping import load_mapping
from workmate_server.imports.reading import Record
from workmate_server.imports.report import RowError
from workmate_shared.tasks.policy import ProofPolicy

OURS = load_mapping("workmate")


def rule_of(**cells: str) -> str:
    with pytest.raises(RowError) as refused:
        convert_portal_row(**cells)
    return refused.value.rule


def our_rule_of(**cells: str) -> str:
    row = {name.replace("__", "."): cell for name, cell in cells.items()}
    with pytest.raises(RowError) as refused:
        convert_row(OURS, {"external_id": "a"} | row)
    return refused.value.rule


def test_a_row_of_the_portal_becomes_this_job() -> None:
    body = convert_portal_row().body
    policy = body.pop("proof_policy")
    assert body == {
        "source": "nyc311",
        "external_id": "10000001",
        "priority": 2,
        "due_at": "2019-04-19T05:55:45-04:00",
        "required_skills": ["electrical"],
        "personal": {
            "client": "Department of Transportation",
            "site_name": "Street",
            "address": "1 EXAMPLE STREET, NEW YORK, NY 10001",
            "instructions": (
                "Street Light Condition: Street Light Out\nBetween FIRST AVENUE and SECOND AVENUE"
            ),
        },
        "position": {"lat_e7": 405863974, "lon_e7": -739325913},
    }
    assert [slot["slot"] for slot in policy["photos"]] == ["after"]
    assert [item["kind"] for item in policy["checklist"]] == ["confirm", "number"]
    assert policy["signature"] == ["worker"]
    assert policy["consent"]["text"]


def test_what_changes_while_the_portal_works_on_a_request_changes_no_job() -> None:
    assert convert_portal_row(Status="Open").body == convert_portal_row().body


def test_cells_that_are_empty_or_say_so_in_any_case_are_absent() -> None:
    for word in ("", "  ", "N/A", "n/a", "Unspecified"):
        body = convert_portal_row(**{"Location Type": word, "Descriptor": word}).body
        assert "site_name" not in body["personal"]
        assert body["personal"]["instructions"].startswith("Street Light Condition\n")


def test_an_address_is_made_of_what_there_is() -> None:
    crossing = {
        "Incident Address": "",
        "Intersection Street 1": "A STREET",
        "Intersection Street 2": "B STREET",
        "City": "",
        "Incident Zip": "",
    }
    assert convert_portal_row(**crossing).body["personal"]["address"] == (
        "A STREET and B STREET, MANHATTAN"
    )


def test_a_row_without_a_place_is_a_job_without_position() -> None:
    body = convert_portal_row(Latitude="", Longitude="").body
    assert "position" not in body


def test_a_row_without_due_date_is_due_a_term_after_its_creation() -> None:
    usual = convert_portal_row(**{"Due Date": ""}).body["due_at"]
    assert usual == "2019-05-18T21:55:45-04:00"
    police = convert_portal_row(**{"Due Date": "", "Agency": "nypd"}).body["due_at"]
    assert police == "2019-04-19T05:55:45-04:00"


def test_a_due_date_before_the_creation_is_refused_and_at_it_is_not() -> None:
    assert rule_of(**{"Due Date": "04/18/2019 09:55:44 PM"}) == "due_before_created"
    same = PORTAL_ROW["Created Date"]
    assert convert_portal_row(**{"Due Date": same}).body["due_at"] == "2019-04-18T21:55:45-04:00"


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        ({"Unique Key": ""}, "external_id_missing"),
        ({"Unique Key": "n/a"}, "external_id_missing"),
        ({"Unique Key": "two words"}, "external_id_invalid"),
        ({"Unique Key": "é"}, "external_id_invalid"),
        ({"Unique Key": "x" * 201}, "external_id_invalid"),
        ({"Created Date": "yesterday"}, "time_invalid"),
        ({"Due Date": "03/08/2020 02:30:00 AM"}, "time_nonexistent"),
        ({"Latitude": ""}, "coordinate_incomplete"),
        ({"Longitude": "-181"}, "coordinate_out_of_range"),
        ({"Latitude": "0", "Longitude": "0"}, "coordinate_zero"),
        ({"Incident Address": "x" * 501}, "text_too_long"),
        ({"Descriptor": "a\x00b"}, "control_character"),
        ({"Descriptor": "a\x1b[2Jb"}, "control_character"),
        ({"Descriptor": "a\x85b"}, "control_character"),
    ],
)
def test_a_cell_that_breaks_a_rule_refuses_its_row(cells: dict[str, str], rule: str) -> None:
    assert rule_of(**cells) == rule


def test_a_cell_may_be_as_long_as_the_limit_and_no_longer() -> None:
    mapping = make_mapping(instructions={"parts": [["{text}"]]})
    converter = Converter(mapping, cell_chars_max=10)
    assert converter.convert(Record(2, {"id": "a", "text": "x" * 10})).body["personal"]
    with pytest.raises(RowError) as refused:
        converter.convert(Record(2, {"id": "a", "text": "x" * 11}))
    assert refused.value.rule == "cell_too_large"


def test_columns_that_no_rule_reads_may_hold_anything() -> None:
    assert convert_portal_row(Status="\x00" * 200_000) == convert_portal_row()


def test_white_space_is_tidied_and_lines_stay_lines() -> None:
    mapping = make_mapping(instructions={"parts": [["{text}"]]})
    job = convert_row(mapping, {"id": " a ", "text": " one \t two \r\n three "})
    assert job.external_id == "a"
    assert job.body["personal"]["instructions"] == "one two \n three"


def test_a_file_with_our_own_names_becomes_the_body_of_the_api() -> None:
    policy = {"photos": [{"slot": "after", "prompt": "Done"}]}
    articles = [{"article_id": "isolate", "version": "v2.1.0"}]
    job = convert_row(
        OURS,
        {
            "source": "crm",
            "external_id": "42",
            "priority": "0",
            "due_at": "2026-03-01T09:00:00+01:00",
            "window.start": "2026-03-01T07:00:00+01:00",
            "window.end": "2026-03-01T08:00:00+01:00",
            "required_skills": "electrical; heights",
            "pinned_articles": json.dumps(articles),
            "proof_policy": json.dumps(policy),
            "personal.client": "Frau Müller",
            "personal.address": "Lange Gasse 1",
            "position.lat_e7": "481000000",
            "position.lon_e7": "115000000",
            "position.mappls_pin": "3f45cb",
        },
    )
    assert (job.source, job.external_id) == ("crm", "42")
    assert job.body == {
        "source": "crm",
        "external_id": "42",
        "priority": 0,
        "due_at": "2026-03-01T09:00:00+01:00",
        "window": {"start": "2026-03-01T07:00:00+01:00", "end": "2026-03-01T08:00:00+01:00"},
        "required_skills": ["electrical", "heights"],
        "pinned_articles": articles,
        "proof_policy": policy,
        "personal": {"client": "Frau Müller", "address": "Lange Gasse 1"},
        "position": {"lat_e7": 481000000, "lon_e7": 115000000, "mappls_pin": "3F45CB"},
    }


def test_what_nobody_says_is_left_out_of_the_job() -> None:
    job = convert_row(OURS, {"external_id": "a"})
    assert job.body == {"source": "import", "external_id": "a"}


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        ({"priority": "10"}, "priority_invalid"),
        ({"priority": "-1"}, "priority_invalid"),
        ({"priority": "high"}, "priority_invalid"),
        ({"priority": "²"}, "priority_invalid"),
        ({"required_skills": "Élec"}, "skills_invalid"),
        ({"required_skills": "[1]"}, "skills_invalid"),
        ({"required_skills": "[oops"}, "field_invalid"),
        ({"source": "no spaces"}, "source_invalid"),
        ({"proof_policy": '{"photo": []}'}, "field_invalid"),
        ({"pinned_articles": "isolate"}, "field_invalid"),
        ({"window__start": "2026-03-01T07:00:00Z"}, "window_incomplete"),
        ({"window__end": "2026-03-01T07:00:00Z"}, "window_incomplete"),
        (
            {"window__start": "2026-03-01T07:00:01Z", "window__end": "2026-03-01T07:00:00Z"},
            "window_reversed",
        ),
        ({"due_at": "2026-03-01T07:00:00"}, "time_invalid"),
        ({"position__mappls_pin": "12345"}, "pin_invalid"),
        ({"position__lat_e7": "48.1", "position__lon_e7": "11.5"}, "coordinate_invalid"),
    ],
)
def test_a_field_of_ours_that_breaks_a_rule_refuses_its_row(
    cells: dict[str, str], rule: str
) -> None:
    assert our_rule_of(**cells) == rule


def test_a_source_and_a_policy_may_be_named_for_the_whole_file() -> None:
    policy = ProofPolicy(signature=("customer",))
    limit = Settings().import_cell_chars_max
    converter = Converter(OURS, limit, source="crm", policy=policy)
    body = converter.convert(Record(2, {"external_id": "a", "source": "other"})).body
    assert body["source"] == "crm"
    assert body["proof_policy"] == {"signature": ["customer"]}


def test_skills_of_all_rules_that_apply_come_together_once() -> None:
    rules: list[dict[str, Any]] = [
        {"column": "kind", "values": ["A", "b"], "skills": ["x", "y"]},
        {"column": "kind", "values": ["B"], "skills": ["y", "z"]},
    ]
    mapping = make_mapping(skills={"rules": rules, "default": ["w"]})
    assert convert_row(mapping, {"id": "1", "kind": "B"}).body["required_skills"] == list("wxyz")


def test_a_record_that_could_not_be_read_is_refused_with_its_own_fault() -> None:
    broken = Record(7, {"id": "a"}, RowError("row_ragged", "too short"))
    converter = make_converter(make_mapping())
    with pytest.raises(RowError) as refused:
        converter.convert(broken)
    assert refused.value.rule == "row_ragged"
    assert converter.external_id(broken) == "a"
