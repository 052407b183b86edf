"""Hand the jobs of a file in, and account for every row of it.

Two rows with one external id and the same content are one task; with other content the first row
counts and the later one is refused. When jobs can no longer be handed in, the rest of the file is
reported as `not_sent`: doing the same again goes on from there, because what was created before is
answered as unchanged.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from workmate_server.imports.convert import Converter, Job
from workmate_server.imports.reading import Record
from workmate_server.imports.report import Refusal, Report, RowError

NOT_SENT = "not_sent"
CONFLICT = "external_id_conflict"


class Answer(Struct, frozen=True):
    """What became of one job; `rule` and `detail` say why it was refused or not sent."""

    status: Literal["created", "unchanged", "refused", "not_sent"]
    rule: str = ""
    detail: str = ""


class Office(Protocol):
    """Whoever takes jobs: the engine of this process, or a server over HTTP."""

    @property
    def jobs_at_once(self) -> int:
        """How many jobs one call may carry."""
        ...

    async def hand_in(self, jobs: Sequence[Job]) -> list[Answer]:
        """Return what became of each job, in order.

        Answers `not_sent` once nothing more can be handed in; a job that is answered so may have
        been created nevertheless, and may be handed in again as it is.
        """
        ...


class _Row(Struct):
    """A row on its way: its job, and the answer once there is one."""

    row: int
    external_id: str | None
    job: Job | None = None
    same_as: "_Row | None" = None
    answer: Answer | None = None

    def settled(self) -> Answer:
        """Return the answer; a row that repeats another is unchanged if that one went through."""
        if self.same_as is not None:
            first = self.same_as.settled()
            created = first.status == "created"
            return Answer("unchanged") if created else first
        return self.answer or Answer("not_sent", NOT_SENT, "an earlier job could not be sent")


async def import_records(records: Sequence[Record], converter: Converter, office: Office) -> Report:
    """Hand in every record that is a job; return the report."""
    rows = _convert(records, converter)
    waiting = [row for row in rows if row.answer is None and row.same_as is None]
    for start in range(0, len(waiting), office.jobs_at_once):
        part = waiting[start : start + office.jobs_at_once]
        answers = await office.hand_in([row.job for row in part if row.job is not None])
        for row, answer in zip(part, answers, strict=True):
            row.answer = answer
        if any(answer.status == "not_sent" for answer in answers):
            break
    return _report(rows)


def _convert(records: Sequence[Record], converter: Converter) -> list[_Row]:
    rows: list[_Row] = []
    first: dict[tuple[str, str], _Row] = {}
    for record in records:
        row = _Row(record.row, converter.external_id(record))
        rows.append(row)
        try:
            job = converter.convert(record)
        except RowError as error:
            row.answer = Answer("refused", error.rule, error.detail)
            continue
        row.job = job
        earlier = first.setdefault((job.source, job.external_id), row)
        if earlier is row:
            continue
        if earlier.job is not None and earlier.job.body == job.body:
            row.same_as = earlier
        else:
            detail = f"row {earlier.row} has the same id and other content"
            row.answer = Answer("refused", CONFLICT, detail)
    return rows


def _report(rows: Sequence[_Row]) -> Report:
    ended = [(row, row.settled()) for row in rows]
    return Report(
        rows=len(rows),
        created=sum(answer.status == "created" for _, answer in ended),
        unchanged=sum(answer.status == "unchanged" for _, answer in ended),
        refused=tuple(
            Refusal(
                row=row.row,
                external_id=row.external_id,
                rule=answer.rule,
                detail=answer.detail,
            )
            for row, answer in ended
            if answer.status in ("refused", "not_sent")
        ),
        complete=all(answer.status != "not_sent" for _, answer in ended),
    )
