"""What a device knows of the log's chain: one hash for each batch, and the newest header.

Every header says the hash of its own batch and of the one before. Two hashes for one batch of one
lineage mean that the server signed two histories: a fork, of which the first seen stands.
"""

from msgspec import Struct

from workmate_shared.wire.batch import Header, VerifiedReceipt, decode_header, header_hash
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, split_envelope


class Fork(Struct, frozen=True):
    """Two signed histories: the batch, the header hash that was known, and the one that came."""

    lineage: str
    batch: int
    known_hash: str
    other_hash: str


class HeaderBook:
    """The headers seen so far, beginning with the newest that the device holds.

    `newest` is the one of the highest batch, of the lineage that the server names as its own if
    there is any of it; `newest_lineage` is its lineage. `forks` lists what contradicted.
    """

    def __init__(self, held: Envelope | None, lineage: str) -> None:
        self._lineage = lineage
        self._known: dict[tuple[str, int], str] = {}
        self._rank: tuple[bool, int] = (False, 0)
        self.newest = held
        self.newest_lineage: str | None = None
        self.forks: list[Fork] = []
        if held is not None:
            # It was verified before it was stored.
            payload, _, _ = split_envelope(held, BATCH_TYPE)
            header = decode_header(payload)
            self._known = _named(header, header_hash(payload))
            self._rank = (header.lineage == lineage, header.batch)
            self.newest_lineage = header.lineage

    @property
    def newest_batch(self) -> int:
        """The number of the newest header's batch, 0 without a header."""
        return self._rank[1]

    def enter(self, verified: VerifiedReceipt, envelope: Envelope) -> bool:
        """Take in a verified header; false if it contradicts one that was seen before."""
        header = verified.header
        named = _named(header, verified.header_hash)
        forks = [
            Fork(*place, self._known[place], found)
            for place, found in named.items()
            if self._known.get(place, found) != found
        ]
        if forks:
            self.forks.extend(fork for fork in forks if fork not in self.forks)
            return False
        self._known |= named
        rank = (header.lineage == self._lineage, header.batch)
        if rank > self._rank:
            self._rank, self.newest, self.newest_lineage = rank, envelope, header.lineage
        return True


def _named(header: Header, own_hash: str) -> dict[tuple[str, int], str]:
    """Return the hashes that a header states, by lineage and batch."""
    named = {(header.lineage, header.batch): own_hash}
    if header.continues is not None:
        kept = header.continues
        named[kept.lineage, kept.batch] = kept.header_hash
    elif header.previous is not None:
        named[header.lineage, header.batch - 1] = header.previous
    return named
