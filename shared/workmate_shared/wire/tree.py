"""Merkle trees over the decisions of a batch, in the shape of RFC 6962 with BLAKE3 as the hash.

A tree of n > 1 leaves splits at the largest power of two below n. Leaves and nodes are hashed with
distinct prefixes, so that no node can be passed off as a leaf. A batch is never empty, and neither
is a tree.
"""

from collections.abc import Sequence

from blake3 import blake3

LEAF_PREFIX = b"\x00"
NODE_PREFIX = b"\x01"


class TreeError(ValueError):
    """An index, leaf count or path that fits no tree."""


def leaf_hash(leaf: bytes) -> bytes:
    """Hash the exact bytes of a leaf (32 bytes)."""
    return blake3(LEAF_PREFIX + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees into their parent (32 bytes)."""
    return blake3(NODE_PREFIX + left + right).digest()


def tree_root(leaf_hashes: Sequence[bytes]) -> bytes:
    """Return the root over the leaf hashes, in order. Raises TreeError if there are none."""
    return _levels(leaf_hashes)[-1][0]


def inclusion_path(leaf_hashes: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes beside the way from leaf `index` to the root, lowest first.

    Raises TreeError if there is no such leaf.
    """
    if not 0 <= index < len(leaf_hashes):
        raise TreeError(f"no leaf {index} in a tree of {len(leaf_hashes)}")
    return _path(_levels(leaf_hashes), index)


def inclusion_paths(leaf_hashes: Sequence[bytes]) -> list[list[bytes]]:
    """Return the path of every leaf, hashing each node only once. Raises TreeError on no leaves."""
    levels = _levels(leaf_hashes)
    return [_path(levels, index) for index in range(len(leaf_hashes))]


def root_from_path(leaf: bytes, index: int, count: int, path: Sequence[bytes]) -> bytes:
    """Return the root of the tree of `count` leaves in which the leaf hash has this path.

    Raises TreeError when index, count and the path's length contradict each other. The caller
    compares the root with the one that was signed.
    """
    if not 0 <= index < count:
        raise TreeError(f"no leaf {index} in a tree of {count}")
    steps = iter(path)
    found, last = leaf, count - 1
    try:
        while last > 0:
            if index & 1:
                found = node_hash(next(steps), found)
            elif index < last:
                found = node_hash(found, next(steps))
            index, last = index >> 1, last >> 1
    except StopIteration:
        raise TreeError("the path is too short") from None
    if next(steps, None) is not None:
        raise TreeError("the path is too long")
    return found


def _levels(leaf_hashes: Sequence[bytes]) -> list[list[bytes]]:
    """Return all levels from the leaves up; a last node without a sibling moves up unchanged."""
    if not leaf_hashes:
        raise TreeError("a tree has at least one leaf")
    level = list(leaf_hashes)
    levels = [level]
    while len(level) > 1:
        above = [node_hash(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = above + level[len(above) * 2 :]
        levels.append(level)
    return levels


def _path(levels: list[list[bytes]], index: int) -> list[bytes]:
    path = []
    for level in levels[:-1]:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        index >>= 1
    return path
