"""How an import ends: every row as a task or as a refusal, and none of them twice or not at all."""

from msgspec import Struct


class Refusal(Struct, frozen=True, kw_only=True):
    """A row that became no task, and the rule that it breaks.

    `row` counts as a spreadsheet does: the header is row 1. In a JSON file the first job is row 1.
    `rule` is a name from the reference page of mappings, or a code of the server's catalogue.
    """

    row: int
    external_id: str | None
    rule: str
    detail: str


class Report(Struct, frozen=True, kw_only=True):
    """What became of a file: `rows` is `created` + `unchanged` + the number of refusals.

    It is `complete` unless jobs could not be handed in, which are among the refusals.
    """

    rows: int
    created: int
    unchanged: int
    refused: tuple[Refusal, ...] = ()
    complete: bool = True


class RowError(Exception):
    """A row breaks a rule; the one who reads the row makes the refusal of it."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail
