"""Trees have the shape of RFC 6962, and a path proves one leaf at one index."""

from contextlib import suppress

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from workmate_shared.wire.tree import (
    TreeError,
    inclusion_path,
    inclusion_paths,
    leaf_hash,
    root_from_path,
    tree_root,
)

SIZES = range(1, 41)


def hashes(count: int) -> list[bytes]:
    return [leaf_hash(f"leaf {index}".encode()) for index in range(count)]


def split(count: int) -> int:
    """The largest power of two below `count`."""
    return 1 << (count - 1).bit_length() - 1


def defined_root(leaves: list[bytes]) -> bytes:
    """The recursive definition of RFC 6962, section 2.1."""
    if len(leaves) == 1:
        return leaves[0]
    at = split(len(leaves))
    return blake3(b"\x01" + defined_root(leaves[:at]) + defined_root(leaves[at:])).digest()


def defined_path(leaves: list[bytes], index: int) -> list[bytes]:
    """The recursive definition of RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    at = split(len(leaves))
    if index < at:
        return [*defined_path(leaves[:at], index), defined_root(leaves[at:])]
    return [*defined_path(leaves[at:], index - at), defined_root(leaves[:at])]


def test_a_leaf_is_hashed_behind_a_zero_byte() -> None:
    assert leaf_hash(b"x") == blake3(b"\x00x").digest()


@pytest.mark.parametrize("count", SIZES)
def test_root_and_paths_are_those_of_the_definition(count: int) -> None:
    leaves = hashes(count)
    assert tree_root(leaves) == defined_root(leaves)
    assert inclusion_paths(leaves) == [defined_path(leaves, index) for index in range(count)]


@pytest.mark.parametrize("count", SIZES)
def test_every_leaf_leads_to_the_root_by_its_own_path(count: int) -> None:
    leaves = hashes(count)
    for index, path in enumerate(inclusion_paths(leaves)):
        assert inclusion_path(leaves, index) == path
        assert root_from_path(leaves[index], index, count, path) == tree_root(leaves)


@given(st.data(), st.sampled_from(SIZES[1:]))
def test_a_path_leads_elsewhere_from_another_index_or_another_leaf(
    data: st.DataObject, count: int
) -> None:
    leaves = hashes(count)
    index = data.draw(st.integers(0, count - 1))
    path = inclusion_path(leaves, index)
    other = data.draw(st.integers(0, count - 1).filter(lambda drawn: drawn != index))
    assert root_from_path(leaves[other], index, count, path) != tree_root(leaves)
    with suppress(TreeError):
        assert root_from_path(leaves[index], other, count, path) != tree_root(leaves)


@pytest.mark.parametrize("count", SIZES)
def test_a_path_of_another_length_is_refused(count: int) -> None:
    leaves = hashes(count)
    for index, path in enumerate(inclusion_paths(leaves)):
        with pytest.raises(TreeError, match="long"):
            root_from_path(leaves[index], index, count, [*path, leaves[0]])
        if path:
            with pytest.raises(TreeError, match="short"):
                root_from_path(leaves[index], index, count, path[:-1])


@pytest.mark.parametrize(("index", "count"), [(-1, 1), (1, 1), (0, 0), (5, 3), (2**70, 2**60)])
def test_an_index_outside_the_tree_is_refused(index: int, count: int) -> None:
    with pytest.raises(TreeError):
        root_from_path(leaf_hash(b"x"), index, count, [])
    with pytest.raises(TreeError):
        inclusion_path(hashes(min(count, 5)), index)


def test_a_tree_without_leaves_has_no_root() -> None:
    for function in (tree_root, inclusion_paths):
        with pytest.raises(TreeError):
            function([])


def test_a_node_cannot_be_passed_off_as_a_leaf() -> None:
    left, right = hashes(2)
    assert leaf_hash(left + right) != tree_root([left, right])
