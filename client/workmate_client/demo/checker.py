"""Judge what a demo left behind: every figure again, from the log and the journals alone.

Nothing is taken from the story's own counters. Lost is whatever a device had saved and the log does
not show; doubled is whatever the log shows more than once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from workmate_client.demo.kit import Kit
from workmate_client.demo.places import Places, read_lines
from workmate_client.journal.rows import QueuedCommand
from workmate_client.service.device import Device
from workmate_client.service.receipts import verify_receipts
from workmate_shared.tasks.manifest import PhotoItem
from workmate_shared.tasks.task import decode_manifest
from workmate_shared.wire.batch import Header, Leaf, decode_header, decode_leaf, payload_hash
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, split_envelope


class _Log:
    """The exported log: decoded payloads of events, and leaves by (principal, command id)."""

    def __init__(self, places: Places) -> None:
        lines = read_lines(places.log)
        self.events = [msgspec.json.decode(line["payload"]) for line in lines]
        self.seqs = [line["seq"] for line in lines]
        self.hashes = [payload_hash(line["payload"].encode()) for line in lines]
        self.leaves: list[Leaf] = []
        self.headers: list[Header] = []
        for batch in read_lines(places.batches):
            envelope = msgspec.convert(batch["header"], Envelope)
            self.headers.append(decode_header(split_envelope(envelope, BATCH_TYPE)[0]))
            self.leaves += [decode_leaf(leaf.encode()) for leaf in batch["leaves"]]
        self.by_key = {(leaf.principal_id, leaf.command_id): leaf for leaf in self.leaves}

    def missing(self) -> list[str]:
        """Name what the signed leaves count as an event and no line of the log is."""
        told = set(self.hashes)
        signed = (step for leaf in self.leaves for step in leaf.events)
        return [f"event at seq {step.seq}" for step in signed if step.payload_hash not in told]

    def unsigned(self) -> int:
        """How many lines of the log no leaf signs for."""
        signed = {step.payload_hash for leaf in self.leaves for step in leaf.events}
        return sum(one not in signed for one in self.hashes)

    def count(self, *types: str) -> int:
        """How many events are of one of the types."""
        return sum(event["type"] in types for event in self.events)


class _Journal:
    """One device's journal, as it lies in its folder."""

    def __init__(self, device: Device) -> None:
        try:
            self.worker_id = device.profile().worker_id
            self.commands: Sequence[QueuedCommand] = device.journal.commands()
            self.counts = device.journal.conservation()
            self.files = device.journal.evidence()
            self.receipts = verify_receipts(device)
        finally:
            device.close()


def check_folder(places: Places, kit: Kit) -> dict[str, Any]:
    """Return the figures of a kept demo folder, and under `faults` every invariant that broke."""
    about = places.read_about()
    log = _Log(places)
    journals = [
        _Journal(kit.open_laptop(places.folder / name, about["passphrase"]))
        for name in sorted(about["workers"])
    ]
    imported = msgspec.json.decode(places.imported.read_bytes())
    report = msgspec.json.decode(places.verified.read_bytes())
    received = {line["id"] for line in read_lines(places.received)}
    figures: dict[str, Any] = {
        "tasks": log.count("task.created"),
        "refused_rows": len(imported["refused"]),
        "completed": log.count("task.completed"),
        "cancelled": log.count("task.cancelled"),
        "conflicts": sum(leaf.outcome == "conflict" for leaf in log.leaves),
        "handovers": log.count("evidence.handed_over"),
        "rejections": log.count("task.proof_rejected"),
        "replayed": sum(_replayed(command) for one in journals for command in one.commands),
        "commands": len(log.leaves),
        "events": len(log.events),
        "photos": _photos(log),
        "outbox_delivered": len(received),
        "log_verified": bool(report["clean"]),
        "receipts_verified": sum(one.receipts.proven for one in journals),
        "lost": sum(len(_lost(one, log)) for one in journals) + len(log.missing()),
        "duplicated": _duplicated(log),
    }
    figures["faults"] = _faults(figures, log, journals, received, about)
    return figures


def _replayed(command: QueuedCommand) -> bool:
    return command.outcome is not None and command.outcome.replayed


def _photos(log: _Log) -> int:
    """Count the photos in manifests of the log whose files the server has verified."""
    named: dict[str, tuple[str, ...]] = {}
    stored: set[str] = set()
    for event in log.events:
        if event.get("manifest"):
            manifest = decode_manifest(event["manifest"])
            photos = (item.hash for item in manifest.items if isinstance(item, PhotoItem))
            named[event["manifest_id"]] = tuple(photos)
        if event["type"] == "evidence.stored":
            stored |= set(event["hashes"])
    return sum(name in stored for photos in named.values() for name in photos)


def _lost(journal: _Journal, log: _Log) -> list[str]:
    """Name what the device had saved and the log does not show."""
    gone = [f"device_seq {number} of {journal.worker_id}" for number in journal.counts.lost]
    for command in journal.commands:
        leaf = log.by_key.get((journal.worker_id, command.command_id))
        if leaf is None or leaf.outcome != command.status:
            gone.append(f"command {command.command_id} ({command.status})")
    gone += [f"file {item.hash}" for item in journal.files if item.verified_at is None]
    return gone


def _duplicated(log: _Log) -> int:
    """Count what the log shows more than once: events by id, and decisions by key."""
    events = Counter(event["event_id"] for event in log.events)
    keys = Counter((leaf.principal_id, leaf.command_id) for leaf in log.leaves)
    return sum(number - 1 for counted in (events, keys) for number in counted.values())


def _faults(
    figures: Mapping[str, Any],
    log: _Log,
    journals: Sequence[_Journal],
    received: set[str],
    about: Mapping[str, Any],
) -> list[str]:
    faults = [fault for one in journals for fault in _lost(one, log)] + log.missing()
    if log.unsigned():
        faults.append(f"{log.unsigned()} events that no leaf signs for")
    faults += [f"not conserved: {one.counts}" for one in journals if not one.counts.holds]
    faults += [
        f"{one.receipts.proven} of {len(one.receipts.receipts)} receipts verify"
        for one in journals
        if not one.receipts.all_proven
    ]
    if figures["duplicated"]:
        faults.append(f"{figures['duplicated']} events or decisions stand in the log twice")
    if not figures["log_verified"]:
        faults.append("the log does not verify")
    if log.seqs != list(range(1, len(log.seqs) + 1)):
        faults.append("seq is not dense")
    if [header.batch for header in log.headers] != list(range(1, len(log.headers) + 1)):
        faults.append("batches are not dense")
    versions = Counter(event["aggregate_id"] for event in log.events)
    highest: dict[str, int] = {}
    for event in log.events:
        name = event["aggregate_id"]
        highest[name] = max(highest.get(name, 0), event["aggregate_version"])
    faults += [
        f"versions of {name} are not dense" for name in versions if versions[name] != highest[name]
    ]
    expected = {event["event_id"] for event in log.events[about["events_before_receiver"] :]}
    if expected - received:
        faults.append(f"{len(expected - received)} events did not reach the receiver")
    for name in ("replayed", "conflicts", "handovers", "rejections", "completed"):
        if not figures[name]:
            faults.append(f"the story shows no {name}")
    return faults
