"""The unsent log: what was appended is read back, and what is damaged is told."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.device import KEY, failing_at, quick_settings, unsent_log
from workmate_client.journal.files import PosixFiles
from workmate_client.journal.records import RECORD_OVERHEAD_BYTES
from workmate_client.journal.unsent import RecordTooLargeError, UnsentContents
from workmate_client.ports import StorageError

SHARES_A_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
RECORDS = (b"first", b"", b"third" * 20, b"fourth")


def log_path(folder: Path) -> Path:
    return folder / "unsent.log"


def bounds(records: tuple[bytes, ...]) -> list[int]:
    """Return where each record begins, and where the last one ends."""
    places = [0]
    for record in records:
        places.append(places[-1] + len(record) + RECORD_OVERHEAD_BYTES)
    return places


def read(folder: Path) -> UnsentContents:
    return unsent_log(folder).read_all()


def test_a_log_that_was_never_written_is_empty_and_whole(tmp_path: Path) -> None:
    contents = read(tmp_path)
    assert contents == UnsentContents((), (), ())
    assert contents.is_whole


def test_records_come_back_in_order_byte_for_byte(tmp_path: Path) -> None:
    log = unsent_log(tmp_path)
    for record in RECORDS:
        assert log.append(record) == 0
    unsent_log(tmp_path).extend(RECORDS)
    assert read(tmp_path).records == RECORDS + RECORDS
    assert read(tmp_path).is_whole


def test_several_records_cost_one_sync(tmp_path: Path) -> None:
    points: list[str] = []
    log = unsent_log(tmp_path, PosixFiles(lambda point, _: points.append(point)))
    log.extend(RECORDS)
    assert points.count("unsent.fsync.after") == 1
    points.clear()
    log.extend([])
    assert points == []


def test_nothing_on_disk_tells_what_a_record_says(tmp_path: Path) -> None:
    unsent_log(tmp_path).extend([b"a name and an address"] * 2)
    raw = log_path(tmp_path).read_bytes()
    assert b"address" not in raw
    half = len(raw) // 2
    assert raw[:half] != raw[half:]


def test_a_record_of_the_largest_size_is_taken_and_a_larger_one_refused(tmp_path: Path) -> None:
    limit = quick_settings().unsent_record_limit_bytes
    log = unsent_log(tmp_path)
    with pytest.raises(RecordTooLargeError) as caught:
        log.extend([b"small", bytes(limit + 1)])
    assert caught.value.code == "unsent_record_too_large"
    assert read(tmp_path).records == ()
    log.append(bytes(limit))
    assert read(tmp_path).records == (bytes(limit),)


@SHARES_A_FOLDER
@given(data=st.data())
def test_a_log_cut_anywhere_gives_every_record_before_the_cut_and_reports_the_rest(
    tmp_path: Path, data: st.DataObject
) -> None:
    log_path(tmp_path).unlink(missing_ok=True)
    unsent_log(tmp_path).extend(RECORDS)
    places = bounds(RECORDS)
    length = data.draw(st.integers(0, places[-1]))
    os.truncate(log_path(tmp_path), length)
    whole = sum(1 for end in places[1:] if end <= length)
    torn = length - places[whole]
    contents = read(tmp_path)
    assert contents.records == RECORDS[:whole]
    assert [(part.kind, part.offset, part.length) for part in contents.damage] == (
        [("torn_tail", places[whole], torn)] if torn else []
    )
    assert contents.is_whole
    # The next append cuts the torn bytes off, says so, and is read like any other.
    assert unsent_log(tmp_path).append(b"next") == torn
    assert read(tmp_path) == UnsentContents((*RECORDS[:whole], b"next"), (), ())


@SHARES_A_FOLDER
@given(data=st.data())
def test_a_bit_flipped_anywhere_costs_one_record_at_most_and_is_reported(
    tmp_path: Path, data: st.DataObject
) -> None:
    log_path(tmp_path).unlink(missing_ok=True)
    unsent_log(tmp_path).extend(RECORDS)
    raw = bytearray(log_path(tmp_path).read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    log_path(tmp_path).write_bytes(raw)
    starts = bounds(RECORDS)
    hit = max(index for index, start in enumerate(starts) if start <= place)
    others = RECORDS[:hit] + RECORDS[hit + 1 :]
    contents = read(tmp_path)
    assert contents.records == others
    assert not contents.is_whole
    (part,) = contents.damage
    assert (part.kind, part.offset) == ("unreadable", starts[hit])
    assert part.length == starts[hit + 1] - starts[hit]
    assert contents.lost_indexes == ((hit,) if hit < len(RECORDS) - 1 else ())
    # Damage is no unfinished append: it stays where it is, and the next record comes after it.
    assert unsent_log(tmp_path).append(b"next") == 0
    assert read(tmp_path).records == (*others, b"next")
    assert read(tmp_path).damage == contents.damage


@SHARES_A_FOLDER
@given(data=st.data())
def test_bytes_put_in_or_taken_out_anywhere_lose_no_record_that_is_whole(
    tmp_path: Path, data: st.DataObject
) -> None:
    log_path(tmp_path).unlink(missing_ok=True)
    unsent_log(tmp_path).extend(RECORDS)
    raw = log_path(tmp_path).read_bytes()
    start = data.draw(st.integers(0, len(raw) - 1))
    end = data.draw(st.integers(start, len(raw)))
    extra = data.draw(st.binary(max_size=80))
    log_path(tmp_path).write_bytes(raw[:start] + extra + raw[end:])
    starts = bounds(RECORDS)
    whole = tuple(
        record
        for index, record in enumerate(RECORDS)
        if starts[index + 1] <= start or starts[index] >= end
    )
    contents = read(tmp_path)
    assert set(whole) <= set(contents.records)
    assert set(contents.records) <= set(RECORDS)
    if contents.records != RECORDS[: len(contents.records)]:
        assert not contents.is_whole


@SHARES_A_FOLDER
@given(order=st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_records_moved_or_repeated_are_read_once_in_their_order(
    tmp_path: Path, order: list[int]
) -> None:
    log_path(tmp_path).unlink(missing_ok=True)
    unsent_log(tmp_path).extend(RECORDS)
    raw = log_path(tmp_path).read_bytes()
    starts = bounds(RECORDS)
    log_path(tmp_path).write_bytes(b"".join(raw[starts[i] : starts[i + 1]] for i in order))
    contents = read(tmp_path)
    present = sorted(set(order))
    assert contents.records == tuple(RECORDS[index] for index in present)
    assert len(contents.damage) == len(order) - len(present)
    assert {part.kind for part in contents.damage} <= {"repeated"}
    missing = set(range(present[-1])) - set(present)
    assert set(contents.lost_indexes) == missing


@SHARES_A_FOLDER
@given(junk=st.binary(max_size=300))
def test_a_log_of_anything_gives_no_record_and_takes_new_ones(tmp_path: Path, junk: bytes) -> None:
    log_path(tmp_path).write_bytes(junk)
    assert read(tmp_path).records == ()
    assert bool(read(tmp_path).damage) == bool(junk)
    unsent_log(tmp_path).append(b"next")
    assert read(tmp_path).records == (b"next",)


def test_zeros_after_a_power_cut_are_an_unfinished_append(tmp_path: Path) -> None:
    unsent_log(tmp_path).extend(RECORDS)
    with log_path(tmp_path).open("ab") as file:
        file.write(bytes(4096))
    assert read(tmp_path).is_whole
    assert unsent_log(tmp_path).append(b"next") == 4096
    assert read(tmp_path) == UnsentContents((*RECORDS, b"next"), (), ())


def test_another_profiles_key_reads_nothing_and_reports_everything(tmp_path: Path) -> None:
    unsent_log(tmp_path).extend(RECORDS)
    contents = unsent_log(tmp_path, key=bytes(reversed(KEY))).read_all()
    assert contents.records == ()
    assert [part.index for part in contents.damage] == [0, 1, 2, 3]
    assert not contents.is_whole


@pytest.mark.parametrize("step", ["write.before", "write.after", "fsync.before", "fsync.after"])
def test_a_record_that_was_reported_as_not_saved_never_turns_up(tmp_path: Path, step: str) -> None:
    unsent_log(tmp_path).extend(RECORDS)
    log = unsent_log(tmp_path, PosixFiles(failing_at(f"unsent.{step}", errno.ENOSPC)))
    with pytest.raises(StorageError) as caught:
        log.append(b"not saved")
    assert caught.value.code == "disk_full"
    assert read(tmp_path) == UnsentContents(RECORDS, (), ())


def test_a_log_goes_on_after_a_failure(tmp_path: Path) -> None:
    broken = True

    def hook(point: str, _path: Path) -> None:
        if broken and point == "unsent.fsync.before":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    log = unsent_log(tmp_path, PosixFiles(hook))
    with pytest.raises(StorageError):
        log.append(b"not saved")
    broken = False
    log.append(b"saved")
    assert read(tmp_path).records == (b"saved",)


def test_a_rewrite_keeps_what_it_is_told_to_and_appending_goes_on(tmp_path: Path) -> None:
    log = unsent_log(tmp_path)
    log.extend(RECORDS)
    report = log.rewrite(lambda record: record != b"first")
    assert (report.kept, report.dropped, report.set_aside) == (3, 1, None)
    log.append(b"next")
    assert read(tmp_path) == UnsentContents((*RECORDS[1:], b"next"), (), ())
    assert log.rewrite(lambda _: False).dropped == 4
    assert log_path(tmp_path).read_bytes() == b""


def test_a_rewrite_that_would_change_nothing_writes_nothing(tmp_path: Path) -> None:
    points: list[str] = []
    log = unsent_log(tmp_path, PosixFiles(lambda point, _: points.append(point)))
    log.rewrite(lambda _: True)
    log.extend(RECORDS)
    points.clear()
    assert log.rewrite(lambda _: True).kept == len(RECORDS)
    assert points == []


def test_a_rewrite_puts_a_damaged_log_aside_before_it_makes_a_whole_one(tmp_path: Path) -> None:
    log = unsent_log(tmp_path)
    log.extend(RECORDS)
    raw = bytearray(log_path(tmp_path).read_bytes())
    raw[3] ^= 1
    log_path(tmp_path).write_bytes(raw)
    report = log.rewrite(lambda _: True)
    assert report.set_aside is not None
    assert report.set_aside.read_bytes() == raw
    assert read(tmp_path) == UnsentContents(RECORDS[1:], (), ())
    assert log.rewrite(lambda _: True).set_aside is None


def test_a_rewrite_of_an_unfinished_append_puts_nothing_aside(tmp_path: Path) -> None:
    log = unsent_log(tmp_path)
    log.extend(RECORDS)
    os.truncate(log_path(tmp_path), bounds(RECORDS)[-1] - 1)
    assert log.rewrite(lambda _: True).set_aside is None
    assert read(tmp_path) == UnsentContents(RECORDS[:-1], (), ())


def test_a_rewrite_that_fails_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = unsent_log(tmp_path)
    log.extend(RECORDS)

    def undecided(record: bytes) -> bool:
        raise LookupError(record)

    with pytest.raises(LookupError):
        log.rewrite(undecided)
    assert read(tmp_path) == UnsentContents(RECORDS, (), ())


def test_two_logs_on_one_file_take_turns(tmp_path: Path) -> None:
    one, two = unsent_log(tmp_path), unsent_log(tmp_path)
    one.append(b"1")
    two.append(b"2")
    one.append(b"3")
    two.rewrite(lambda record: record != b"1")
    one.append(b"4")
    two.append(b"5")
    assert read(tmp_path) == UnsentContents((b"2", b"3", b"4", b"5"), (), ())


def test_a_log_that_another_holds_too_long_is_busy_and_unchanged(tmp_path: Path) -> None:
    log = unsent_log(tmp_path)
    with (
        PosixFiles().locked(tmp_path / "unsent.log.lock", timeout_seconds=0.0),
        pytest.raises(StorageError) as caught,
    ):
        log.append(b"1")
    assert caught.value.code == "file_busy"
    assert read(tmp_path).records == ()


APPENDER = """
import sys
from pathlib import Path
from support.device import quick_settings, unsent_log
log = unsent_log(Path(sys.argv[1]), settings=quick_settings(file_lock_timeout_seconds=60.0))
for number in range(50):
    log.append(f"{sys.argv[2]} {number}".encode())
"""


def test_processes_and_threads_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    writers = [
        subprocess.Popen([sys.executable, "-c", APPENDER, str(tmp_path), name], env=environment)
        for name in ("a", "b")
    ]
    limits = quick_settings(file_lock_timeout_seconds=60.0)

    def append(name: str) -> None:
        log = unsent_log(tmp_path, settings=limits)
        for number in range(50):
            log.append(f"{name} {number}".encode())
            log.rewrite(lambda record: record != b"c 0")

    threads = [threading.Thread(target=append, args=(name,)) for name in ("c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [writer.wait() for writer in writers] == [0, 0]
    contents = unsent_log(tmp_path, settings=limits).read_all()
    assert contents.is_whole
    expected = {f"{name} {number}".encode() for name in "abcd" for number in range(50)}
    assert set(contents.records) == expected - {b"c 0"}
    for name in (b"a", b"b", b"d"):
        own = [record for record in contents.records if record.startswith(name)]
        assert own == sorted(own, key=lambda record: int(record[2:]))
