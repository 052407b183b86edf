"""Where a profile lies, and limits that must fit together."""

from pathlib import Path

import pytest
from nacl.pwhash import argon2id

from workmate_client.config import ProfilePaths, Settings, profile_folder


def test_the_profile_lies_where_the_environment_says() -> None:
    assert profile_folder({"WORKMATE_HOME": "/srv/worker"}) == Path("/srv/worker")


def test_a_relative_or_home_path_becomes_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/asha")
    assert profile_folder({"WORKMATE_HOME": "~/work"}) == Path("/home/asha/work")
    assert profile_folder({"WORKMATE_HOME": "work"}) == Path.cwd() / "work"


@pytest.mark.parametrize("environment", [{}, {"WORKMATE_HOME": ""}])
def test_without_a_word_the_profile_lies_in_the_platforms_data_folder(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data/of/user")
    folder = profile_folder(environment)
    assert folder.is_absolute()
    assert folder.name == "workmate"


def test_every_file_of_a_profile_has_a_place_of_its_own_inside_its_folder() -> None:
    paths = ProfilePaths(Path("/p"))
    places = [
        paths.journal,
        paths.replica,
        paths.unsent,
        paths.evidence,
        paths.vault,
        paths.keyring_pointer,
        paths.sync_lock,
    ]
    assert {place.parent for place in places} == {Path("/p")}
    assert len(set(places)) == len(places)


def test_the_default_limits_keep_what_is_promised() -> None:
    limits = Settings()
    assert limits.sealed_piece_bytes <= limits.sealed_piece_limit_bytes
    assert limits.upload_chunk_bytes % limits.sealed_piece_bytes == 0
    assert limits.autosave_seconds <= 2.0
    assert limits.backoff_first_seconds <= limits.backoff_limit_seconds
    assert limits.vault_ops_limit == argon2id.OPSLIMIT_MODERATE <= limits.vault_ops_ceiling
    assert limits.vault_memory_bytes == argon2id.MEMLIMIT_MODERATE
    assert limits.vault_memory_bytes <= limits.vault_memory_ceiling_bytes
