"""What every blob store promises, asked of each of them on its real ground."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings, strategies

from support.seaweed import S3Server
from workmate_server.config import ConfigError, Settings
from workmate_server.evidence.blobs import open_blob_store
from workmate_server.ports import (
    BlobMissingError,
    BlobStore,
    BlobStoreUnavailableError,
    HashMismatchError,
    OffsetMismatchError,
    UploadBusyError,
    UploadMissingError,
)
from workmate_server.telemetry.system import NoHooks, SystemEntropy

pytest_plugins = ["support.seaweed"]

PIECE = 1000
SETTINGS = Settings(upload_read_bytes=100, upload_piece_bytes=PIECE, blob_read_bytes=300)
PHOTO = bytes(range(256)) * 20
NOWHERE = blake3(b"nowhere").hexdigest()


def hash_of(content: bytes) -> str:
    return blake3(content).hexdigest()


def new_id() -> str:
    return SystemEntropy().uuid7()


def open_store(kind: str, request: pytest.FixtureRequest, limits: Settings = SETTINGS) -> BlobStore:
    if kind == "folder":
        folder: Path = request.getfixturevalue("tmp_path")
        return open_blob_store((folder / "blobs").as_uri(), limits, NoHooks())
    server: S3Server = request.getfixturevalue("seaweed")
    return open_blob_store(server.url(new_id()), limits, NoHooks(), server.options())


@pytest.fixture(params=["folder", "object"])
def store(request: pytest.FixtureRequest) -> BlobStore:
    return open_store(request.param, request)


def upload(store: BlobStore, content: bytes, tenant: str = "t1") -> str:
    upload_id = new_id()
    store.begin_upload(upload_id)
    store.append(upload_id, 0, [content])
    assert store.finish(upload_id, tenant, hash_of(content)) == len(content)
    return hash_of(content)


def content_of(store: BlobStore, blob_hash: str, tenant: str = "t1") -> bytes:
    return b"".join(store.open_range(tenant, blob_hash))


def test_an_upload_in_pieces_becomes_a_blob_with_exactly_its_bytes(store: BlobStore) -> None:
    store.begin_upload("u1")
    assert store.size("u1") == 0
    end = 0
    for start in range(0, len(PHOTO), 700):
        piece = PHOTO[start : start + 700]
        end = store.append("u1", end, [piece[:10], b"", piece[10:]])
        assert store.size("u1") == end == start + len(piece)
    assert store.stat("t1", hash_of(PHOTO)) is None
    assert store.finish("u1", "t1", hash_of(PHOTO)) == len(PHOTO)
    assert content_of(store, hash_of(PHOTO)) == PHOTO
    assert store.stat("t1", hash_of(PHOTO)) == len(PHOTO)
    assert store.size("u1") is None


def test_one_append_may_be_larger_than_a_piece(store: BlobStore) -> None:
    store.begin_upload("u1")
    content = PHOTO[: PIECE * 3 + 1]
    assert store.append("u1", 0, iter([content])) == len(content)
    assert store.size("u1") == len(content)
    store.finish("u1", "t1", hash_of(content))
    assert content_of(store, hash_of(content)) == content


def test_a_file_without_bytes_is_a_blob_too(store: BlobStore) -> None:
    assert content_of(store, upload(store, b"")) == b""
    assert store.stat("t1", hash_of(b"")) == 0


def test_beginning_again_keeps_what_was_acknowledged(store: BlobStore) -> None:
    store.begin_upload("u1")
    store.append("u1", 0, [b"kept"])
    store.begin_upload("u1")
    assert store.size("u1") == 4


@pytest.mark.parametrize("offset", [0, 3, 5, 2**40])
def test_bytes_for_another_offset_are_refused_and_change_nothing(
    store: BlobStore, offset: int
) -> None:
    store.begin_upload("u1")
    store.append("u1", 0, [b"four"])
    with pytest.raises(OffsetMismatchError) as refused:
        store.append("u1", offset, [b"elsewhere"])
    assert refused.value.held == 4
    store.append("u1", 4, [b"more"])
    assert store.finish("u1", "t1", hash_of(b"fourmore")) == 8


def test_of_two_writers_at_one_offset_only_one_is_believed(store: BlobStore) -> None:
    store.begin_upload("u1")

    def chunks() -> Iterator[bytes]:
        yield b"a" * PIECE
        try:
            store.append("u1", 0, [b"b" * PIECE])
        except (OffsetMismatchError, UploadBusyError):
            yield b"a"
        else:
            yield b"c"

    try:
        end = store.append("u1", 0, chunks())
    except OffsetMismatchError as refused:
        end = refused.held
    content = {PIECE + 1: b"a" * (PIECE + 1), PIECE: b"b" * PIECE}[end]
    assert store.size("u1") == end
    assert store.finish("u1", "t1", hash_of(content)) == end


def test_an_upload_that_breaks_off_can_be_taken_up_where_it_stands(store: BlobStore) -> None:
    store.begin_upload("u1")
    store.append("u1", 0, [PHOTO[:500]])

    def broken() -> Iterator[bytes]:
        yield PHOTO[500:1700]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.append("u1", 500, broken())
    held = store.size("u1")
    assert held is not None
    assert 500 <= held <= 1700
    store.append("u1", held, [PHOTO[held:]])
    store.finish("u1", "t1", hash_of(PHOTO))
    assert content_of(store, hash_of(PHOTO)) == PHOTO


def test_bytes_with_another_hash_are_said_and_dropped(store: BlobStore) -> None:
    store.begin_upload("u1")
    store.append("u1", 0, [PHOTO])
    with pytest.raises(HashMismatchError) as refused:
        store.finish("u1", "t1", NOWHERE)
    assert (refused.value.expected, refused.value.actual) == (NOWHERE, hash_of(PHOTO))
    assert store.size("u1") is None
    assert store.stat("t1", NOWHERE) is None
    assert store.stat("t1", hash_of(PHOTO)) is None


def test_knowing_the_hash_of_a_held_blob_does_not_stand_in_for_its_bytes(store: BlobStore) -> None:
    held = upload(store, PHOTO)
    store.begin_upload("u2")
    store.append("u2", 0, [bytes(len(PHOTO))])
    with pytest.raises(HashMismatchError):
        store.finish("u2", "t1", held)
    assert content_of(store, held) == PHOTO


def test_a_blob_uploaded_twice_is_one_blob_and_leaves_no_upload(store: BlobStore) -> None:
    assert upload(store, PHOTO) == upload(store, PHOTO)
    assert list(store.iterate("t1")) == [hash_of(PHOTO)]
    assert list(store.iterate_uploads()) == []


def test_without_an_upload_nothing_is_written_or_finished(store: BlobStore) -> None:
    assert store.size("u1") is None
    with pytest.raises(UploadMissingError):
        store.append("u1", 0, [b"x"])
    with pytest.raises(UploadMissingError):
        store.finish("u1", "t1", hash_of(b""))
    upload_id = new_id()
    store.begin_upload(upload_id)
    store.finish(upload_id, "t1", hash_of(b""))
    with pytest.raises(UploadMissingError):
        store.finish(upload_id, "t1", hash_of(b""))


def test_a_discarded_upload_is_gone_and_may_be_discarded_again(store: BlobStore) -> None:
    store.begin_upload("u1")
    store.append("u1", 0, [PHOTO])
    store.discard("u1")
    assert store.size("u1") is None
    assert list(store.iterate_uploads()) == []
    store.discard("u1")
    store.discard("never")


def test_bytes_that_come_after_a_discard_revive_nothing_and_can_be_found(store: BlobStore) -> None:
    store.begin_upload("u1")

    def chunks() -> Iterator[bytes]:
        yield b"a" * PIECE
        store.discard("u1")
        yield b"late" * PIECE

    store.append("u1", 0, chunks())
    assert store.size("u1") is None
    with pytest.raises(UploadMissingError):
        store.finish("u1", "t1", hash_of(b""))
    for upload_id in list(store.iterate_uploads()):
        store.discard(upload_id)
    assert list(store.iterate_uploads()) == []


def test_unfinished_uploads_are_listed_and_similar_ids_are_told_apart(store: BlobStore) -> None:
    assert list(store.iterate_uploads()) == []
    for upload_id in ("u1", "u10", "u1.x"):
        store.begin_upload(upload_id)
        store.append(upload_id, 0, [upload_id.encode()])
    assert sorted(store.iterate_uploads()) == ["u1", "u1.x", "u10"]
    store.discard("u1")
    assert store.size("u10") == 3
    assert sorted(store.iterate_uploads()) == ["u1.x", "u10"]


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, None), (0, 1), (299, 301), (1, 4000), (5119, 5120), (5000, 9000), (6000, 7000), (7, 7)],
)
def test_a_range_is_what_a_slice_would_be(store: BlobStore, start: int, stop: int | None) -> None:
    held = upload(store, PHOTO)
    assert b"".join(store.open_range("t1", held, start, stop)) == PHOTO[start:stop]


def test_a_range_of_nothing_below_zero_or_of_no_blob_is_refused_at_once(store: BlobStore) -> None:
    held = upload(store, PHOTO)
    for start, stop in ((-1, None), (0, -1)):
        with pytest.raises(ValueError, match="range"):
            store.open_range("t1", held, start, stop)
    with pytest.raises(BlobMissingError):
        store.open_range("t1", NOWHERE)


def test_a_blob_belongs_to_one_tenant(store: BlobStore) -> None:
    held = upload(store, PHOTO, "t1")
    for tenant in ("t2", "t", "t10"):
        assert store.stat(tenant, held) is None
        assert list(store.iterate(tenant)) == []
        with pytest.raises(BlobMissingError):
            store.open_range(tenant, held)
        store.delete(tenant, held)
    assert content_of(store, held) == PHOTO


def test_all_blobs_of_a_tenant_are_listed_once(store: BlobStore) -> None:
    held = {upload(store, bytes([number])) for number in range(5)}
    upload(store, b"another's", "t2")
    found = list(store.iterate("t1"))
    assert len(found) == 5
    assert set(found) == held


def test_a_deleted_blob_is_gone_and_may_come_back(store: BlobStore) -> None:
    held = upload(store, PHOTO)
    store.delete("t1", held)
    store.delete("t1", held)
    assert store.stat("t1", held) is None
    assert list(store.iterate("t1")) == []
    upload(store, PHOTO)
    assert content_of(store, held) == PHOTO


BAD_NAMES = ["", ".", "..", "../t2", "a/b", "/etc", "a\n", "a\0b", "-rf", "é", "x" * 129, "a\\b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_ids_that_are_no_names_are_refused_before_anything_is_touched(
    store: BlobStore, name: str
) -> None:
    held = upload(store, PHOTO)
    for call in (
        lambda: store.begin_upload(name),
        lambda: store.append(name, 0, [b"x"]),
        lambda: store.size(name),
        lambda: store.discard(name),
        lambda: store.finish("u1", name, held),
        lambda: store.stat(name, held),
        lambda: store.open_range(name, held),
        lambda: store.delete(name, held),
        lambda: list(store.iterate(name)),
    ):
        with pytest.raises(ValueError, match="not an id"):
            call()


@pytest.mark.parametrize(
    "name", ["", "..", "0" * 63, "0" * 65, "0" * 64 + "\n", "A" * 64, "g" * 64]
)
def test_hashes_that_are_none_are_refused_before_anything_is_touched(
    store: BlobStore, name: str
) -> None:
    store.begin_upload("u1")
    for call in (
        lambda: store.finish("u1", "t1", name),
        lambda: store.stat("t1", name),
        lambda: store.open_range("t1", name),
        lambda: store.delete("t1", name),
    ):
        with pytest.raises(ValueError, match="not a BLAKE3 hash"):
            call()
    assert store.size("u1") == 0


@pytest.mark.parametrize("kind", ["folder", "object"])
def test_however_the_bytes_are_cut_the_blob_is_the_same(
    kind: str, request: pytest.FixtureRequest
) -> None:
    store = open_store(kind, request)

    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        strategies.lists(strategies.lists(strategies.binary(max_size=1500), max_size=3), max_size=4)
    )
    def holds(appends: list[list[bytes]]) -> None:
        upload_id = new_id()
        store.begin_upload(upload_id)
        end = 0
        for chunks in appends:
            end = store.append(upload_id, end, chunks)
        content = b"".join(map(b"".join, appends))
        assert store.size(upload_id) == end == len(content)
        assert store.finish(upload_id, "t1", hash_of(content)) == end
        assert content_of(store, hash_of(content)) == content

    holds()


@pytest.mark.parametrize("kind", ["folder", "object"])
def test_a_file_of_many_parts_is_stored_whole_or_not_at_all(
    kind: str, request: pytest.FixtureRequest
) -> None:
    store = open_store(kind, request, Settings())
    content = PHOTO * 3600
    assert content_of(store, upload(store, content)) == content
    store.begin_upload("u1")
    store.append("u1", 0, [content, b"!"])
    with pytest.raises(HashMismatchError):
        store.finish("u1", "t1", NOWHERE)
    assert list(store.iterate("t1")) == [hash_of(content)]
    assert list(store.iterate_uploads()) == []


def test_a_store_that_is_away_says_so(tmp_path: Path, seaweed: S3Server) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    quick = Settings(blob_store_timeout_seconds=0.1)
    gone = {**seaweed.options(), "endpoint": "http://127.0.0.1:1"}
    wrong = {**seaweed.options(), "secret_access_key": "wrong"}
    for store in (
        open_blob_store((tmp_path / "file" / "blobs").as_uri(), quick, NoHooks()),
        open_blob_store(seaweed.url("x"), quick, NoHooks(), gone),
        open_blob_store(seaweed.url("x"), quick, NoHooks(), wrong),
    ):
        with pytest.raises(BlobStoreUnavailableError):
            store.begin_upload("u1")
        with pytest.raises(BlobStoreUnavailableError):
            store.stat("t1", NOWHERE)
        with pytest.raises(BlobStoreUnavailableError):
            list(store.iterate("t1"))


def test_a_url_or_option_that_names_no_store_is_refused() -> None:
    for url, options in (("memory:///", {}), ("az://box/x", {}), ("s3://b/x", {"colour": "red"})):
        with pytest.raises(ConfigError) as refused:
            open_blob_store(url, SETTINGS, NoHooks(), options)
        assert refused.value.code == "blobs_unsupported"
