"""Render an outcome as one plain sentence from its code and public inputs.

The same function speaks on the device, in the API and in tests; it reads nothing but what the
outcome stores, so it says the same years later.
"""

from collections.abc import Mapping
from typing import Any

from workmate_shared.kernel.catalogue import CATALOGUE

_SENTENCES: dict[str, str] = {
    "version_conflict": (
        "It builds on version {expected_version}, but version {changed_version} changed it; "
        "it is {state} now."
    ),
    "chain_broken": "It builds on {after}, which ended as {after_outcome}.",
    "external_id_conflict": (
        "Job {external_id} of {source} exists with other content as {aggregate_id}."
    ),
    "principal_exists": "Principal {aggregate_id} exists with other content.",
    "state_not_allowed": "{command} is not allowed in state {state}, only in {allowed}.",
    "manifest_decided": "Proof {manifest_id} is {manifest_status} already.",
    "manifest_id_reused": "Proof {manifest_id} is known with other content.",
    "history_lost": (
        "It builds on version {expected_version} of an earlier life of the server's records; "
        "version {version} is what remains."
    ),
    "actor_deactivated": "{actor} is no longer active.",
    "device_revoked": "Device {device_id} is no longer trusted.",
    "role_not_allowed": "Role {role} may not {command}.",
    "not_assignee": "The task is not assigned to {actor}.",
    "override_invalid": "{on_behalf_of} is not the one on whose behalf this may be done.",
    "self_approval": "{actor} submitted proof {manifest_id}, or it was submitted on their behalf.",
    "validation_not_automatic": "The policy wants a supervisor to decide proof {manifest_id}.",
    "observation_not_allowed": "Role {role} may not record an observation of kind {kind}.",
    "worker_not_eligible": "{worker_id} cannot take the task: {reason}.",
    "proof_policy_unmet": "Proof {manifest_id} does not meet the policy: {findings}.",
    "manifest_unknown": "The task has no proof {manifest_id}.",
    "policy_locked": "The proof policy cannot change in state {state}.",
    "credential_exists": "Credential {credential_id} exists.",
    "credential_unknown": "There is no credential {credential_id}.",
    "version_ahead": "It builds on version {expected_version}; the server has {version}.",
    "blocked_by": "It waits for {after}, which the server has not seen.",
    "bytes_missing": "These files are still on their way: {hashes}.",
}


class _Words(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "(not stated)"


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return " ".join(_word(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        return ", ".join(_word(part) for part in value)
    return str(value)


def explain(status: str, code: str | None, details: Mapping[str, Any]) -> str:
    """Return one sentence for an outcome.

    `status` is committed, unchanged, conflict, rejected or retry; `details` are the public inputs
    that the outcome stores. An unknown code gives its name: an old program meets a new server.
    """
    if status == "committed":
        events = _word(details.get("events", ())) or "nothing"
        return f"Done: {events}, now at version {details.get('version', '(not stated)')}."
    if status == "unchanged":
        return "Already so: the effect was there before, nothing was done twice."
    if code is None or code not in CATALOGUE:
        return f"The server answered {code or status}."
    sentence = _SENTENCES.get(code)
    if sentence is None:
        return CATALOGUE[code].happened
    return sentence.format_map(_Words({key: _word(value) for key, value in details.items()}))
