"""Keys are made once, kept for one user, and never overwritten, whatever is cut short."""

from pathlib import Path

import pytest

from workmate_server.identity.keyfolder import KeyFolder, KeyFolderCode, KeyFolderError, LogKey
from workmate_server.telemetry.system import SystemEntropy
from workmate_shared.wire.dsse import key_id, public_key_of

ENTROPY = SystemEntropy()
FILES = ["database.key", "sealing.key", "fingerprint.key", "log/active.seed"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "office.db.keys"


def secrets_of(keys: KeyFolder) -> list[bytes]:
    return [keys.database_key, keys.sealing_key, keys.fingerprint_key, keys.log_key.seed]


def expect(code: KeyFolderCode, path: Path) -> None:
    with pytest.raises(KeyFolderError) as refused:
        KeyFolder.open(path)
    assert refused.value.code == code


def test_four_different_secrets_are_made_and_read_again(path: Path) -> None:
    made = KeyFolder.create(path, ENTROPY)
    assert {len(secret) for secret in secrets_of(made)} == {32}
    assert len(set(secrets_of(made))) == 4
    assert secrets_of(KeyFolder.open(path)) == secrets_of(made)
    assert made.staged_log_key is None
    assert made.retired_log_keys == {}
    assert made.read_heads() == {}


def test_a_log_key_is_known_by_the_id_of_its_public_key() -> None:
    key = LogKey(bytes(32))
    assert key.public_key == public_key_of(bytes(32))
    assert key.key_id == key_id(key.public_key)


def test_folders_and_files_belong_to_one_user(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    keys.write_head("t1", b"{}")
    keys.stage_log_key(ENTROPY)
    keys.activate_staged_log_key()
    for entry in (path, *path.rglob("*")):
        assert entry.stat().st_mode & 0o777 == (0o700 if entry.is_dir() else 0o600)


def test_an_empty_folder_is_taken_and_closed_to_others(path: Path) -> None:
    path.mkdir(0o755)
    KeyFolder.create(path, ENTROPY)
    assert path.stat().st_mode & 0o777 == 0o700


def test_keys_are_never_overwritten(path: Path) -> None:
    made = KeyFolder.create(path, ENTROPY)
    for gone in (None, "log/active.seed", "database.key"):
        if gone:
            (path / gone).unlink()
        with pytest.raises(KeyFolderError) as refused:
            KeyFolder.create(path, ENTROPY)
        assert refused.value.code == "keys_exist"
    assert (path / "sealing.key").read_text().strip() == made.sealing_key.hex()


def test_a_file_or_a_folder_of_something_else_is_no_place_for_keys(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(KeyFolderError) as refused:
            KeyFolder.create(place, ENTROPY)
        assert refused.value.code == "keys_exist"
    assert (tmp_path / "file").read_text() == "mine"


def test_a_creation_cut_short_is_told_and_begun_anew(path: Path) -> None:
    KeyFolder.create(path, ENTROPY)
    (path / "unfinished").touch(0o600)
    (path / "log/active.seed").unlink()
    (path / ".sealing.key.x").touch(0o600)
    expect("keys_missing", path)
    made = KeyFolder.create(path, ENTROPY)
    assert secrets_of(KeyFolder.open(path)) == secrets_of(made)


def test_a_creation_cut_short_before_its_first_file_is_begun_anew(path: Path) -> None:
    path.mkdir(0o700)
    (path / ".unfinished.x").touch(0o600)
    KeyFolder.create(path, ENTROPY)


def test_keys_that_are_not_there_are_missing(path: Path) -> None:
    expect("keys_missing", path)
    path.mkdir(0o700)
    expect("keys_missing", path)


@pytest.mark.parametrize("entry", [".", "log", "heads", "heads/t1.json", *FILES])
@pytest.mark.parametrize("bit", [0o040, 0o020, 0o004, 0o002])
def test_what_others_may_read_or_change_is_refused(path: Path, entry: str, bit: int) -> None:
    KeyFolder.create(path, ENTROPY).write_head("t1", b"{}")
    target = path / entry
    mode = target.stat().st_mode & 0o777
    target.chmod(mode | bit)
    expect("keys_unsafe_mode", path)
    target.chmod(mode)
    KeyFolder.open(path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [None, b"", b"ab" * 31, b"ab" * 33, b"z" * 64, b"\xff" * 64])
def test_a_key_that_is_gone_or_no_key_is_damage(
    path: Path, name: str, content: bytes | None
) -> None:
    KeyFolder.create(path, ENTROPY)
    if content is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content)
    expect("keys_damaged", path)


def test_secrets_do_not_show_in_what_is_printed(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    printed = repr(keys) + str(keys) + repr(keys.log_key)
    for secret in secrets_of(keys):
        assert secret.hex() not in printed
        assert repr(secret) not in printed


def test_a_rotation_keeps_of_the_old_key_only_what_verifies(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    old = keys.log_key
    staged = keys.stage_log_key(ENTROPY)
    assert keys.log_key is old
    keys.activate_staged_log_key()
    for each in (keys, KeyFolder.open(path)):
        assert each.log_key.seed == staged.seed
        assert each.staged_log_key is None
        assert each.retired_log_keys == {old.key_id: old.public_key}
    kept = b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())
    assert old.seed.hex().encode() not in kept


def test_a_staged_key_stays_the_same_until_it_is_active(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    other_process = KeyFolder.open(path)
    staged = keys.stage_log_key(ENTROPY)
    assert keys.stage_log_key(ENTROPY).seed == staged.seed
    assert other_process.stage_log_key(ENTROPY).seed == staged.seed
    reopened = KeyFolder.open(path).staged_log_key
    assert reopened is not None
    assert reopened.seed == staged.seed


def test_a_rotation_cut_short_between_its_files_can_be_ended(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    old, staged = keys.log_key, keys.stage_log_key(ENTROPY)
    (path / "log" / f"{old.key_id}.pub").write_text(old.public_key.hex())
    (path / "log" / f"{old.key_id}.pub").chmod(0o600)
    again = KeyFolder.open(path)
    assert again.log_key.seed == old.seed
    again.activate_staged_log_key()
    assert KeyFolder.open(path).log_key.seed == staged.seed


def test_without_a_staged_key_nothing_is_activated(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    with pytest.raises(ValueError, match="staged"):
        keys.activate_staged_log_key()


def test_a_retired_key_under_anothers_name_is_damage(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    keys.stage_log_key(ENTROPY)
    keys.activate_staged_log_key()
    [public] = (path / "log").glob("*.pub")
    public.rename(public.with_name("0" * 64 + ".pub"))
    expect("keys_damaged", path)


def test_the_newest_header_of_each_tenant_is_kept_and_replaced_whole(path: Path) -> None:
    keys = KeyFolder.create(path, ENTROPY)
    keys.write_head("t1", b"old")
    keys.write_head("t1", b"new")
    keys.write_head("t2.json", b"other")
    assert KeyFolder.open(path).read_heads() == {"t1": b"new", "t2.json": b"other"}
    for name in ("../t1", ".hidden", "", "a/b"):
        with pytest.raises(ValueError, match="not an id"):
            keys.write_head(name, b"")
