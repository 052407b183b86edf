"""Limits hold together, and locations are found or refused by name."""

from pathlib import Path

import platformdirs
import pytest

from workmate_server.config import (
    ConfigError,
    Locations,
    Settings,
    blob_folder,
    database_file,
    default_key_folder,
)

NAMES = Settings.__struct_fields__


def code_of(refused: pytest.ExceptionInfo[ConfigError]) -> str:
    return refused.value.code


def test_the_limits_that_others_are_promised_are_these() -> None:
    limits = Settings()
    assert limits.request_bytes_max == 1024 * 1024
    assert limits.sync_commands_max == 500
    assert limits.command_bytes_max == 640 * 1024
    assert limits.json_depth_max == 32
    assert limits.upload_bytes_max == 512 * 1024 * 1024
    assert (limits.list_page_default, limits.list_page_max) == (50, 500)
    assert limits.long_poll_max_seconds == 55
    assert limits.enrolment_code_life_seconds == limits.session_life_seconds == 900
    assert limits.nonce_life_seconds == 120
    assert limits.keep_from_age_seconds == 30 * 24 * 3600


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_is_above_zero(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("command_bytes_max", "request_bytes_max"),
        ("command_bytes_max", "batch_bytes_max"),
        ("list_page_default", "list_page_max"),
        ("batch_commands_max", "commit_queue_max"),
        ("upload_read_bytes", "upload_piece_bytes"),
        ("webhook_backoff_base_seconds", "webhook_backoff_max_seconds"),
    ],
)
def test_limits_that_depend_on_each_other_may_be_equal_and_no_more(
    smaller: str, larger: str
) -> None:
    edge = getattr(Settings(), smaller)
    Settings(**{larger: edge})
    with pytest.raises(ValueError, match=f"{smaller} must not be above {larger}"):
        Settings(**{larger: edge - 1})


def test_every_name_ends_in_its_unit_or_says_what_it_counts() -> None:
    endings = (
        "_bytes",
        "_bytes_max",
        "_seconds",
        "_max",
        "_default",
        "_threads",
        "_min",
        "_purposes",
    )
    assert [name for name in NAMES if not name.endswith(endings)] == []


def test_a_sqlite_server_needs_only_its_database() -> None:
    found = Locations.from_environment({"WORKMATE_DATABASE": "sqlite:////srv/office.db"})
    assert found.database == "sqlite:////srv/office.db"
    assert found.blobs == "file:///srv/office.db.blobs"
    assert found.keys == Path("/srv/office.db.keys")


def test_what_is_said_is_taken_and_what_is_empty_is_not() -> None:
    said = {
        "WORKMATE_DATABASE": "postgresql://office@db.example/office",
        "WORKMATE_BLOBS": "s3://evidence/office",
        "WORKMATE_KEYS": "/etc/workmate/keys",
        "HOME": "/elsewhere",
    }
    found = Locations.from_environment(said)
    assert found == Locations(
        said["WORKMATE_DATABASE"], said["WORKMATE_BLOBS"], Path(said["WORKMATE_KEYS"])
    )
    found = Locations.from_environment({**said, "WORKMATE_KEYS": ""})
    assert found.keys == default_key_folder(said["WORKMATE_DATABASE"])


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="WORKMATE_DATABASE") as refused:
        Locations.from_environment({"WORKMATE_DATABASE": ""})
    assert code_of(refused) == "database_missing"
    with pytest.raises(ConfigError, match="WORKMATE_BLOBS") as refused:
        Locations.from_environment({"WORKMATE_DATABASE": "postgresql:///office"})
    assert code_of(refused) == "blobs_missing"


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///office.db", Path("office.db")),
        ("sqlite:////srv/office.db", Path("/srv/office.db")),
        ("sqlite+pysqlcipher:///a/b.db?timeout=5", Path("a/b.db")),
        ("sqlite:///50%25#1.db", Path("50%25#1.db")),
        ("postgresql://user:secret@host:5432/office", None),
        ("postgresql+psycopg:///office", None),
    ],
)
def test_a_database_url_names_a_file_or_a_server(url: str, file: Path | None) -> None:
    assert database_file(url) == file


@pytest.mark.parametrize(
    "url", ["", "office.db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://h/office"]
)
def test_a_database_that_keeps_nothing_or_is_unknown_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        database_file(url)
    assert code_of(refused) == "database_unsupported"


def test_keys_lie_beside_a_sqlite_file_and_else_in_the_platforms_folder() -> None:
    data = platformdirs.user_data_path("workmate-server", appauthor=False)
    assert default_key_folder("sqlite:///a/office.db") == Path("a/office.db.keys")
    assert default_key_folder("postgresql://u:p@host/office%2Fx?a=b") == data / "office_x.keys"
    assert default_key_folder("postgresql://") == data / "postgresql.keys"
    assert default_key_folder("postgresql:///..") == data / "...keys"


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("file:///srv/blobs", Path("/srv/blobs")),
        ("file://localhost/srv/a%20b", Path("/srv/a b")),
        ("file:blobs", Path("blobs")),
        ("s3://evidence", None),
        ("gs://evidence/office", None),
        ("az://account/container", None),
    ],
)
def test_a_blob_url_names_a_folder_or_a_bucket(url: str, folder: Path | None) -> None:
    assert blob_folder(url) == folder


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/srv/blobs",
        "file:",
        "file:///",
        "file://host/x",
        "s3:",
        "s3:///x",
        "memory:///",
        "http://h/x",
    ],
)
def test_a_blob_url_that_names_no_safe_place_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        blob_folder(url)
    assert code_of(refused) == "blobs_unsupported"
