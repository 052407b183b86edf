"""No row of the log can be removed, inserted, moved or replaced without `verify` naming it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from support.eventful import prepare
from support.log import Log
from support.tampering import (
    ROW_KEYS,
    Tables,
    copy_row,
    opened_copy,
    place_of,
    places,
    put_back,
    read_tables,
)
from workmate_server.engine.rebuild import rebuild
from workmate_server.engine.tenants import TenantFounder
from workmate_server.engine.verify import verify
from workmate_server.telemetry.system import SystemClock, SystemEntropy
from workmate_shared.wire.batch import decode_header, encode_header, header_hash
from workmate_shared.wire.dsse import BATCH_TYPE, public_key_of, sign, sign_bytes

OTHER_SEED = bytes(range(1, 33))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Log, Tables]]:
    prepared = tmp_path_factory.mktemp("prepared")
    asyncio.run(prepare(prepared))
    with opened_copy(prepared, tmp_path_factory.mktemp("copy")) as copy:
        yield copy, read_tables(copy)
        assert copy.verify().clean


@pytest.fixture
def tables(whole: tuple[Log, Tables]) -> Tables:
    return whole[1]


@pytest.fixture
def log(whole: tuple[Log, Tables]) -> Iterator[Log]:
    copy, before = whole
    yield copy
    put_back(copy, before)


def _delete(log: Log, table: str, row: dict[str, Any]) -> None:
    assert log.tamper(f"DELETE FROM {table} WHERE rowid = :rowid", rowid=row["rowid"]) == 1


def _delete_batch(log: Log, number: int) -> None:
    for table in ROW_KEYS:
        log.tamper(f"DELETE FROM {table} WHERE batch = :number", number=number)


def _replace_header(log: Log, number: int, header: bytes, keyid: str, signature: bytes) -> None:
    log.tamper(
        "UPDATE commit_batch SET header = :header, keyid = :keyid, signature = :signature, "
        "header_hash = :hashed WHERE batch = :number",
        header=header,
        keyid=keyid,
        signature=signature,
        hashed=header_hash(header),
        number=number,
    )


@pytest.mark.parametrize("position", [0, 30, -1])
@pytest.mark.parametrize("table", ROW_KEYS)
def test_a_row_that_is_gone_is_missed(log: Log, tables: Tables, table: str, position: int) -> None:
    row = tables[table][position]
    _delete(log, table, row)
    assert place_of(table, row) in places(log)


def test_a_refusal_that_left_no_event_is_missed(log: Log, tables: Tables) -> None:
    refusals = [r for r in tables["command_log"] if r["outcome"] == "rejected"]
    (silent, *_) = [row for row in refusals if row["first_seq"] is None]
    _delete(log, "command_log", silent)
    assert place_of("command_log", silent) in places(log)


def test_a_batch_cut_out_of_the_middle_is_missed(log: Log) -> None:
    _delete_batch(log, 40)
    found = log.verify().findings
    assert ("commit_batch 40", "missing") in [(f.place, f.fault) for f in found]
    assert ("commit_batch 41", "reordered") in [(f.place, f.fault) for f in found]


def test_a_log_cut_back_with_everything_made_from_it_is_told_by_the_copy_beside_the_keys(
    log: Log, tables: Tables
) -> None:
    last, before = tables["commit_batch"][-1], tables["commit_batch"][-2]
    _delete_batch(log, last["batch"])
    log.tamper(
        "UPDATE tenant_head SET batch = :batch, seq = :last_seq, header_hash = :header_hash",
        **{name: before[name] for name in ("batch", "last_seq", "header_hash")},
    )
    rebuild(log.database)
    (found,) = log.verify().findings
    assert (found.place, found.fault) == (f"commit_batch {last['batch']}", "missing")


def test_a_tenant_of_which_every_row_is_gone_is_missed(log: Log, tables: Tables) -> None:
    for table in tables:
        log.tamper(f"DELETE FROM {table}")
    (found,) = log.verify().findings
    assert (found.place, found.fault) == (f"tenant_head {log.tenant_id}", "missing")


def test_a_tenants_head_that_is_gone_is_missed(log: Log) -> None:
    log.tamper("DELETE FROM tenant_head")
    assert {"audit_event", "command_log", "commit_batch", "feed"} <= set(places(log))


@pytest.mark.parametrize(
    ("column", "value"), [("seq", 7), ("batch", 70), ("header_hash", "0a" * 32), ("lineage", "l")]
)
def test_a_tenants_head_that_tells_something_else_is_named(
    log: Log, column: str, value: Any
) -> None:
    log.tamper(f"UPDATE tenant_head SET {column} = :value", value=value)
    assert f"tenant_head {log.tenant_id} {column}" in places(log)


@pytest.mark.parametrize("table", ROW_KEYS)
def test_two_rows_that_changed_places_are_named(log: Log, tables: Tables, table: str) -> None:
    one, other = tables[table][20], tables[table][45]
    key = {"audit_event": "seq", "command_log": "batch", "commit_batch": "batch"}[table]
    statement = f"UPDATE {table} SET {key} = :number WHERE rowid = :rowid"
    for row, number in ((one, -1), (other, one[key]), (one, other[key])):
        log.tamper(statement, number=number, rowid=row["rowid"])
    found = places(log)
    for row in (one, other):
        assert any(name.startswith(place_of(table, row)) for name in found)


def test_two_decisions_of_one_batch_that_changed_places_are_named(log: Log, tables: Tables) -> None:
    batch = next(row for row in tables["commit_batch"] if row["leaf_count"] > 2)
    log.tamper(
        "UPDATE command_log SET leaf_index = -1 - leaf_index WHERE batch = :b", b=batch["batch"]
    )
    log.tamper(
        "UPDATE command_log SET leaf_index = :last + leaf_index WHERE batch = :b",
        b=batch["batch"],
        last=batch["leaf_count"],
    )
    assert f"command_log batch {batch['batch']}" in places(log)


@pytest.mark.parametrize("where", ["at the end", "before the beginning"])
def test_an_event_that_was_put_there_is_named(log: Log, tables: Tables, where: str) -> None:
    last = tables["audit_event"][-1]
    seq = last["seq"] + 1 if where == "at the end" else 0
    changes = {"seq": seq, "event_id": "new", "aggregate_version": 99}
    copy_row(log, "audit_event", last["rowid"], **changes)
    found = {(finding.place, finding.fault) for finding in log.verify().findings}
    assert (f"audit_event seq {seq}", "inserted") in found


@pytest.mark.parametrize(("batch", "leaf"), [(3, 1), (0, 0), (1000, 0)])
def test_a_command_that_was_put_there_is_named(
    log: Log, tables: Tables, batch: int, leaf: int
) -> None:
    rowid = tables["command_log"][10]["rowid"]
    copy_row(log, "command_log", rowid, command_id="new", batch=batch, leaf_index=leaf)
    found = {(finding.place, finding.fault) for finding in log.verify().findings}
    assert (f"command_log batch {batch} leaf {leaf}", "inserted") in found


@pytest.mark.parametrize("batch", [0, 1000])
def test_a_batch_that_was_put_there_is_named(log: Log, tables: Tables, batch: int) -> None:
    copy_row(log, "commit_batch", tables["commit_batch"][-1]["rowid"], batch=batch)
    assert places(log) == [f"commit_batch {batch} batch"]


@pytest.mark.parametrize("keeps_the_name", [True, False])
def test_a_header_that_another_key_signed_is_named(
    log: Log, tables: Tables, *, keeps_the_name: bool
) -> None:
    row = tables["commit_batch"][30]
    keyid, signature = sign_bytes(BATCH_TYPE, row["header"], OTHER_SEED)
    column = "signature" if keeps_the_name else "keyid"
    keyid = row["keyid"] if keeps_the_name else keyid
    _replace_header(log, row["batch"], row["header"], keyid, signature)
    assert f"commit_batch {row['batch']} {column}" in places(log)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"server_time": "2020-01-01T00:00:00.000Z"}, "changed"),
        ({"previous": "0a" * 32}, "reordered"),
        ({"lineage": "another"}, "forbidden"),
        ({"first_seq": 1}, "missing"),
        ({"leaf_count": 2}, "changed"),
        ({"root": "0a" * 32}, "changed"),
        ({"tenant_id": "another"}, "changed"),
    ],
)
def test_a_header_that_the_servers_own_key_signs_anew_fits_nowhere(
    log: Log, tables: Tables, changes: dict[str, Any], fault: str
) -> None:
    row = tables["commit_batch"][30]
    header = encode_header(replace(decode_header(row["header"]), **changes))
    keyid, signature = sign_bytes(BATCH_TYPE, header, log.keys.log_key.seed)
    _replace_header(log, row["batch"], header, keyid, signature)
    found = log.verify().findings
    assert fault in {f.fault for f in found if f"batch {row['batch']}" in f.place}
    assert ("commit_batch 32", "reordered") in [(f.place, f.fault) for f in found]


def test_a_second_signed_header_of_one_number_is_told_by_the_copy_beside_the_keys(
    log: Log, tables: Tables
) -> None:
    row = tables["commit_batch"][-1]
    header = replace(decode_header(row["header"]), server_time="2027-01-01T00:00:00.000Z")
    envelope = sign(BATCH_TYPE, encode_header(header), log.keys.log_key.seed)
    kept = log.keys.read_heads()[log.tenant_id]
    log.keys.write_head(log.tenant_id, msgspec.json.encode(envelope))
    try:
        (found,) = log.verify().findings
    finally:
        log.keys.write_head(log.tenant_id, kept)
    assert (found.place, found.fault) == (f"commit_batch {row['batch']}", "changed")


@pytest.mark.parametrize("copy", [b"", b"{}", b"\xff", b'{"payload":"","payloadType":"x"}'])
def test_a_copy_beside_the_keys_that_proves_nothing_is_named(log: Log, copy: bytes) -> None:
    kept = log.keys.read_heads()[log.tenant_id]
    log.keys.write_head(log.tenant_id, copy)
    try:
        (found,) = log.verify().findings
    finally:
        log.keys.write_head(log.tenant_id, kept)
    assert (found.place, found.fault) == (f"tenant_head {log.tenant_id}", "changed")


def test_a_trusted_key_that_the_log_has_not_announced_signs_nothing(
    log: Log, tables: Tables
) -> None:
    row = tables["commit_batch"][30]
    keyid, signature = sign_bytes(BATCH_TYPE, row["header"], OTHER_SEED)
    _replace_header(log, row["batch"], row["header"], keyid, signature)
    trusted = {**log.public_keys, keyid: public_key_of(OTHER_SEED)}
    (found,) = verify(log.database, log.keys, trusted).findings
    assert (found.place, found.fault) == (f"commit_batch {row['batch']} keyid", "changed")


async def _found_another(log: Log) -> str:
    clock, entropy = SystemClock(), SystemEntropy()
    await log.engine.start()
    founder = TenantFounder(log.database, log.engine, clock, entropy)
    key = log.keys.log_key
    tenant = await founder.found("Another", key.key_id, key.public_key)
    await log.engine.stop()
    return tenant.tenant_id


@pytest.mark.parametrize("table", ROW_KEYS)
def test_a_row_that_went_over_to_another_tenant_is_missed_here_and_named_there(
    whole: tuple[Log, Tables], tmp_path: Path, table: str
) -> None:
    with opened_copy(whole[0].folder, tmp_path) as copy:
        other = asyncio.run(_found_another(copy))
        report = verify(copy.database, copy.keys, copy.public_keys)
        assert report.tenants == 2
        assert report.clean, report.findings
        row = whole[1][table][30]
        copy.tamper(
            f"UPDATE {table} SET tenant_id = :other WHERE rowid = :rowid",
            other=other,
            rowid=row["rowid"],
        )
        found = [finding.place for finding in copy.verify().findings]
        # Once where it is missed, once where it does not belong.
        assert len([name for name in found if name.startswith(place_of(table, row))]) >= 2
