"""A process that is killed at any point leaves the old state or the new one, and says which."""

from datetime import timedelta
from pathlib import Path

import pytest
from blake3 import blake3

from support.device import SteppingClock, sealed_folder, unsent_log
from support.kill_points import (
    CONTENT,
    KEYS,
    NEW_PASSPHRASE,
    OLD_PASSPHRASE,
    killed_at_each_point,
    vault,
)
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.keys import KeysMissingError, WrongPassphraseError
from workmate_client.system import SystemClock


@pytest.fixture
def start(tmp_path: Path) -> Path:
    folder = tmp_path / "start"
    folder.mkdir()
    return folder


def test_a_killed_import_leaves_no_named_file_or_a_whole_one_and_never_touches_the_source(
    start: Path,
) -> None:
    (start / "photo.jpg").write_bytes(CONTENT)
    cases = killed_at_each_point("import", start.parent)
    named = []
    for point, folder in cases:
        evidence = sealed_folder(folder / "evidence")
        found = evidence.inventory([])
        assert (folder / "photo.jpg").read_bytes() == CONTENT
        for name in found.unlisted:
            assert evidence.verify_file(name).hash == blake3(CONTENT).hexdigest(), point
        extra = len(found.unlisted) + len(found.unfinished)
        assert len(PosixFiles().names(folder / "evidence")) == extra
        named.append(len(found.unlisted))
    assert [point for point, _ in cases][-1] == "evidence.fsync_folder.after"
    assert {f"evidence.{step}.before" for step in ("write", "fsync", "rename")} <= {
        point for point, _ in cases
    }
    # Nothing has a name before the bytes are synced, and everything has one from then on.
    done = [point for point, _ in cases].index("evidence.rename.after")
    assert named == [0] * done + [1] * (len(cases) - done)


def test_what_a_killed_import_leaves_can_be_imported_again_and_cleared_away(start: Path) -> None:
    (start / "photo.jpg").write_bytes(CONTENT)
    next_year = SteppingClock()
    next_year.wall = SystemClock().now() + timedelta(days=365)
    for _, folder in killed_at_each_point("import", start.parent):
        evidence = sealed_folder(folder / "evidence", clock=next_year)
        again = evidence.import_file(folder / "photo.jpg")
        assert b"".join(evidence.open_chunks(again.name)) == CONTENT
        evidence.remove_unfinished()
        for name in evidence.inventory([again.name]).unlisted:
            evidence.remove(name)
        assert PosixFiles().names(folder / "evidence") == [f"{again.name}.sealed"]


@pytest.mark.parametrize("before", [[], [b"first", b"second"]], ids=["no file", "two records"])
def test_a_killed_append_adds_the_whole_record_or_nothing(start: Path, before: list[bytes]) -> None:
    unsent_log(start).extend(before)
    cases = killed_at_each_point("append", start.parent)
    written = [point for point, _ in cases].index("unsent.write.after")
    for number, (_, folder) in enumerate(cases):
        contents = unsent_log(folder).read_all()
        expected = [*before, b"the new record"] if number >= written else before
        assert list(contents.records) == expected
        assert contents.damage == ()
        unsent_log(folder).append(b"afterwards")
        assert unsent_log(folder).read_all().records == (*expected, b"afterwards")
    assert [point for point, _ in cases][-1] == "unsent.fsync.after"


def test_a_killed_rewrite_leaves_the_old_log_whole_or_the_new_one(start: Path) -> None:
    unsent_log(start).extend([b"first", b"second", b"third"])
    cases = killed_at_each_point("rewrite", start.parent)
    moved = [point for point, _ in cases].index("unsent_rewrite.rename.after")
    for number, (_, folder) in enumerate(cases):
        contents = unsent_log(folder).read_all()
        kept = (b"second", b"third") if number >= moved else (b"first", b"second", b"third")
        assert contents.records == kept
        assert contents.is_whole
    assert len(cases) == moved + 3


def test_a_vault_killed_while_it_is_made_is_missing_or_opens(start: Path) -> None:
    cases = killed_at_each_point("create_vault", start.parent)
    moved = [point for point, _ in cases].index("vault.rename.after")
    for number, (_, folder) in enumerate(cases):
        safe = vault(folder, PosixFiles(), OLD_PASSPHRASE)
        if number < moved:
            with pytest.raises(KeysMissingError):
                safe.load()
        else:
            assert safe.load() == KEYS


def test_a_killed_change_of_passphrase_leaves_exactly_one_that_opens_the_vault(
    start: Path,
) -> None:
    vault(start, PosixFiles(), OLD_PASSPHRASE).create(KEYS)
    cases = killed_at_each_point("change_vault", start.parent)
    moved = [point for point, _ in cases].index("vault.rename.after")
    for number, (_, folder) in enumerate(cases):
        passphrases = [OLD_PASSPHRASE, NEW_PASSPHRASE]
        right, wrong = reversed(passphrases) if number >= moved else passphrases
        assert vault(folder, PosixFiles(), right).load() == KEYS
        with pytest.raises(WrongPassphraseError):
            vault(folder, PosixFiles(), wrong).load()
