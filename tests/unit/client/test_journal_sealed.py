"""Evidence files under random names: whole, readable in parts, and never wrong in silence."""

import errno
import os
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.device import (
    KEY,
    PIECE,
    SteppingClock,
    failing_at,
    quick_settings,
    sealed_folder,
)
from workmate_client.journal.aead import TAG_BYTES
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.pieces import HEADER_BYTES
from workmate_client.journal.sealed import SealedFileError, SealedFolder
from workmate_client.ports import StorageError

SHARES_A_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
SEALED_PIECE = PIECE + TAG_BYTES
VERSION_1 = bytes.fromhex(
    "574d5345414c454400010000000000080000000000000013000102030405060708090a0b0c0d0e0f"
    "101112131415161718191a1b1c1d1e1f8aa0e2c1e69332f25695485084fbbd06920e881e6884cbb1"
    "642e5b42a5e19a49da66b5cfbbba69f35826fc44de45be0245c6ebdbe77b319c7823ca35c41ffa0c"
    "308346"
)
SIZES = [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 7]


def content_of(size: int) -> bytes:
    return blake3(b"content").digest(size)


def raw_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.sealed"


@pytest.mark.parametrize("size", SIZES)
def test_a_file_comes_back_byte_for_byte_with_its_hash_and_size(tmp_path: Path, size: int) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(content_of(size))
    evidence = sealed_folder(tmp_path / "evidence")
    kept = evidence.import_file(source)
    assert b"".join(evidence.open_chunks(kept.name)) == content_of(size)
    assert kept.hash == blake3(content_of(size)).hexdigest()
    assert kept.size_bytes == size == evidence.size(kept.name)
    assert evidence.verify_file(kept.name, kept.hash) == kept


def test_the_original_is_left_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(b"pixels")
    before = PosixFiles().state(source)
    sealed_folder(tmp_path / "evidence").import_file(source)
    assert PosixFiles().state(source) == before
    assert source.read_bytes() == b"pixels"


@pytest.mark.parametrize("size", [0, 1, PIECE, 3 * PIECE + 1])
def test_bytes_of_the_program_are_kept_like_files(tmp_path: Path, size: int) -> None:
    evidence = sealed_folder(tmp_path)
    kept = evidence.import_bytes(content_of(size))
    assert evidence.verify_file(kept.name, blake3(content_of(size)).hexdigest()) == kept
    assert evidence.read_range(kept.name, 0, size + 1) == content_of(size)


def test_nothing_on_disk_tells_name_or_content(tmp_path: Path) -> None:
    source = tmp_path / "fourteen-letters.jpg"
    source.write_bytes(b"a sentence that is long enough to be looked for" * 10)
    folder = tmp_path / "evidence"
    first, second = (sealed_folder(folder).import_file(source) for _ in range(2))
    assert first.name != second.name
    assert first.hash == second.hash
    assert raw_path(folder, first.name).read_bytes() != raw_path(folder, second.name).read_bytes()
    for path in folder.iterdir():
        assert "fourteen" not in path.name
        assert b"long enough" not in path.read_bytes()


@SHARES_A_FOLDER
@given(data=st.data())
def test_any_range_is_what_a_slice_of_the_content_is(tmp_path: Path, data: st.DataObject) -> None:
    content = content_of(data.draw(st.sampled_from(SIZES)))
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(content).name
    offset = data.draw(st.integers(0, len(content) + PIECE))
    length = data.draw(st.integers(0, len(content) + PIECE))
    assert evidence.read_range(name, offset, length) == content[offset : offset + length]


def test_a_range_needs_only_the_pieces_that_hold_it(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    content = content_of(5 * PIECE)
    name = evidence.import_bytes(content).name
    path = raw_path(tmp_path, name)
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 2 * SEALED_PIECE] ^= 1
    path.write_bytes(data)
    assert evidence.read_range(name, 0, 2 * PIECE) == content[: 2 * PIECE]
    assert evidence.read_range(name, 3 * PIECE, 2 * PIECE) == content[3 * PIECE :]
    for reading in (
        lambda: evidence.read_range(name, 2 * PIECE - 1, 2),
        lambda: evidence.verify_file(name),
        lambda: list(evidence.open_chunks(name)),
    ):
        with pytest.raises(SealedFileError) as caught:
            reading()
        assert (caught.value.code, caught.value.name) == ("sealed_piece_damaged", name)
        assert caught.value.piece == 2


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1)])
def test_a_range_cannot_be_negative(tmp_path: Path, offset: int, length: int) -> None:
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(b"content").name
    with pytest.raises(ValueError, match="negative"):
        evidence.read_range(name, offset, length)


def refused_or_whole(evidence: SealedFolder, name: str, content: bytes) -> None:
    """Check that reading gives the right bytes as far as it gives any, and then fails."""
    chunks: list[bytes] = []
    with pytest.raises(SealedFileError) as caught:
        chunks.extend(evidence.open_chunks(name))
    assert caught.value.name == name
    assert content.startswith(b"".join(chunks))
    with pytest.raises(SealedFileError):
        evidence.verify_file(name)


@SHARES_A_FOLDER
@given(data=st.data())
def test_a_bit_flipped_anywhere_is_found(tmp_path: Path, data: st.DataObject) -> None:
    content = content_of(data.draw(st.sampled_from([0, *SIZES])))
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(content).name
    path = raw_path(tmp_path, name)
    raw = bytearray(path.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw)
    refused_or_whole(evidence, name, content)


@SHARES_A_FOLDER
@given(data=st.data())
def test_a_file_cut_or_lengthened_anywhere_is_found(tmp_path: Path, data: st.DataObject) -> None:
    content = content_of(data.draw(st.sampled_from([0, *SIZES])))
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(content).name
    path = raw_path(tmp_path, name)
    raw = path.read_bytes()
    length = data.draw(st.integers(0, 2 * len(raw)).filter(lambda length: length != len(raw)))
    path.write_bytes((raw + raw)[:length])
    refused_or_whole(evidence, name, content)
    with pytest.raises(SealedFileError) as caught:
        evidence.read_range(name, 0, 1)
    assert caught.value.code in {"sealed_length_wrong", "sealed_header_damaged"}


@SHARES_A_FOLDER
@given(data=st.data())
def test_pieces_in_another_order_or_repeated_are_found(tmp_path: Path, data: st.DataObject) -> None:
    content = content_of(4 * PIECE)
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(content).name
    path = raw_path(tmp_path, name)
    raw = path.read_bytes()
    starts = range(HEADER_BYTES, len(raw), SEALED_PIECE)
    pieces = [raw[start : start + SEALED_PIECE] for start in starts]
    order = data.draw(
        st.lists(st.integers(0, 3), min_size=1, max_size=6).filter(lambda o: o != [0, 1, 2, 3])
    )
    path.write_bytes(raw[:HEADER_BYTES] + b"".join(pieces[index] for index in order))
    refused_or_whole(evidence, name, content)


def test_files_that_changed_places_are_found(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    one, two = (evidence.import_bytes(content_of(PIECE)).name for _ in range(2))
    paths = [raw_path(tmp_path, name) for name in (one, two)]
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
    with pytest.raises(SealedFileError, match=two) as caught:
        evidence.verify_file(one)
    assert caught.value.code == "sealed_header_damaged"


def test_a_piece_of_another_file_is_found(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    one, two = (evidence.import_bytes(content_of(2 * PIECE)).name for _ in range(2))
    path = raw_path(tmp_path, one)
    other = raw_path(tmp_path, two).read_bytes()
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + SEALED_PIECE] + other[-SEALED_PIECE:])
    with pytest.raises(SealedFileError) as caught:
        evidence.verify_file(one)
    assert caught.value.piece == 1


def test_a_header_copied_with_another_name_opens_nothing(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    one, two = (evidence.import_bytes(content_of(PIECE)).name for _ in range(2))
    other = raw_path(tmp_path, two).read_bytes()
    renamed = other.replace(bytes.fromhex(two), bytes.fromhex(one))
    raw_path(tmp_path, one).write_bytes(renamed)
    with pytest.raises(SealedFileError) as caught:
        evidence.verify_file(one)
    assert caught.value.code == "sealed_piece_damaged"


def test_another_profiles_key_opens_nothing(tmp_path: Path) -> None:
    name = sealed_folder(tmp_path).import_bytes(b"content").name
    with pytest.raises(SealedFileError):
        sealed_folder(tmp_path, key=bytes(reversed(KEY))).verify_file(name)


def test_a_file_of_another_hash_than_expected_is_found(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(b"content").name
    with pytest.raises(SealedFileError) as caught:
        evidence.verify_file(name, blake3(b"other").hexdigest())
    assert caught.value.code == "sealed_hash_wrong"


@pytest.mark.parametrize("name", ["0" * 32, "", "../keys", "0" * 31 + "/", "A" * 32])
def test_a_name_that_is_not_there_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(SealedFileError) as caught:
        sealed_folder(tmp_path).verify_file(name)
    assert caught.value.code == "sealed_file_missing"


def test_a_file_sealed_under_another_piece_size_stays_readable(tmp_path: Path) -> None:
    content = content_of(5 * PIECE)
    name = sealed_folder(tmp_path).import_bytes(content).name
    later = sealed_folder(tmp_path, settings=quick_settings(sealed_piece_bytes=3 * PIECE))
    assert later.read_range(name, PIECE, 2 * PIECE) == content[PIECE : 3 * PIECE]


def test_a_piece_size_over_the_limit_is_damage_and_not_read(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(b"content").name
    path = raw_path(tmp_path, name)
    raw = bytearray(path.read_bytes())
    raw[12:16] = (16 * 1024 * 1024 + 1).to_bytes(4, "big")
    path.write_bytes(raw)
    with pytest.raises(SealedFileError, match="claims pieces"):
        evidence.size(name)


def test_progress_is_told_up_to_the_whole_size(tmp_path: Path) -> None:
    source = tmp_path / "photo.jpg"
    source.write_bytes(content_of(3 * PIECE))
    evidence = sealed_folder(tmp_path / "evidence")
    seen: list[tuple[int, int]] = []
    expected = [(done, 3 * PIECE) for done in (PIECE, 2 * PIECE, 3 * PIECE)]
    name = evidence.import_file(source, lambda done, total: seen.append((done, total))).name
    assert seen == expected
    seen.clear()
    evidence.verify_file(name, progress=lambda done, total: seen.append((done, total)))
    assert seen == expected


def test_an_interrupted_import_leaves_nothing(tmp_path: Path) -> None:
    def stop(done: int, _total: int) -> None:
        if done > PIECE:
            raise KeyboardInterrupt

    source = tmp_path / "photo.jpg"
    source.write_bytes(content_of(4 * PIECE))
    with pytest.raises(KeyboardInterrupt):
        sealed_folder(tmp_path / "evidence").import_file(source, stop)
    assert list((tmp_path / "evidence").iterdir()) == []


def test_a_disk_that_fills_up_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    evidence = sealed_folder(
        tmp_path, PosixFiles(failing_at("evidence.fsync.before", errno.ENOSPC))
    )
    with pytest.raises(StorageError) as caught:
        evidence.import_bytes(b"content")
    assert caught.value.code == "disk_full"
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_has_too_little_room_is_said_before_the_copy_with_the_bytes_needed(
    tmp_path: Path,
) -> None:
    reserve = 1 << 60
    evidence = sealed_folder(tmp_path, settings=quick_settings(disk_reserve_bytes=reserve))
    with pytest.raises(StorageError) as caught:
        evidence.import_bytes(b"content")
    assert caught.value.code == "disk_full"
    assert caught.value.bytes_needed == reserve + HEADER_BYTES + len(b"content") + TAG_BYTES
    assert list(tmp_path.iterdir()) == []


def test_memory_holds_one_piece_of_a_large_file_at_a_time(tmp_path: Path) -> None:
    largest = 0

    class WatchedFiles(PosixFiles):
        def read_range(self, path: Path, offset: int, length: int) -> bytes:
            nonlocal largest
            largest = max(largest, length)
            return super().read_range(path, offset, length)

    source = tmp_path / "film.mp4"
    source.write_bytes(content_of(20 * PIECE))
    evidence = sealed_folder(tmp_path / "evidence", WatchedFiles())
    evidence.verify_file(evidence.import_file(source).name)
    assert largest == SEALED_PIECE


def test_the_inventory_tells_unfinished_unlisted_and_missing_apart(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    listed, unlisted = (evidence.import_bytes(content_of(9)).name for _ in range(2))
    half = tmp_path / "0123.sealed.abc.unfinished"
    half.write_bytes(b"half")
    found = evidence.inventory([listed, "f" * 32])
    assert found.unfinished == (half.name,)
    assert found.unlisted == (unlisted,)
    assert found.missing == ("f" * 32,)


def test_only_old_unfinished_copies_are_removed(tmp_path: Path) -> None:
    clock = SteppingClock()
    evidence = sealed_folder(tmp_path, clock=clock)
    name = evidence.import_bytes(b"content").name
    now_ns = int(clock.now().timestamp() * 1e9)
    for file, age_seconds in (("old.unfinished", 3601), ("new.unfinished", 3599)):
        (tmp_path / file).write_bytes(b"half")
        changed_ns = now_ns - age_seconds * 10**9
        os.utime(tmp_path / file, ns=(changed_ns, changed_ns))
    assert evidence.remove_unfinished() == ("old.unfinished",)
    found = evidence.inventory([name])
    assert found.unfinished == ("new.unfinished",)
    assert found.missing == ()


def test_a_removed_file_is_missing_and_removing_twice_is_as_good_as_once(tmp_path: Path) -> None:
    evidence = sealed_folder(tmp_path)
    name = evidence.import_bytes(b"content").name
    evidence.remove(name)
    evidence.remove(name)
    assert evidence.inventory([name]).missing == (name,)


def test_the_format_of_sealed_files_never_changes_in_silence(tmp_path: Path) -> None:
    name = "000102030405060708090a0b0c0d0e0f"
    raw_path(tmp_path, name).write_bytes(VERSION_1)
    assert sealed_folder(tmp_path).read_range(name, 0, 100) == b"sealed in version 1"
