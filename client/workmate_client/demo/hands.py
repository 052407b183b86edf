"""One worker at one laptop, as a process of its own that can be killed at any moment.

Reads one JSON request a line from standard input and answers with one JSON line. Every request is
one call of the same service functions that the command line uses. What a killed process had saved is
there when the next one opens the same folder, so `finish_job` begins wherever the job stands.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workmate_client.demo.kit import Kit, OpenProgram
from workmate_client.errors import DeviceError
from workmate_client.service import (
    acts,
    conflicts,
    jobs,
    photos,
    proof,
    receipts,
    redo,
    submission,
)
from workmate_client.service.device import Device
from workmate_client.service.enrolment import enrol
from workmate_client.service.outbox import device_status
from workmate_client.sync.runner import SyncRunner
from workmate_shared.tasks.policy import ConfirmItem, NumberItem
from workmate_shared.tasks.values import Fix

FLAG = "--hands"
"""The argument that makes the program one worker's laptop."""

MANY_METRES = 15
"""The accuracy of the demo's satellite fixes."""


class Hands:
    """What the worker can be asked to do; each method is one request."""

    def __init__(self, kit: Kit, program: OpenProgram) -> None:
        self._kit = kit
        self._program = program

    @property
    def _device(self) -> Device:
        return self._program.device()

    def enrol(self, server: str, code: str) -> dict[str, Any]:
        """Bind the laptop to the worker."""
        device, _ = self._program.new_device("vault")

        async def go() -> Any:
            async with self._kit.transport_to(server, self._program.settings) as transport:
                return await enrol(device, transport, server, code)

        enrolled = asyncio.run(go())
        return {"worker_id": enrolled.worker_id, "device_id": enrolled.device_id}

    def sync(self) -> dict[str, Any]:
        """Sync once; says what the device itself would say."""
        device = self._device
        server = device.profile().server_url

        async def go() -> Any:
            async with self._kit.transport_to(server, device.settings) as transport:
                return await SyncRunner(self._kit.sync_parts(device, transport)).sync_once()

        report = asyncio.run(go())
        return {
            "sent": report.sent,
            "committed": report.committed,
            "conflicts": report.conflicts,
            "rejected": report.rejected,
            "pulled": report.pulled,
            "waiting": len(report.waiting),
            "files": report.uploaded_files,
            "bytes": report.uploaded_bytes,
            "stopped": report.stopped,
        }

    def jobs(self) -> dict[str, Any]:
        """List the jobs on this laptop with their states."""
        return {"jobs": {line.task_id: line.state for line in jobs.list_jobs(self._device)}}

    def travel(self, task_id: str) -> dict[str, Any]:
        """Accept, set out and arrive, as far as that is still to be done."""
        device = self._device
        steps: dict[str, Callable[[], object]] = {
            "assigned": lambda: acts.accept(device, task_id),
            "accepted": lambda: acts.start_travel(device, task_id),
            "en_route": lambda: acts.arrive(device, task_id, **self._arrival(task_id)),
        }
        while (state := acts.situation(device, task_id).task.state) in steps:
            steps[state]()
        return {"state": state}

    def note(self, task_id: str, text: str) -> dict[str, Any]:
        """Write a note."""
        submission.note(self._device, task_id, text)
        return {}

    def gather(self, task_id: str, photo: list[str], name: str) -> dict[str, Any]:
        """Answer, photograph, sign and consent, as far as that is still missing."""
        device = self._device
        policy = acts.situation(device, task_id).task.proof_policy
        missing = {(m.code, m.about) for m in proof.proof_status(device, task_id).missing}
        for item in policy.checklist:
            if ("answer_missing", item.item_id) in missing:
                proof.answer(device, task_id, item.item_id, _answer_to(item))
        for slot in policy.photos:
            if ("photos_missing", slot.slot) in missing:
                for path in photo:
                    photos.add_photo(device, task_id, Path(path), slot.slot)
        for signer in policy.signature:
            if ("signature_missing", signer) in missing:
                proof.sign(device, task_id, signer, name=name)
        if any(code == "consent_missing" for code, _ in missing):
            proof.consent(device, task_id, name)
        left = proof.proof_status(device, task_id).missing
        return {"missing": [entry.code for entry in left]}

    def submit(self, task_id: str) -> dict[str, Any]:
        """Submit the proof."""
        done = submission.submit_proof(self._device, task_id)
        return {"state": done.state}

    def finish_job(self, task_id: str, photo: list[str], name: str) -> dict[str, Any]:
        """Do whatever is left of a job, from wherever it stands, up to the submitted proof."""
        state = self.travel(task_id)["state"]
        if state == "in_progress":
            self.gather(task_id, photo, name)
            state = self.submit(task_id)["state"]
        return {"state": state}

    def conflicts(self) -> dict[str, Any]:
        """List what needs the worker's decision."""
        found = conflicts.list_conflicts(self._device, include_set_aside=False)
        return {
            "conflicts": [
                {
                    "task_id": one.task_id,
                    "command_id": one.command_id,
                    "acts": [act.name for act in one.acts],
                    "sentence": one.acts[0].sentence,
                    "meanwhile": [event.type for event in one.meanwhile],
                }
                for one in found
            ]
        }

    def redo(self, command_id: str) -> dict[str, Any]:
        """Do a lost chain again on the job as it is now, with one intentional act."""
        done = redo.redo(self._device, command_id)
        return {"acts": len(done)}

    def set_aside(self, command_id: str, reason: str) -> dict[str, Any]:
        """Set a lost act aside, with a reason."""
        return {"acts": len(redo.set_aside(self._device, command_id, reason))}

    def status(self) -> dict[str, Any]:
        """Say how things stand on this laptop."""
        status = device_status(self._device)
        proven = receipts.verify_receipts(self._device)
        return {
            "pending": status.counts.pending,
            "conserved": status.conserved,
            "receipts": len(proven.receipts),
            "proven": proven.proven,
        }

    def _arrival(self, task_id: str) -> dict[str, Any]:
        found = acts.situation(self._device, task_id)
        place = found.opened(found.task.position) if found.task.position else None
        if not place or place.get("lat_e7") is None:
            return {"no_fix_reason": "no signal between the houses"}
        fix = Fix(
            lat_e7=place["lat_e7"] + 300,
            lon_e7=place["lon_e7"] - 200,
            accuracy_m=MANY_METRES,
            source="gps",
        )
        return {"fix": fix}


def _answer_to(item: object) -> str:
    if isinstance(item, ConfirmItem):
        return "no" if item.passes is False else "yes"
    if isinstance(item, NumberItem):
        return item.passes or item.min or item.max or "1"
    return str(getattr(item, "passes", None) or "as agreed")


def serve(hands: Hands, line: str) -> dict[str, Any]:
    """Carry out one request line and return the answer."""
    request: Mapping[str, Any] = json.loads(line)
    fields = {name: value for name, value in request.items() if name != "do"}
    method = getattr(hands, request["do"])
    try:
        answer: dict[str, Any] = method(**fields)
    except DeviceError as error:
        return {"error": error.code, "detail": str(error)}
    return answer


def serve_all(kit: Kit, environment: Mapping[str, str]) -> None:
    """Serve requests until standard input ends."""
    program = kit.open_program(environment)
    hands = Hands(kit, program)
    try:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(serve(hands, line)) + "\n")
            sys.stdout.flush()
    finally:
        program.close()
