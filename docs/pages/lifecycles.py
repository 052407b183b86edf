"""The pages of a lifecycle, and of who may do what, read from the transition tables.

A table's rows are all there is to know here; a lifecycle that is added to the registry gets its
page, its diagram and its part of the matrix without a change in this module.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from pages.markdown import bullets, code, codes, linked_codes, page, table
from workmate_shared.kernel.table import Relation, Repeat, Role, Row, Table

ALMOST_ALL = 2
"""A set of states that lacks at most so many is named by what it lacks."""


def lifecycle_page(lifecycle: Table) -> str:
    """Return the page of one lifecycle: states, diagram, every command, repeats and overrides."""
    name = lifecycle.aggregate
    return page(
        f"Lifecycle of a {name}",
        f"The transition table of a {name}: who may issue which command, from which states, and "
        "what follows. Devices predict by it and the server commits by it. The fields of each "
        "command are in [commands and events](messages.md), the roles side by side in "
        "[who may do what](authorisation.md).",
        "## States",
        ", ".join(code(state) for state in lifecycle.states) + ".",
        _diagram(lifecycle),
        "## Commands",
        table(
            ("Command", "Who", "Allowed from", "Result", "Event", "Expected version", "Rules"),
            (_row_cells(row, lifecycle) for row in lifecycle.rows),
        ),
        _annotations(lifecycle.rows),
        "## Semantic repeats",
        _repeats(lifecycle.rows),
        "## Overrides",
        _overrides(lifecycle.rows),
    )


def authorisation_page(lifecycles: Iterable[Table]) -> str:
    """Return the matrix of role and command over all tables."""
    tables = tuple(lifecycles)
    used = {role for lifecycle in tables for row in lifecycle.rows for role in row.roles}
    idle = [role for role in Role if role not in used]
    parts: list[str] = []
    for lifecycle in tables:
        parts += [
            f"## Commands on a {lifecycle.aggregate}",
            table(
                ("Command", *(role.value for role in Role), "Besides the role"),
                (_matrix_cells(row) for row in lifecycle.rows),
            ),
        ]
    return page(
        "Who may do what",
        "Read from the roles of the transition tables; nothing else decides it. **yes**: the role "
        "may issue the command. **override**: it may do so on behalf of the assignee, naming him "
        "and giving a reason. An empty cell is "
        + linked_codes("role_not_allowed, or creation_not_allowed for a command that creates."),
        "An actor claims one role with each command and must hold it when the command is decided. "
        "A deactivated actor may do nothing in any role. What an actor may not see is answered "
        + linked_codes("not_found before the role is looked at."),
        *parts,
        f"No command is open to {codes(idle)}." if idle else "",
    )


def _diagram(lifecycle: Table) -> str:
    arrows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in lifecycle.rows:
        if row.creates:
            arrows["[*]", row.result or lifecycle.states[0]].append(row.command)
        elif row.result is not None:
            for state in _in_order(row.allowed_from, lifecycle):
                arrows[state, row.result].append(row.command)
    left = {before for before, after in arrows if before != after}
    lines = [f"{a} --> {b}: {', '.join(names)}" for (a, b), names in arrows.items()]
    lines += [f"{state} --> [*]" for state in lifecycle.states if state not in left]
    return "\n".join(["```mermaid", "stateDiagram-v2", *(f"    {line}" for line in lines), "```"])


def _row_cells(row: Row, lifecycle: Table) -> tuple[str, ...]:
    return (
        f"[`{row.command}`](messages.md#{row.command})",
        _who(row),
        "(new)" if row.creates else _states(row.allowed_from, lifecycle),
        _result(row),
        f"[`{row.event}`](messages.md#{row.event.replace('.', '')})",
        _expected_version(row),
        linked_codes(row.note),
    )


def _who(row: Row) -> str:
    roles = ", ".join(sorted(role.value for role in row.roles))
    return roles if row.relation is Relation.ANYONE else f"{roles} ({row.relation.value})"


def _states(states: Collection[str], lifecycle: Table) -> str:
    lacking = [state for state in lifecycle.states if state not in states]
    if not lacking:
        return "any"
    if len(lacking) <= ALMOST_ALL and len(states) > len(lacking):
        return f"any but {codes(lacking)}"
    return codes(_in_order(states, lifecycle))


def _in_order(states: Collection[str], lifecycle: Table) -> list[str]:
    return [state for state in lifecycle.states if state in states]


def _result(row: Row) -> str:
    if row.annotates:
        return "annotation"
    return "same state" if row.result is None else code(row.result)


def _expected_version(row: Row) -> str:
    if row.creates or row.annotates:
        return "none"
    return "required" if row.expects_version else "optional"


def _annotations(rows: Iterable[Row]) -> str:
    names = [row.command for row in rows if row.annotates]
    if not names:
        return ""
    return (
        f"An **annotation** ({codes(names)}) says something and moves nothing: it needs no "
        "expected version, and it makes no other command stale."
    )


def _repeats(rows: Iterable[Row]) -> str:
    cells = [
        (code(row.command), row.repeat.value) for row in rows if row.repeat is not Repeat.NEVER
    ]
    if not cells:
        return "None."
    return (
        "A command with a new key whose effect is already there is answered `unchanged`: only the "
        "outcome is written, no event and no version. (The same key with the same content gets "
        "its first answer again, whatever the command.)\n\n"
        + table(("Command", "Unchanged when"), cells)
    )


def _overrides(rows: Iterable[Row]) -> str:
    names = [row.command for row in rows if row.overridable]
    if not names:
        return "No command of this lifecycle can be issued on behalf of somebody else."
    return (
        "An active supervisor, and nobody else, may issue these on behalf of the assignee, with "
        "`override` naming him and a reason in the personal value; the event records both:\n\n"
        + bullets(code(name) for name in names)
    )


def _matrix_cells(row: Row) -> tuple[str, ...]:
    return (
        f"[`{row.command}`](messages.md#{row.command})",
        *(_matrix_cell(row, role) for role in Role),
        "" if row.relation is Relation.ANYONE else row.relation.value,
    )


def _matrix_cell(row: Row, role: Role) -> str:
    if role in row.roles:
        return "yes"
    return "override" if row.overridable and role is Role.SUPERVISOR else ""
