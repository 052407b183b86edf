"""The transition table as a value: one row per command of an aggregate.

`decide`, the authorisation matrix, the schemas, the generated documentation and a device's list of
possible actions all read these rows; no rule that a row states is written anywhere else.
"""

from enum import StrEnum

from msgspec import Struct


class Role(StrEnum):
    """What a principal may act as; the tables say what each role may do."""

    INTEGRATION = "integration"
    DISPATCHER = "dispatcher"
    WORKER = "worker"
    SUPERVISOR = "supervisor"
    EDITOR = "editor"
    REVIEWER = "reviewer"
    BOARD = "board"
    AUDITOR = "auditor"
    ADMIN = "admin"
    SYSTEM = "system"


class Relation(StrEnum):
    """What the actor must be to the aggregate besides having the role."""

    ANYONE = "anyone"
    ASSIGNEE = "assignee"
    HOLDER = "present or former holder"


class Repeat(StrEnum):
    """When a command with a new key is answered `unchanged` because its effect is already there."""

    NEVER = "never"
    BEEN_THERE = "the assignee has already been in the resulting state"
    SAME_MANIFEST = "the same manifest is already there and undecided"
    SAME_DECISION = "this actor has already decided this manifest in the same way"
    SAME_REVOCATION = "the credential is already revoked in the same way"
    SAME_CREATION = "the aggregate exists with the same content"


class Row(Struct, frozen=True, kw_only=True):
    """One command: who may issue it, from which states, what results and what it is called.

    `result` is None where the state stays as it is; `allowed_from` is empty for a creation. Where
    `expects_version` is false a command may leave its expected version out, as annotations do.
    """

    command: str
    event: str
    roles: frozenset[Role]
    allowed_from: frozenset[str]
    result: str | None = None
    relation: Relation = Relation.ANYONE
    repeat: Repeat = Repeat.NEVER
    creates: bool = False
    annotates: bool = False
    expects_version: bool = True
    note: str = ""

    @property
    def overridable(self) -> bool:
        """Whether an active supervisor may issue it on behalf of the assignee."""
        return self.relation is Relation.ASSIGNEE


class Table(Struct, frozen=True):
    """All rows of one aggregate kind, its states in order and its name on the wire."""

    aggregate: str
    states: tuple[str, ...]
    rows: tuple[Row, ...]

    def row(self, command: str) -> Row:
        """Return the row of a command; raises KeyError for a name that the table lacks."""
        for row in self.rows:
            if row.command == command:
                return row
        raise KeyError(command)

    def annotation_events(self) -> frozenset[str]:
        """Return the wire names of the events that move nothing."""
        return frozenset(row.event for row in self.rows if row.annotates)
