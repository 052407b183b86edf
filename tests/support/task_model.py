"""A small model of the field task, written from the rules and not from the transition table.

It knows a task as a few plain values and says how a command must end: with which status and code,
and with which event. Tests compare the real decisions with it, step by step.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

OFFICE = {"integration", "dispatcher", "supervisor", "auditor", "system"}
CLOSED = {"completed", "cancelled"}
OPEN = {"unassigned", "assigned", "accepted", "en_route", "in_progress", "proof_pending"}


class Rule(NamedTuple):
    """Who, from where, to where; `mine` means the assignee alone, `aside` an annotation."""

    roles: set[str]
    states: set[str]
    leads_to: str
    event: str
    mine: bool = False
    aside: bool = False


ANY = OPEN | CLOSED
RULES = {
    "assign": Rule({"dispatcher"}, {"unassigned", "assigned"}, "assigned", "task.assigned"),
    "accept": Rule({"worker"}, {"assigned"}, "accepted", "task.accepted", mine=True),
    "decline": Rule(
        {"worker"},
        {"assigned", "accepted", "en_route", "in_progress"},
        "unassigned",
        "task.declined",
        mine=True,
    ),
    "start_travel": Rule({"worker"}, {"accepted"}, "en_route", "task.en_route", mine=True),
    "arrive": Rule({"worker"}, {"en_route"}, "in_progress", "task.started", mine=True),
    "submit_proof": Rule(
        {"worker"}, {"in_progress"}, "proof_pending", "task.proof_submitted", mine=True
    ),
    "approve_proof": Rule(
        {"supervisor", "system"}, {"proof_pending"}, "completed", "task.completed"
    ),
    "reject_proof": Rule({"supervisor"}, {"proof_pending"}, "in_progress", "task.proof_rejected"),
    "release": Rule(
        {"dispatcher"}, {"accepted", "en_route", "in_progress"}, "unassigned", "task.released"
    ),
    "amend": Rule({"dispatcher", "integration"}, OPEN, "", "task.amended"),
    "cancel": Rule(
        {"dispatcher", "supervisor", "integration"}, OPEN, "cancelled", "task.cancelled"
    ),
    "observe": Rule(
        {"worker", "dispatcher", "supervisor", "system"}, ANY, "", "task.observed", aside=True
    ),
    "store_evidence": Rule({"worker"}, ANY, "", "evidence.stored", aside=True),
    "hand_over": Rule({"worker"}, ANY, "", "evidence.handed_over", aside=True),
    "dismiss_handover": Rule({"supervisor"}, ANY, "", "evidence.dismissed", aside=True),
}
STEPS = {"accept", "start_travel", "arrive"}
LOST_IN_ANY_CASE = {
    "not_assignee",
    "state_not_allowed",
    "history_lost",
    "actor_deactivated",
    "device_revoked",
}


@dataclass
class Proof:
    """A manifest that the model's task knows."""

    content: str
    status: str
    author: str
    submitted_by: str = ""
    for_whom: str = ""
    decided_by: str = ""


@dataclass
class Deed:
    """One command as the model sees it; `content` is that of the manifest carried, if any."""

    kind: str
    who: str
    role: str
    key: str
    expected: int = 0
    after: str | None = None
    for_whom: str | None = None
    worker: str = ""
    manifest: str = ""
    content: str | None = None
    changes_policy: bool = False
    files_held: bool = True
    able: str = ""
    old_lineage: bool = False


class End(NamedTuple):
    """How a deed ends: status, code, and the event or annotation that it writes."""

    status: str
    code: str | None = None
    event: str | None = None


@dataclass
class ModelTask:
    """The task as the model knows it, with what each version was and how each deed ended."""

    state: str = "unassigned"
    version: int = 1
    assignee: str = ""
    holders: set[str] = field(default_factory=set)
    been: set[str] = field(default_factory=set)
    proofs: dict[str, Proof] = field(default_factory=dict)
    pending: str = ""
    policy_changed: bool = False
    writers: dict[int, tuple[str, str] | None] = field(default_factory=lambda: {1: ("", "")})
    ends: dict[tuple[str, str], End] = field(default_factory=dict)
    befores: dict[tuple[str, str], str | None] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """The last version that was no annotation; those have a writer here."""
        return max(version for version, writer in self.writers.items() if writer is not None)

    def expect(self, deed: Deed) -> End:
        """Say how the deed must end, and let it happen."""
        code = self._code(deed)
        rule = RULES[deed.kind]
        if code in {"not_found", "version_ahead", "blocked_by", "bytes_missing"}:
            return End("retry", code)
        if code == "unchanged":
            end = End("unchanged")
        elif code:
            kept = self._keep(deed, code)
            if kept == "wait":
                return End("retry", "bytes_missing")
            end = End(_kind_of(code), code, kept or None)
        else:
            self._happen(deed, rule)
            end = End("committed", None, rule.event)
        if end.event:
            self.version += 1
            moves = not code and not rule.aside
            self.writers[self.version] = (deed.who, deed.key) if moves else None
        self.ends[deed.who, deed.key] = end
        self.befores[deed.who, deed.key] = deed.after
        return end

    def _code(self, deed: Deed) -> str:
        rule = RULES[deed.kind]
        if deed.who not in self.holders and deed.role not in OFFICE:
            return "not_found"
        if deed.able:
            return deed.able
        wanted = rule.roles if deed.for_whom is None else {"supervisor"} if rule.mine else set()
        if deed.role not in wanted:
            return "role_not_allowed"
        if self._is_done(deed, rule):
            return "unchanged"
        return self._chain(deed) or self._stale(deed, rule) or self._rest(deed, rule)

    def _is_done(self, deed: Deed, rule: Rule) -> bool:
        proof = self.proofs.get(deed.manifest)
        same = proof is not None and deed.content in (None, proof.content)
        if deed.kind in STEPS:
            return deed.who == self.assignee and rule.leads_to in self.been
        if proof is None or not same:
            return False
        if deed.kind == "submit_proof":
            waits = self.state == "proof_pending" and self.pending == deed.manifest
            return deed.who == self.assignee and waits
        if deed.kind == "hand_over":
            return proof.author == deed.who and proof.status in {"handed_over", "submitted"}
        done = {"approve_proof": "approved", "reject_proof": "rejected"}.get(deed.kind)
        return proof.status == done and proof.decided_by == deed.who

    def _chain(self, deed: Deed) -> str:
        if deed.after is None:
            return ""
        end = self.ends.get((deed.who, deed.after))
        if end is None:
            return "blocked_by"
        return "" if end.status in {"committed", "unchanged"} else "chain_broken"

    def _stale(self, deed: Deed, rule: Rule) -> str:
        if rule.aside:
            return ""
        if deed.expected > self.version:
            return "history_lost" if deed.old_lineage else "version_ahead"
        own: set[str | None] = set()
        step = deed.after
        while step is not None:
            own.add(step)
            step = self.befores.get((deed.who, step))
        for version in range(deed.expected + 1, self.version + 1):
            writer = self.writers[version]
            if writer is not None and not (writer[0] == deed.who and writer[1] in own):
                return "version_conflict"
        return ""

    def _rest(self, deed: Deed, rule: Rule) -> str:
        proof = self.proofs.get(deed.manifest)
        if rule.mine:
            takes_over = deed.kind == "submit_proof" and deed.content is None
            if deed.for_whom is None and deed.who != self.assignee:
                return "not_assignee"
            if deed.for_whom is not None:
                right = proof.author if takes_over and proof else self.assignee
                unknown = takes_over and proof is None
                if not unknown and deed.for_whom != right:
                    return "override_invalid"
        if self.state not in rule.states:
            return "state_not_allowed"
        if deed.kind == "amend" and deed.changes_policy:
            return "policy_locked" if self.state in {"in_progress", "proof_pending"} else ""
        if deed.kind == "store_evidence":
            return "" if deed.files_held else "bytes_missing"
        return self._proof_rule(deed, proof)

    def _proof_rule(self, deed: Deed, proof: Proof | None) -> str:
        needs = {
            "approve_proof": "submitted",
            "reject_proof": "submitted",
            "dismiss_handover": "handed_over",
            "submit_proof": "handed_over",
            "hand_over": "",
        }.get(deed.kind)
        if needs is None:
            return ""
        if proof is None:
            return "manifest_unknown" if deed.content is None else ""
        if deed.content not in (None, proof.content):
            return "manifest_id_reused"
        if proof.status != needs:
            return "manifest_decided"
        if deed.kind != "approve_proof":
            return ""
        if deed.who in {proof.author, proof.submitted_by, proof.for_whom}:
            return "self_approval"
        if deed.role == "system":
            return "validation_not_automatic"
        return "" if deed.files_held and not self.policy_changed else "proof_policy_unmet"

    def _keep(self, deed: Deed, code: str) -> str:
        """Return the annotation that saves what a refused deed carried."""
        unable = code in {"actor_deactivated", "device_revoked"}
        if deed.who not in self.holders or deed.role != "worker":
            return ""
        if deed.kind == "store_evidence" and unable:
            return "evidence.stored" if deed.files_held else "wait"
        if deed.content is None or deed.manifest in self.proofs:
            return ""
        holds = deed.who == self.assignee and self.state in OPEN
        lost = code in LOST_IN_ANY_CASE or (
            code in {"version_conflict", "chain_broken"} and not holds
        )
        if (deed.kind == "submit_proof" and lost) or (deed.kind == "hand_over" and unable):
            self.proofs[deed.manifest] = Proof(deed.content, "handed_over", deed.who)
            return "evidence.handed_over"
        return ""

    def _happen(self, deed: Deed, rule: Rule) -> None:
        if rule.leads_to:
            self.state = rule.leads_to
            self.been.add(rule.leads_to)
        match deed.kind:
            case "assign":
                self.assignee, self.been = deed.worker, {"assigned"}
                self.holders.add(deed.worker)
            case "decline" | "release":
                self.assignee, self.been = "", set()
            case "amend" if deed.changes_policy:
                self.policy_changed = not self.policy_changed
            case "hand_over":
                self.proofs[deed.manifest] = Proof(deed.content or "", "handed_over", deed.who)
            case "submit_proof":
                author = deed.for_whom or deed.who
                new = Proof(deed.content or "", "submitted", author)
                proof = self.proofs.setdefault(deed.manifest, new)
                proof.status, proof.submitted_by = "submitted", deed.who
                proof.for_whom = deed.for_whom or ""
                self.pending = deed.manifest
            case "approve_proof" | "reject_proof" | "dismiss_handover":
                proof = self.proofs[deed.manifest]
                proof.decided_by = deed.who
                proof.status = {"a": "approved", "r": "rejected", "d": "dismissed"}[deed.kind[0]]


def _kind_of(code: str) -> str:
    conflicts = {
        "version_conflict",
        "chain_broken",
        "state_not_allowed",
        "manifest_decided",
        "manifest_id_reused",
        "history_lost",
    }
    return "conflict" if code in conflicts else "rejected"
