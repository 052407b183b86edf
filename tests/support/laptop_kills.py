"""Ends a worker's process at each point where it saves something, one folder for each point.

Run as a program: `python -m support.laptop_kills SCENARIO FOLDER`. FOLDER/start holds the profile to
begin from; FOLDER/<n> is what the n-th point left behind. Prints the points' names as JSON. What a
scenario calls done it appends to the file `done` beside the profile.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from support.contexts import story_to
from support.endings import Hook, end_at_each_point, ended_by
from support.laptop import TASK, Laptop, machine_for_tests
from workmate_client.bootstrap import Machine
from workmate_client.service import acts, proof, submission
from workmate_client.service.photos import add_photo
from workmate_client.service.redo import redo
from workmate_shared.wire.messages import Outcome

Scenario = Callable[[Laptop, Path], Iterator[str]]
"""Does one thing after the other and yields the name of each when it has returned."""


def _acts(it: Laptop, _folder: Path) -> Iterator[str]:
    acts.accept(it.device, TASK)
    yield "accept"
    acts.start_travel(it.device, TASK)
    yield "start_travel"


def _photo(it: Laptop, folder: Path) -> Iterator[str]:
    add_photo(it.device, TASK, folder / "photo.jpg")
    yield "photo"


def _submit(it: Laptop, _folder: Path) -> Iterator[str]:
    submission.submit_proof(it.device, TASK, incomplete=True)
    yield "submit_proof"


def _answers(it: Laptop, folder: Path) -> Iterator[str]:
    for line in (folder / "outcomes").read_bytes().splitlines():
        outcome = msgspec.json.decode(line, type=Outcome)
        it.device.journal.record_outcome(outcome.command_id, outcome)
        yield outcome.command_id


def _lineage(it: Laptop, _folder: Path) -> Iterator[str]:
    it.device.journal.update_profile(lineage="lineage-2")
    yield "lineage-2"


def _redo(it: Laptop, _folder: Path) -> Iterator[str]:
    lost = [c for c in it.device.journal.commands() if c.needs_decision]
    redo(it.device, lost[0].command_id)
    yield "redo"


def _answer(it: Laptop, _folder: Path) -> Iterator[str]:
    proof.answer(it.device, TASK, "volts", "231")
    yield "answer"


def _nothing(_it: Laptop, _folder: Path) -> Iterator[str]:
    yield "opened"


SCENARIOS: dict[str, Scenario] = {
    "acts": _acts,
    "photo": _photo,
    "submit": _submit,
    "answers": _answers,
    "lineage": _lineage,
    "redo": _redo,
    "answer": _answer,
    "open": _nothing,
}


def open_laptop(folder: Path, machine: Machine | None = None) -> Laptop:
    """Open the profile of a folder as it was left."""
    return Laptop(folder / "profile", story_to("assigned"), machine)


def _tell_done(scenario: str, folder: Path, hook: Hook) -> None:
    """Run a scenario, and write down each step that it called done."""
    for done in SCENARIOS[scenario](open_laptop(folder, machine_for_tests(hook)), folder):
        with (folder / "done").open("a", encoding="utf-8") as file:
            file.write(f"{done}\n")


def _counts(point: str) -> bool:
    # After one step is before the next: nothing happens in between.
    return not point.endswith(".after")


def ended_at_each_point(scenario: str, folder: Path) -> list[tuple[str, Path]]:
    """Return each point's name with the folder that a process ended there left behind."""
    return ended_by("support.laptop_kills", scenario, folder)


def done_in(folder: Path) -> list[str]:
    """Return what the ended process had called done."""
    path = folder / "done"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


if __name__ == "__main__":
    end_at_each_point(partial(_tell_done, sys.argv[1]), Path(sys.argv[2]), _counts)
