"""A worker's laptop in a folder, and the office that it hears of when a test lets it.

The office decides by the shared lifecycle and signs by a log in memory; pulls and answers are handed
over directly, with no network in between.
"""

from pathlib import Path
from typing import Any

import msgspec

from support import commands as build
from support.contexts import Story, decide, events_of, refer_to, story_to
from support.device import SteppingClock, quick_settings
from support.signing_log import SigningLog
from workmate_client.bootstrap import Machine, open_device
from workmate_client.config import MIB, ProfilePaths, Settings
from workmate_client.journal.files import Hook, PosixFiles, no_hook
from workmate_client.journal.keys import ProfileKeys
from workmate_client.journal.rows import Profile, QueuedCommand
from workmate_client.service.device import Device
from workmate_client.system import SystemRandom
from workmate_shared.kernel.decision import Retry
from workmate_shared.kernel.lifecycle import Blob
from workmate_shared.tasks.commands import named_hashes
from workmate_shared.tasks.task import evolve
from workmate_shared.wire.commitment import Disclosure
from workmate_shared.wire.messages import Change, Outcome, Pull

KEYS = ProfileKeys(bytes(range(32)), bytes(range(32, 64)))
TASK = build.TASK
LAPTOP_SETTINGS = msgspec.structs.replace(
    quick_settings(
        sealed_piece_bytes=64 * 1024,
        evidence_file_limit_bytes=64 * MIB,
        unsent_record_limit_bytes=8 * MIB,
        file_lock_timeout_seconds=10.0,
    ),
    database_busy_timeout_seconds=30.0,
)


def machine_for_tests(
    hook: Hook = no_hook, settings: Settings = LAPTOP_SETTINGS, *, real_waiting: bool = False
) -> Machine:
    """A machine whose clock waiting moves; between processes waiting must be real."""
    clock = SteppingClock()
    files = PosixFiles(hook) if real_waiting else PosixFiles(hook, clock)
    return Machine(settings=settings, clock=clock, random=SystemRandom(), files=files, hook=hook)


def profile_for_tests(log: SigningLog, keys: ProfileKeys = KEYS) -> Profile:
    """The profile of ASSIGNEE, enrolled at a server that signs by this log."""
    return Profile(
        server_url="http://127.0.0.1:1",
        tenant_id=build.TENANT,
        worker_id=build.ASSIGNEE,
        display_name="Ann Onym",
        device_id=keys.device_id,
        lineage=log.lineage,
        pinned_keys={name: key.hex() for name, key in log.keys.items()},
        enrolled=True,
    )


class Laptop:
    """One enrolled device and its office; the task is TASK, in the state that the story is in."""

    def __init__(self, folder: Path, story: Story, machine: Machine | None = None) -> None:
        self.folder = folder
        self.story = story
        self.log = SigningLog(build.TENANT, build.LINEAGE)
        self.machine = machine or machine_for_tests()
        self.device = open_device(self.machine, ProfilePaths(folder), KEYS)
        self.disclosures: dict[str, Disclosure] = dict(build.DISCLOSURES)
        self._outcomes: dict[str, Outcome] = {}
        if self.device.journal.profile() is None:
            self.device.journal.save_profile(profile_for_tests(self.log))

    @property
    def clock(self) -> SteppingClock:
        clock = self.machine.clock
        assert isinstance(clock, SteppingClock)
        return clock

    def reopen(self, machine: Machine | None = None) -> Device:
        """Close the device and open it as the next process would."""
        self.device.close()
        self.machine = machine or self.machine
        self.device = open_device(self.machine, ProfilePaths(self.folder), KEYS)
        return self.device

    def pull(self, removed: str | None = None) -> None:
        """Let the laptop hear how the task stands."""
        since = self.device.replica.cursor()
        seq = int(since or 0) + 1
        task = None if removed else self.story.state
        values = {} if removed else self.disclosures
        change = Change(
            kind="task", id=TASK, seq=seq, task=task, disclosures=values, removed=removed
        )
        self.device.replica.apply_page(Pull(changes=(change,), since=since, cursor=str(seq)))

    def answer(self, command: QueuedCommand) -> Outcome:
        """Let the office decide one pending command, and the laptop hear the outcome."""
        outcome = self.decide(command)
        if outcome.status != "retry":
            self.device.journal.record_outcome(command.command_id, outcome)
        return outcome

    def answer_all(self) -> list[Outcome]:
        """Let the office decide everything that is pending, in order."""
        return [self.answer(command) for command in self.device.journal.pending()]

    def decide(self, queued: QueuedCommand) -> Outcome:
        """Decide a command as the server would: once, and by the shared lifecycle."""
        if queued.command_id in self._outcomes:
            return self._outcomes[queued.command_id]
        command = queued.command()
        self.disclosures |= queued.parts.disclosures
        before = self._outcomes.get(command.after or "")
        facts: dict[str, Any] = {
            "lineage": self.log.lineage,
            "after_outcome": before.status if before else None,
            "ancestors": frozenset(self._ancestors(command.after)),
            "since": refer_to(self.story.events),
            "blobs": {name: Blob(True, True) for name in named_hashes(command)},
        }
        decision = decide(self.story.state, command, **facts)
        if isinstance(decision, Retry):
            return Outcome(command_id=queued.command_id, status="retry", code=decision.code)
        events = events_of(decision)
        outcome = self._signed(queued, decision, [msgspec.json.encode(event) for event in events])
        for event in events:
            self.story.state = evolve(self.story.state, event)
        self.story.events += events
        self._outcomes[queued.command_id] = outcome
        return outcome

    def _signed(self, queued: QueuedCommand, decision: Any, events: list[bytes]) -> Outcome:
        self.log.versions[TASK] = self.story.state.version
        return self.log.decide(
            queued.parts.payload,
            decision.status,
            getattr(decision, "code", None),
            getattr(decision, "details", {}),
            events,
        )

    def _ancestors(self, command_id: str | None) -> list[str]:
        found = []
        known = {c.command_id: c.after for c in self.device.journal.commands()}
        while command_id is not None:
            found.append(command_id)
            command_id = known.get(command_id)
        return found


def laptop(folder: Path, state: str = "assigned", **creation: Any) -> Laptop:
    """A laptop that has pulled the example task in a state; further fields create the task."""
    made = Laptop(folder, story_to(state, **creation))
    made.pull()
    return made
