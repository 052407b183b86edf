"""Show a task to somebody: public facts with the opened values laid over them.

A value whose disclosure is gone, or that is not this reader's to see, is null and named in
`withheld`; it is never replaced by a guess.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from workmate_shared.tasks.commands import Window
from workmate_shared.tasks.manifest import ArticleVersion
from workmate_shared.tasks.task import Task
from workmate_shared.tasks.values import merge_personal

Opened = Callable[[str], Mapping[str, Any] | None]
"""Gives the opened value of a commitment, or None where it is gone or not to be seen."""


class TaskView(Struct, frozen=True, kw_only=True):
    """A task as its readers get it."""

    task_id: str
    source: str
    external_id: str
    state: str
    version: int
    changed_version: int
    assignee_id: str | None
    priority: int
    due_at: str | None
    window: Window | None
    required_skills: tuple[str, ...]
    pinned_articles: tuple[ArticleVersion, ...]
    proof_policy: Mapping[str, Any]
    policy_version: str
    current_manifest_id: str | None
    state_entered_at: str
    personal: Mapping[str, Any] | None
    position: Mapping[str, Any] | None
    withheld: tuple[str, ...]


class FormerView(Struct, frozen=True, kw_only=True):
    """What a former holder still sees: the state, who holds the task, and since when."""

    task_id: str
    state: str
    version: int
    assignee_id: str | None
    state_entered_at: str


def spell_out(value: Any) -> Any:
    """Return a struct as plain JSON with its defaults said; only what is null is left out.

    So a policy comes back as somebody wrote it, whether or not a field had its default.
    """
    if isinstance(value, tuple):
        return [spell_out(part) for part in value]
    if not isinstance(value, Struct):
        return value
    tag = value.__struct_config__
    named = {} if tag.tag_field is None else {tag.tag_field: tag.tag}
    for name in value.__struct_fields__:
        part = getattr(value, name)
        if part is not None:
            named[name] = spell_out(part)
    return named


def former_view(task: Task) -> FormerView:
    """Return the part of a task that somebody who once held it may see."""
    return FormerView(
        task_id=task.task_id,
        state=task.state,
        version=task.version,
        assignee_id=task.assignee_id,
        state_entered_at=task.state_entered_at,
    )


def project_task(task: Task, opened: Opened, *, with_position: bool = True) -> TaskView:
    """Return the task as shown to a reader for whom `opened` opens what he may see.

    `with_position` false withholds the position from a reader who stated no purpose for it.
    """
    withheld: list[str] = []
    values = [opened(commitment) for commitment in task.personal]
    personal = merge_personal([value for value in values if value is not None])
    if any(value is None for value in values):
        withheld.append("personal")
    position = opened(task.position) if task.position and with_position else None
    if task.position and position is None:
        withheld.append("position")
    return TaskView(
        task_id=task.task_id,
        source=task.source,
        external_id=task.external_id,
        state=task.state,
        version=task.version,
        changed_version=task.changed_version,
        assignee_id=task.assignee_id,
        priority=task.priority,
        due_at=task.due_at,
        window=task.window,
        required_skills=task.required_skills,
        pinned_articles=task.pinned_articles,
        proof_policy=spell_out(task.proof_policy),
        policy_version=task.policy_version,
        current_manifest_id=task.current_manifest_id,
        state_entered_at=task.state_entered_at,
        personal=personal or None,
        position=position,
        withheld=tuple(withheld),
    )
