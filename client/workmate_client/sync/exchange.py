"""One round trip of a sync: build the request, send it, judge the answer, record what is proven.

What goes out are the bytes that were signed, the same at every try. What comes back changes nothing
unless `verify` believes it: the page and its cursor are stored in one transaction of the replica,
outcomes in one of the journal. A void cursor starts a new snapshot and never touches the queue.
"""

from collections.abc import Sequence

from msgspec import Struct

from workmate_client.journal.profile_store import known
from workmate_client.journal.rows import Profile, QueuedCommand
from workmate_client.replica.store import PageDoesNotJoinError
from workmate_client.sync.backoff import LINK_UP, Link, asked_to_wait, delay_seconds
from workmate_client.sync.failures import UnreadableAnswerError
from workmate_client.sync.parts import SyncParts
from workmate_client.sync.proven import Pinned
from workmate_client.sync.recording import SERVER_WIDE, Heard, Recorder, facts_of
from workmate_client.sync.skew import SkewEstimate, estimate_skew
from workmate_client.sync.verify import (
    Judgement,
    RecordedStatus,
    Sent,
    VerifiedOutcome,
    judge,
    judge_alone,
)
from workmate_client.sync.verify_pull import VOID_CURSOR_CODES, PullVerdict
from workmate_shared.kernel.instants import format_instant, parse_instant
from workmate_shared.wire.codec import encode
from workmate_shared.wire.messages import (
    PROTOCOL,
    DeviceReport,
    Outcome,
    SyncAnswer,
    SyncRequest,
)

REQUEST_OVERHEAD_BYTES = 8 * 1024
"""What a request takes beside its commands, generously: header, cursor, report, punctuation."""


class PullResult(Struct, frozen=True, kw_only=True):
    """How a pull went: changes stored, whether there is more, or why there was none."""

    pulled: int = 0
    more: bool = False
    refused: str | None = None
    fault: str | None = None


class Exchanged(Struct, frozen=True, kw_only=True):
    """What a round trip did: the judgement, the pull, the link after it, and the clocks."""

    judgement: Judgement
    pull: PullResult
    link: Link
    skew: SkewEstimate


class Exchange:
    """Does round trips for one profile."""

    def __init__(self, parts: SyncParts, recorder: Recorder) -> None:
        self._parts = parts
        self._recorder = recorder

    async def round_trip(
        self,
        token: str,
        commands: Sequence[QueuedCommand],
        pending: Sequence[QueuedCommand],
        upload_bytes_left: int,
    ) -> Exchanged:
        """Send commands and pull one page; everything proven is recorded when this returns.

        `pending` is the whole queue. Raises TransportError, after which nothing is known of the
        commands and nothing changed; StoreError and StorageError when the device cannot record.
        """
        parts = self._parts
        profile, request = await parts.run_blocking(
            self._request, commands, pending, upload_bytes_left
        )
        begun = parts.clock.monotonic()
        answer = await parts.transport.sync(token, request)
        _check_time(answer)
        heard = Heard(answer, parts.clock.now(), parts.clock.monotonic() - begun)
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
        profile = known(parts.journal.profile())
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
        heard: Heard,
    ) -> Exchanged:
        """Judge an answer and record it; blocking."""
        answer = heard.answer
        judgement = judge(
            answer, [_sent(command) for command in commands], cursor, _pinned(profile, pending)
        )
        skew = estimate_skew(heard.at, heard.round_trip_seconds, parse_instant(answer.server_time))
        # The page first: a job never looks undone between its outcome and its change.
        pull = self._take_pull(answer, judgement.pull, cursor)
        facts = facts_of(heard, skew.certain_seconds, judgement) | {"pull_refused": pull.refused}
        changed = {change.id for change in judgement.pull.changes}
        self._recorder.record(profile, judgement, facts, pending, changed)
        link = self._link_after(answer, judgement)
        return Exchanged(judgement=judgement, pull=pull, link=link, skew=skew)

    async def repeat_enrolment(self, command: QueuedCommand) -> RecordedStatus | None:
        """Send an `enrol` again, as after a server's restore; returns how it ended, if proven.

        Raises TransportError, also where the server refuses it.
        """
        outcome = await self._parts.transport.enrol(command.signed())
        return await self._parts.run_blocking(self._take_enrolment, command, outcome)

    def _take_enrolment(self, command: QueuedCommand, outcome: Outcome) -> RecordedStatus | None:
        profile = known(self._parts.journal.profile())
        verdict = judge_alone(outcome, _sent(command), _pinned(profile, ()))
        if isinstance(verdict, VerifiedOutcome):
            self._parts.journal.record_outcomes([verdict.outcome])
            return verdict.status
        self._recorder.record_verdict(command, verdict)
        return None

    def _take_pull(
        self, answer: SyncAnswer, verdict: PullVerdict, cursor: str | None
    ) -> PullResult:
        replica = self._parts.replica
        if verdict.cursor is not None:
            try:
                return PullResult(pulled=replica.apply_page(answer.pull), more=verdict.more)
            except PageDoesNotJoinError as error:
                return PullResult(fault=error.code)
        # Refused again without any cursor, it is refused for good.
        if verdict.refused in VOID_CURSOR_CODES and cursor is not None:
            replica.start_snapshot()
            return PullResult(more=True)
        return PullResult(refused=verdict.refused, fault=verdict.fault)

    def _link_after(self, answer: SyncAnswer, judgement: Judgement) -> Link:
        """Return the link: the server may ask for a pause, or decide nothing at all."""
        parts = self._parts
        busy = [held for held in judgement.held if held.code in SERVER_WIDE]
        asked = max([answer.backoff, *(held.after_seconds for held in busy)])
        now = parts.now_seconds()
        if busy:
            wait = delay_seconds(1, parts.fraction(), parts.settings, asked)
            return Link(1, busy[0].code, now + wait)
        return asked_to_wait(asked, now, parts.settings) if asked > 0 else LINK_UP


def _check_time(answer: SyncAnswer) -> None:
    try:
        parse_instant(answer.server_time)
    except ValueError as error:
        raise UnreadableAnswerError(f"server_time: {error}") from error


def size_as_sent(command: QueuedCommand) -> int:
    """Return how many bytes a command takes in a request, before packing."""
    return len(encode(command.signed())) + 1


def _sent(command: QueuedCommand) -> Sent:
    return Sent(
        command_id=command.command_id,
        aggregate_id=command.aggregate_id,
        principal_id=command.command().actor.id,
        payload=command.parts.payload,
    )


def _pinned(profile: Profile, pending: Sequence[QueuedCommand]) -> Pinned:
    return Pinned(
        tenant_id=profile.tenant_id,
        principal_id=profile.worker_id,
        device_id=profile.device_id,
        lineage=profile.lineage,
        keys=profile.trusted_keys(),
        newest_header=profile.newest_header,
        past_lineages=frozenset(command.lineage for command in pending) - {profile.lineage},
    )
