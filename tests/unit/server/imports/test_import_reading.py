"""A job file gives records, refused records, or one clear error: no row vanishes."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from support.job_files import faults, make_mapping, read_text
from workmate_server.config import Settings
from workmate_server.imports.mapping import load_mapping
from workmate_server.imports.reading import FileError, fitting_mapping, read_records

IDS = make_mapping()
STRICT = make_mapping(unknown_columns="refuse")


def cells_of(folder: Path, text: str, name: str = "jobs.csv") -> list[dict[str, str]]:
    return [record.cells for record in read_text(folder, text, IDS, name)]


def refused(folder: Path, content: bytes, name: str = "jobs.csv") -> FileError:
    file = folder / name
    file.write_bytes(content)
    with pytest.raises(FileError) as found:
        read_records(file, IDS, Settings())
    return found.value


def test_rows_are_numbered_like_in_a_spreadsheet_with_the_header_as_the_first(
    tmp_path: Path,
) -> None:
    records = read_text(tmp_path, 'id,note\na,"two\nlines"\nb,x\n', IDS)
    assert [record.row for record in records] == [2, 3]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_every_line_ending_is_read(tmp_path: Path, ending: str) -> None:
    text = ending.join(["id,note", "a,1", "b,2"])
    assert cells_of(tmp_path, text) == [{"id": "a", "note": "1"}, {"id": "b", "note": "2"}]


def test_separators_that_only_unicode_knows_end_no_row(tmp_path: Path) -> None:
    text = "id,note\na,one\u2028two\x85three\x0cfour\n"
    assert len(cells_of(tmp_path, text)) == 1


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    assert cells_of(tmp_path, "\ufeffid,note\na,1\n") == [{"id": "a", "note": "1"}]
    assert cells_of(tmp_path, '\ufeff[{"id": "a"}]', "jobs.json") == [{"id": "a"}]


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    assert cells_of(tmp_path, "id,note\n") == []
    assert cells_of(tmp_path, "[]", "jobs.json") == []


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    assert cells_of(tmp_path, "id\n\na\n\n\n") == [{"id": "a"}]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_a_file_without_anything_is_an_error(tmp_path: Path, content: bytes) -> None:
    assert refused(tmp_path, content).code == "file_empty"


@pytest.mark.parametrize("content", ["id\nMünchen".encode("latin-1"), "id\na".encode("utf-16")])
def test_another_encoding_is_an_error_that_says_where(tmp_path: Path, content: bytes) -> None:
    error = refused(tmp_path, content)
    assert error.code == "file_encoding"
    assert "save the file as UTF-8" in error.detail


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError) as found:
        read_records(tmp_path / "none.csv", IDS, Settings())
    assert found.value.code == "file_missing"
    with pytest.raises(FileError) as found:
        read_records(tmp_path, IDS, Settings())
    assert found.value.code == "file_unreadable"


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_bytes(b"id\nabc\n")
    for most in (7, 8):
        assert len(read_records(file, IDS, replace(Settings(), import_file_bytes_max=most))) == 1
    with pytest.raises(FileError) as found:
        read_records(file, IDS, replace(Settings(), import_file_bytes_max=6))
    assert found.value.code == "file_too_large"


def test_missing_columns_are_named(tmp_path: Path) -> None:
    error = refused(tmp_path, b"number;note\n1;a\n")
    assert error.code == "missing_column"
    assert "'id'" in error.detail


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    error = refused(tmp_path, b"id,note, id\na,b,c\n")
    assert (error.code, "'id'" in error.detail) == ("duplicate_column", True)


def test_columns_without_a_name_are_nobodys(tmp_path: Path) -> None:
    assert [cells["id"] for cells in cells_of(tmp_path, "id,,\na,b,c\n")] == ["a"]


def test_a_column_that_nobody_named_is_an_error_where_the_mapping_says_so(tmp_path: Path) -> None:
    assert len(read_text(tmp_path, "id,other\na,b\n", IDS)) == 1
    with pytest.raises(FileError) as found:
        read_text(tmp_path, "id,other\na,b\n", STRICT)
    assert found.value.code == "unknown_column"


@pytest.mark.parametrize("row", ["b", "b,1,2", "b,1,2,3"])
def test_a_ragged_row_is_refused_and_its_neighbours_are_not(tmp_path: Path, row: str) -> None:
    records = read_text(tmp_path, f"id,note\na,1\n{row}\nc,3\n", IDS)
    assert faults(records) == {3: "row_ragged"}
    assert [record.cells["id"] for record in records] == ["a", "b", "c"]


def test_a_broken_quotation_refuses_its_row_and_says_which_lines_it_took(tmp_path: Path) -> None:
    records = read_text(tmp_path, 'id,note\na,1\nb,"x\ny"z\nc,3\n', IDS)
    assert faults(records) == {3: "row_syntax"}
    assert records[1].fault is not None
    assert "lines 3 to 4" in records[1].fault.detail
    assert records[2].cells == {"id": "c", "note": "3"}


def test_a_quotation_that_never_ends_is_an_error_that_says_where_it_begins(tmp_path: Path) -> None:
    error = refused(tmp_path, b'id,note\na,1\nb,"x\nc,3\nd,4\n')
    assert error.code == "file_syntax"
    assert "line 3" in error.detail


def test_cells_of_any_size_are_read(tmp_path: Path) -> None:
    huge = "x" * 300_000
    assert cells_of(tmp_path, f"id,note\na,{huge}\n") == [{"id": "a", "note": huge}]


def test_members_of_json_have_dotted_names_and_numbers_keep_their_digits(tmp_path: Path) -> None:
    text = '[{"id": 7, "at": {"lat": 40.50000000000000001, "n": null}, "list": ["a", 1]}]'
    [cells] = cells_of(tmp_path, text, "jobs.json")
    assert cells == {"id": "7", "at.lat": "40.50000000000000001", "list": '["a",1]'}


@pytest.mark.parametrize(
    "text",
    ['{"id": 1}', "[1", '[{"id": 1, "id": 2}]', "[NaN]", '["\\ud800"]', "[" * 100 + "]" * 100],
)
def test_json_that_is_no_list_or_is_ambiguous_is_an_error(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text.encode(), "jobs.json").code == "file_syntax"


def test_an_entry_of_json_that_is_no_object_is_refused_alone(tmp_path: Path) -> None:
    records = read_text(tmp_path, '[{"id": "a"}, 3, {"id": "c"}]', IDS, "jobs.json")
    assert faults(records) == {2: "row_syntax"}
    assert [record.row for record in records] == [1, 2, 3]


def test_a_misspelt_field_of_json_refuses_its_job(tmp_path: Path) -> None:
    text = json.dumps([{"external_id": "a", "priorty": 1}, {"external_id": "b"}])
    records = read_text(tmp_path, text, load_mapping("workmate"), "jobs.json")
    assert faults(records) == {1: "unknown_field"}


def test_the_mapping_that_fits_is_found_by_the_columns(tmp_path: Path) -> None:
    read_text(tmp_path, "id\n", IDS)
    mappings = [load_mapping(name) for name in ("nyc311", "workmate")]
    portal = tmp_path / "portal.csv"
    portal.write_text(",".join(sorted(mappings[0].columns())))
    ours = tmp_path / "ours.json"
    ours.write_text('[{"external_id": "a"}]')
    neither = tmp_path / "neither.csv"
    neither.write_text("number\n1\n")
    found = [fitting_mapping(file, mappings, Settings()).name for file in (portal, ours, neither)]
    assert found == ["nyc311", "workmate", "workmate"]
