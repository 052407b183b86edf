"""A signed header that the log does not contain shows that the log is not the one that was signed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from support.log import Log, open_log
from workmate_server.identity.headcopies import compare_heads, log_public_keys
from workmate_shared.wire.batch import decode_header, encode_header
from workmate_shared.wire.codec import encode
from workmate_shared.wire.dsse import BATCH_TYPE, make_envelope, sign_bytes


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    async with open_log(tmp_path) as opened:
        pass
    # The engine has ended, so that it writes no copy of its own between those of a test.
    yield opened
    opened.database.close()


def newest_header(log: Log) -> Any:
    return decode_header(log.rows("commit_batch")[-1]["header"])


def copy_of(header: Any, seed: bytes) -> bytes:
    payload = encode_header(header)
    return encode(make_envelope(BATCH_TYPE, payload, *sign_bytes(BATCH_TYPE, payload, seed)))


def keep(
    log: Log, *, tenant_id: str | None = None, seed: bytes | None = None, **changes: Any
) -> None:
    header = replace(newest_header(log), **changes)
    copy = copy_of(header, seed or log.keys.log_key.seed)
    log.keys.write_head(tenant_id or log.tenant_id, copy)


def faults(log: Log) -> list[str]:
    return [found.fault for found in compare_heads(log.database, log.keys)]


async def test_the_newest_header_and_any_earlier_one_are_in_the_log(log: Log) -> None:
    keep(log)
    assert faults(log) == []
    first = decode_header(log.rows("commit_batch")[0]["header"])
    log.keys.write_head(log.tenant_id, copy_of(first, log.keys.log_key.seed))
    assert faults(log) == []


async def test_a_header_of_a_later_batch_says_that_the_log_is_behind(log: Log) -> None:
    header = newest_header(log)
    keep(log, batch=header.batch + 1)
    [found] = compare_heads(log.database, log.keys)
    assert found.fault == "log_behind_head"
    assert f"batch {header.batch + 1} was signed" in found.detail
    assert f"ends at batch {header.batch}" in found.detail


async def test_another_header_of_the_same_number_is_another_history(log: Log) -> None:
    keep(log, server_time="2001-01-01T00:00:00.000Z")
    assert faults(log) == ["log_behind_head"]


async def test_a_header_of_a_tenant_that_is_not_there_is_another_history(log: Log) -> None:
    keep(log)
    keep(log, tenant_id="gone")
    assert faults(log) == ["log_behind_head"]


async def test_a_header_of_an_earlier_life_of_the_log_proves_nothing_of_this_one(log: Log) -> None:
    keep(log, lineage="an-earlier-one", batch=10_000)
    assert faults(log) == []


async def test_a_header_that_strangers_signed_or_that_is_cut_cannot_be_read(log: Log) -> None:
    keep(log, seed=bytes(32), batch=10_000)
    assert faults(log) == ["head_copy_damaged"]
    log.keys.write_head(log.tenant_id, b"{")
    assert faults(log) == ["head_copy_damaged"]
    log.keys.write_head(log.tenant_id, msgspec.json.encode([]))
    assert faults(log) == ["head_copy_damaged"]


async def test_keys_that_signed_before_still_count_and_staged_ones_do_not_yet(log: Log) -> None:
    keep(log)
    known = set(log_public_keys(log.keys))
    log.keys.stage_log_key(_Entropy())
    assert set(log_public_keys(log.keys)) == known
    log.keys.activate_staged_log_key()
    assert set(log_public_keys(log.keys)) == known | {log.keys.log_key.key_id}
    assert faults(log) == []


class _Entropy:
    def token_bytes(self, size: int) -> bytes:
        return bytes(range(size))

    def uuid7(self) -> str:
        return "0"
