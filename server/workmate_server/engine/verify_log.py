"""Walk one tenant's log, batch by batch: headers, leaves, commands and events.

Three streams run side by side, each read once: a batch takes the commands of its number and the
events of its range, and whatever nobody takes was put there. A header whose signature fails is not
parsed; its rows are still compared with each other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from workmate_server.engine.verify_actors import Actors
from workmate_server.engine.verify_columns import (
    check_command,
    check_decision,
    check_event,
    check_header_columns,
    check_signature,
)
from workmate_server.engine.verify_report import Findings
from workmate_server.engine.workspace import SYSTEM_ID
from workmate_server.store import loads, walks
from workmate_server.store.database import Connection
from workmate_shared.kernel.command import Command
from workmate_shared.wire.batch import (
    Continuation,
    Header,
    Leaf,
    LeafEvent,
    decode_header,
    decode_leaf,
    header_hash,
)
from workmate_shared.wire.codec import MalformedError
from workmate_shared.wire.dsse import BATCH_TYPE, SignatureError, verify_bytes
from workmate_shared.wire.tree import leaf_hash, tree_root


class _Decision(Struct, frozen=True):
    row: Any
    leaf: Leaf
    command: Command | None


class LogWalk:
    """A walk through one tenant's log; after `run` it knows where the log ends.

    `left` are the lineages that the log says were continued by another; `watched_hash` is the hash
    of the header whose number `run` was given.
    """

    def __init__(
        self,
        connection: Connection,
        tenant_id: str,
        trusted: Mapping[str, bytes],
        findings: Findings,
    ) -> None:
        self._batches = walks.walk_batches(connection, tenant_id)
        self._commands = walks.RangeReader(walks.walk_commands(connection, tenant_id), "batch")
        self._events = walks.RangeReader(walks.walk_events(connection, tenant_id), "seq")
        self._trusted = trusted
        self._findings = findings
        self._actors = Actors()
        self.tenant_id = tenant_id
        self.batch = 0
        self.seq = 0
        self.commands = 0
        self.header_hash: str | None = None
        self.lineage: str | None = None
        self.left: set[str] = set()
        self.watched_hash: str | None = None

    def run(self, *, watched: int = 0) -> None:
        """Walk from the first batch to the last."""
        for row in self._batches:
            place = f"commit_batch {row.batch}"
            if self._findings.misfits(place, walks.misfits(loads.BATCHES, row)):
                continue
            header = self._open_header(place, row)
            if header is not None and header.batch != row.batch:
                self._findings.add(f"{place} batch", "changed", f"it is batch {header.batch}")
            elif row.batch <= self.batch:
                self._findings.add(place, "inserted", f"it follows batch {self.batch}")
            else:
                self._check_batch(row.batch, row, header)
            if row.batch == watched:
                self.watched_hash = self.header_hash
        self._report_commands(self._commands.rest())
        self._report_events(self._events.rest())

    def _check_batch(self, number: int, row: Any, header: Header | None) -> None:
        if number > self.batch + 1:
            absent = f"commit_batch {self.batch + 1}"
            self._findings.add(absent, "missing", f"batch {number} follows {self.batch}")
            self._actors.doubt()
        place = f"commit_batch {number}"
        if header is not None:
            self._check_chain(place, row, header)
        announced = set(self._actors.log_keys)
        decisions = self._check_leaves(number, header)
        self.seq = self._check_events(number, header, decisions)
        announced = announced or self._actors.log_keys
        known = header is not None and announced and not self._actors.doubts(SYSTEM_ID)
        if known and row.keyid not in announced:
            self._findings.add(f"{place} keyid", "changed", "the log has not announced this key")
        self.batch = number
        self.header_hash = row.header_hash if header is None else header_hash(row.header)
        self.lineage = row.lineage if header is None else header.lineage

    def _open_header(self, place: str, row: Any) -> Header | None:
        try:
            verify_bytes(BATCH_TYPE, row.header, row.keyid, row.signature, self._trusted)
            return decode_header(row.header)
        except SignatureError as error:
            intact = header_hash(row.header) == row.header_hash
            column = "signature" if intact else "header"
            if error.code == "key_unknown":
                column = "keyid"
            self._findings.add(f"{place} {column}", "changed", error.code)
        except MalformedError as error:
            self._findings.add(f"{place} header", "changed", str(error))
        return None

    def _check_chain(self, place: str, row: Any, header: Header) -> None:
        findings = self._findings
        check_header_columns(place, row, header, header_hash(row.header), findings)
        if header.previous != self.header_hash:
            findings.add(place, "reordered", "it does not follow the batch before it")
        if header.first_seq != self.seq + 1:
            findings.add(place, "missing", f"seq {self.seq + 1} to {header.first_seq - 1}")
        left = None
        if self.lineage is not None and header.lineage != self.lineage:
            left = Continuation(self.lineage, self.batch, self.header_hash or "")
            self.left.add(self.lineage)
        if header.continues != left:
            findings.add(place, "forbidden", "it does not continue the lineage before it")

    def _check_leaves(self, number: int, header: Header | None) -> list[_Decision]:
        rows, passed = self._commands.take(number, number)
        self._report_commands(passed)
        place = f"command_log batch {number}"
        if header is not None:
            self._check_tree(place, rows, header)
        self.commands += len(rows)
        decisions = []
        for command in rows:
            here = f"{place} leaf {command.leaf_index}"
            if self._findings.misfits(here, walks.misfits(loads.COMMANDS, command)):
                self._actors.doubt()
                continue
            try:
                leaf = decode_leaf(command.leaf)
            except MalformedError as error:
                self._findings.add(f"{here} leaf", "changed", str(error))
                self._actors.doubt()
                continue
            if header is not None:
                said = (header.tenant_id, header.lineage)
                self._findings.compare(
                    here, "changed", {"leaf": ((leaf.tenant_id, leaf.lineage), said)}
                )
            read = check_command(here, command, leaf, self._findings)
            decisions.append(_Decision(command, leaf, read))
        return decisions

    def _check_tree(self, place: str, rows: Sequence[Any], header: Header) -> None:
        indices = [row.leaf_index for row in rows]
        wanted = range(header.leaf_count)
        for index in sorted(set(wanted) - set(indices)):
            self._findings.add(f"{place} leaf {index}", "missing", "its batch signs for it")
            self._actors.doubt()
        for index in indices:
            if index not in wanted:
                self._findings.add(
                    f"{place} leaf {index}", "inserted", "its batch has no such leaf"
                )
        hashes = [leaf_hash(row.leaf) for row in rows if isinstance(row.leaf, bytes)]
        if not hashes or tree_root(hashes).hex() != header.root:
            where = f"{place} leaf 0 leaf" if indices == [0] == list(wanted) else place
            self._findings.add(where, "changed", "the leaves are not those that were signed")

    def _check_events(
        self, number: int, header: Header | None, decisions: Sequence[_Decision]
    ) -> int:
        """Check the events of a batch; return the seq at which it ends."""
        signed = {step.seq for one in decisions for step in one.leaf.events}
        if header is not None:
            first, last = header.first_seq, header.last_seq
        else:
            first = min(signed, default=self.seq + 1)
            last = max(signed, default=first - 1)
        rows, passed = self._events.take(first, last)
        self._report_events(passed)
        stored = {event.seq: event for event in rows}
        # Decision by decision: one may announce the key with which the next is signed.
        for decision in decisions:
            self._check_decision(number, decision, stored)
        for seq in sorted(stored.keys() - signed):
            self._findings.add(f"audit_event seq {seq}", "inserted", "no decision signs for it")
            self._actors.doubt()
        for seq in sorted(set(range(first, last + 1)) - stored.keys() - signed):
            self._findings.add(f"audit_event seq {seq}", "missing", "the header counts it")
        return last

    def _check_decision(self, number: int, decision: _Decision, stored: Mapping[int, Any]) -> None:
        row, leaf = decision.row, decision.leaf
        if decision.command is not None:
            place = f"command_log batch {number} leaf {row.leaf_index}"
            check_signature(place, row, decision.command, self._actors, self._findings)
        for step in leaf.events:
            place = f"audit_event seq {step.seq}"
            if step.seq not in stored:
                self._findings.add(place, "missing", f"batch {number} signs for it")
            elif self._read_event(place, stored[step.seq], decision, step):
                continue
            self._actors.doubt(leaf.aggregate_id)

    def _read_event(self, place: str, row: Any, decision: _Decision, step: LeafEvent) -> bool:
        """Check one event; return whether it could be read."""
        if self._findings.misfits(place, walks.misfits(loads.EVENTS, row)):
            return False
        event = check_event(place, row, decision.row, decision.leaf, step, self._findings)
        if event is None:
            return False
        if decision.command is not None:
            check_decision(
                place, event, decision.command, decision.leaf, self._actors, self._findings
            )
        self._actors.learn(event)
        return True

    def _report_commands(self, rows: Any) -> None:
        for row in rows:
            place = f"command_log batch {row.batch} leaf {row.leaf_index}"
            self._findings.add(place, "inserted", "no batch of this number is there")

    def _report_events(self, rows: Any) -> None:
        for row in rows:
            self._findings.add(f"audit_event seq {row.seq}", "inserted", "no batch signs for it")
