"""One round trip of a sync: build the request, send it, judge the answer, record what is proven.

What goes out are the bytes that were signed, the same at every try. What comes back changes nothing
unless `verify` believes it: the page and its cursor are stored in one transaction of the replica,
outcomes in one of the journal. A void cursor starts a new snapshot and never touches the queue.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from workmate_client.journal.rows import Profile, QueuedCommand
from workmate_client.replica.store import PageDoesNotJoinError
from workmate_client.sync.backoff import LINK_UP, Link, asked_to_wait, delay_seconds
from workmate_client.sync.parts import SyncParts
from workmate_client.sync.skew import SkewEstimate, estimate_skew
from workmate_client.sync.verify import (
    CURSOR_EXPIRED,
    HeldCommand,
    Judgement,
    Pinned,
    Sent,
    judge,
)
from workmate_shared.kernel.instants import format_instant, parse_instant
from workmate_shared.wire.codec import encode
from workmate_shared.wire.messages import PROTOCOL, DeviceReport, SyncAnswer, SyncRequest

REQUEST_OVERHEAD_BYTES = 8 * 1024
"""What a request takes beside its commands, generously: header, cursor, report, punctuation."""

SERVER_WIDE = frozenset({"overloaded", "database_away", "too_many", "shutting_down"})
"""Reasons not to decide that concern the server and not the command."""


class Exchanged(Struct, frozen=True, kw_only=True):
    """What a round trip did: the judgement, the link after it, and how the pull went.

    `pulled` counts changes that were stored; `pull_due` says that there are more.
    """

    judgement: Judgement
    link: Link
    skew: SkewEstimate
    pulled: int = 0
    pull_due: bool = False
    pull_refused: str | None = None
    pull_fault: str | None = None


class _Heard(Struct, frozen=True):
    """An answer with the time of its arrival and the length of the round trip."""

    answer: SyncAnswer
    at: datetime
    round_trip_seconds: float


class Exchange:
    """Does round trips for one profile."""

    def __init__(self, parts: SyncParts) -> None:
        self._parts = parts

    async def round_trip(
        self,
        token: str,
        commands: Sequence[QueuedCommand],
        pending: Sequence[QueuedCommand],
        upload_bytes_left: int,
    ) -> Exchanged:
        """Send commands and pull one page; everything proven is recorded when this returns.

        Raises TransportError, after which nothing is known of the commands and nothing changed;
        StoreError and StorageError when the device cannot record, and then nothing is lost either.
        """
        parts = self._parts
        profile, request = await parts.run_blocking(
            self._request, commands, pending, upload_bytes_left
        )
        begun = parts.clock.monotonic()
        answer = await parts.transport.sync(token, request)
        heard = _Heard(answer, parts.clock.now(), parts.clock.monotonic() - begun)
        return await parts.run_blocking(
            self._take, profile, request.cursor, commands, pending, heard
        )

    def _request(
        self,
        commands: Sequence[QueuedCommand],
        pending: Sequence[QueuedCommand],
        upload_bytes_left: int,
    ) -> tuple[Profile, SyncRequest]:
        parts = self._parts
        profile = known_profile(parts)
        report = DeviceReport(
            build=parts.build,
            pending=len(pending),
            oldest_pending_at=min((c.issued_at for c in pending), key=parse_instant, default=None),
            upload_bytes_left=upload_bytes_left,
            disk_free=parts.files.free_bytes(parts.paths.folder),
            clock=format_instant(parts.clock.now()),
        )
        request = SyncRequest(
            protocol=PROTOCOL,
            newest_header=profile.newest_header,
            cursor=parts.replica.cursor(),
            device=report,
            commands=tuple(command.signed() for command in commands),
        )
        return profile, request

    def _take(
        self,
        profile: Profile,
        cursor: str | None,
        commands: Sequence[QueuedCommand],
        pending: Sequence[QueuedCommand],
        heard: _Heard,
    ) -> Exchanged:
        """Judge an answer and record it; blocking."""
        sent = [
            Sent(
                command_id=command.command_id,
                aggregate_id=command.aggregate_id,
                principal_id=command.command().actor.id,
                payload=command.parts.payload,
            )
            for command in commands
        ]
        left = frozenset(command.lineage for command in pending) - {profile.lineage}
        pinned = Pinned(
            tenant_id=profile.tenant_id,
            principal_id=profile.worker_id,
            device_id=profile.device_id,
            lineage=profile.lineage,
            keys=profile.trusted_keys(),
            newest_header=profile.newest_header,
            past_lineages=left,
        )
        judgement = judge(heard.answer, sent, cursor, pinned)
        server_time = parse_instant(heard.answer.server_time)
        skew = estimate_skew(heard.at, heard.round_trip_seconds, server_time)
        exchanged = self._take_pull(heard.answer, cursor, judgement, skew)
        self._keep_profile(profile, heard, exchanged)
        self._parts.journal.record_outcomes([found.outcome for found in judgement.outcomes])
        self._record_waits(judgement, {command.command_id: command for command in pending})
        for fork in judgement.forks:
            detail = f"batch {fork.batch} of {fork.lineage}: {fork.known_hash}, {fork.other_hash}"
            self._tell_once("log_fork", detail)
        return exchanged

    def _take_pull(
        self,
        answer: SyncAnswer,
        cursor: str | None,
        judgement: Judgement,
        skew: SkewEstimate,
    ) -> Exchanged:
        verdict, replica = judgement.pull, self._parts.replica
        link = self._link_after(answer, judgement)
        fault: str | None = verdict.fault
        if verdict.cursor is not None:
            try:
                pulled = replica.apply_page(answer.pull)
            except PageDoesNotJoinError as error:
                fault = error.code
            else:
                return Exchanged(
                    judgement=judgement,
                    link=link,
                    skew=skew,
                    pulled=pulled,
                    pull_due=verdict.more,
                )
        # Refused again without any cursor, it is refused for good.
        void = verdict.refused == CURSOR_EXPIRED and cursor is not None
        if void:
            replica.start_snapshot()
        return Exchanged(
            judgement=judgement,
            link=link,
            skew=skew,
            pull_due=void,
            pull_refused=None if void else verdict.refused,
            pull_fault=fault,
        )

    def _link_after(self, answer: SyncAnswer, judgement: Judgement) -> Link:
        """Return the link: the server may ask for a pause, or decide nothing at all."""
        parts = self._parts
        busy = [held for held in judgement.held if held.code in SERVER_WIDE]
        asked = max([answer.backoff, *(held.after_seconds for held in busy)])
        if busy and not judgement.outcomes:
            wait = delay_seconds(1, parts.fraction(), parts.settings, asked)
            return Link(1, busy[0].code, parts.now_seconds() + wait)
        if asked > 0:
            return asked_to_wait(asked, parts.now_seconds(), parts.settings)
        return LINK_UP

    def _keep_profile(self, profile: Profile, heard: _Heard, exchanged: Exchanged) -> None:
        judgement = exchanged.judgement
        changes: dict[str, object] = {
            "last_server_time": heard.answer.server_time,
            "limits": heard.answer.limits,
            "clock_skew_seconds": exchanged.skew.certain_seconds,
            "newest_header": judgement.newest_header,
            "newest_batch": judgement.newest_batch,
            "pull_refused": exchanged.pull_refused,
        }
        if not judgement.unknown:
            changes["last_contact_at"] = format_instant(heard.at)
        if judgement.new_keys:
            added = {name: key.hex() for name, key in judgement.new_keys.items()}
            changes["pinned_keys"] = profile.pinned_keys | added
        if judgement.lineage_changed:
            changes["lineage"] = judgement.lineage
        self._parts.journal.update_profile(**changes)

    def _record_waits(
        self, judgement: Judgement, pending: dict[str, QueuedCommand]
    ) -> None:
        for held in judgement.held:
            if held.code not in SERVER_WIDE:
                self._record_held(pending[held.command_id], held)
        for unknown in judgement.unknown:
            self.record_wait(pending[unknown.command_id], unknown.reason)
        # What waited for a command that is answered now, or for a page that came, waits no longer.
        answered = {found.command_id for found in judgement.outcomes}
        for command in pending.values():
            if command.blocked_by in answered and command.command_id not in answered:
                self._parts.journal.record_wait(command.command_id, None)

    def _record_held(self, command: QueuedCommand, held: HeldCommand) -> None:
        self.record_wait(command, held.code, held.after_seconds, held.blocked_by)

    def record_wait(
        self,
        command: QueuedCommand,
        code: str,
        at_least_seconds: float = 0.0,
        blocked_by: str | None = None,
    ) -> None:
        """Note that a command was tried and has no outcome, and when it is tried next; blocking."""
        parts = self._parts
        wait = delay_seconds(
            command.attempts + 1, parts.fraction(), parts.settings, at_least_seconds
        )
        parts.journal.record_wait(
            command.command_id,
            code,
            blocked_by=blocked_by,
            next_attempt_at=parts.instant_in(wait),
        )

    def _tell_once(self, code: str, detail: str) -> None:
        """Tell the worker, unless the very same is still to be read."""
        journal = self._parts.journal
        if all((notice.code, notice.detail) != (code, detail) for notice in journal.notices()):
            journal.add_notice(code, detail)


def known_profile(parts: SyncParts) -> Profile:
    """Return the profile; raises NotEnrolledError on a device that is bound to no server."""
    return known(parts.journal.profile())


def size_as_sent(command: QueuedCommand) -> int:
    """Return how many bytes a command takes in a request, before packing."""
    return len(encode(command.signed())) + 1
