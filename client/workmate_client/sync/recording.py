"""Record in the journal what a judged answer is worth; blocking, to be run in a worker thread.

A lineage comes before the outcomes that belong to it. Waits are kept with the commands, so that
another process knows them; what a command waited for ends its wait.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from workmate_client.journal.rows import Profile, QueuedCommand
from workmate_client.sync.backoff import delay_seconds
from workmate_client.sync.parts import SyncParts
from workmate_client.sync.verify import HeldCommand, Judgement, UnknownOutcome
from workmate_shared.kernel.instants import format_instant
from workmate_shared.wire.messages import SyncAnswer

SERVER_WIDE = frozenset({"overloaded", "database_away", "too_many", "shutting_down"})
"""Reasons not to decide that concern the server and not the command."""

FREED_BY_PULL = frozenset({"version_ahead", "not_found"})
"""Reasons to wait that a change of the aggregate may have removed."""


class Heard(Struct, frozen=True):
    """An answer, when it came by this clock, and how long the round trip took in seconds."""

    answer: SyncAnswer
    at: datetime
    round_trip_seconds: float


class Recorder:
    """Writes into one profile's journal what became of a round trip."""

    def __init__(self, parts: SyncParts) -> None:
        self._parts = parts

    def record(
        self,
        profile: Profile,
        judgement: Judgement,
        facts: Mapping[str, object],
        pending: Sequence[QueuedCommand],
        changed: Collection[str],
    ) -> None:
        """Record outcomes, waits and what is now known of the server.

        `facts` are further fields of the profile, `changed` the aggregates that the page changed.
        """
        changes = {
            **facts,
            "newest_header": judgement.newest_header,
            "newest_batch": judgement.newest_batch,
        }
        if judgement.new_keys:
            added = {name: key.hex() for name, key in judgement.new_keys.items()}
            changes["pinned_keys"] = profile.pinned_keys | added
        if judgement.lineage_changed:
            changes["lineage"] = judgement.lineage
        self._parts.journal.update_profile(**changes)
        self._parts.journal.record_outcomes([found.outcome for found in judgement.outcomes])
        self._record_waits(judgement, pending, changed)
        for fork in judgement.forks:
            detail = f"batch {fork.batch} of {fork.lineage}: {fork.known_hash}, {fork.other_hash}"
            self.tell_once("log_fork", detail)

    def _record_waits(
        self,
        judgement: Judgement,
        pending: Sequence[QueuedCommand],
        changed: Collection[str],
    ) -> None:
        held = {verdict.command_id: verdict for verdict in judgement.held}
        unknown = {verdict.command_id: verdict for verdict in judgement.unknown}
        answered = {found.command_id for found in judgement.outcomes}
        for command in pending:
            name = command.command_id
            if name in answered:
                continue
            now_held = held.get(name)
            code = now_held.code if now_held else command.wait_code
            blocked_by = now_held.blocked_by if now_held else command.blocked_by
            by_pull = code in FREED_BY_PULL and command.aggregate_id in changed
            if name in unknown:
                self.record_verdict(command, unknown[name])
            elif blocked_by in answered or by_pull:
                self._parts.journal.record_wait(name, None)
            elif now_held and now_held.code not in SERVER_WIDE:
                self.record_verdict(command, now_held)

    def record_verdict(self, command: QueuedCommand, verdict: HeldCommand | UnknownOutcome) -> None:
        """Note why a command was not decided, or that nothing is known of it."""
        if isinstance(verdict, UnknownOutcome):
            self.record_wait(command, verdict.reason)
            return
        if verdict.code == "bytes_missing":
            self._offer_again(command, verdict)
        self.record_wait(command, verdict.code, verdict.after_seconds, verdict.blocked_by)

    def _offer_again(self, command: QueuedCommand, held: HeldCommand) -> None:
        """Forget the uploads of files that the server says it has not."""
        listed = {item.hash for item in self._parts.journal.evidence(command.aggregate_id)}
        for name in held.details.get("hashes", ()):
            if name in listed:
                self._parts.journal.mark_uploaded(command.aggregate_id, name, 0)

    def record_wait(
        self,
        command: QueuedCommand,
        code: str,
        at_least_seconds: float = 0.0,
        blocked_by: str | None = None,
    ) -> None:
        """Note that a command was tried and has no outcome, and when it is tried next."""
        parts = self._parts
        failures = command.attempts + 1
        wait = delay_seconds(failures, parts.fraction(), parts.settings, at_least_seconds)
        parts.journal.record_wait(
            command.command_id,
            code,
            blocked_by=blocked_by,
            next_attempt_at=parts.instant_in(wait),
        )

    def tell_once(self, code: str, detail: str) -> None:
        """Tell the worker, unless the very same is still to be read."""
        journal = self._parts.journal
        if all((notice.code, notice.detail) != (code, detail) for notice in journal.notices()):
            journal.add_notice(code, detail)


def facts_of(heard: Heard, skew_seconds: float, judgement: Judgement) -> dict[str, object]:
    """Return what an answer says of the server itself, as fields of the profile."""
    facts: dict[str, object] = {
        "last_server_time": heard.answer.server_time,
        "limits": heard.answer.limits,
        "clock_skew_seconds": skew_seconds,
    }
    if not judgement.unknown:
        facts["last_contact_at"] = format_instant(heard.at)
    return facts
