"""Which events wait in the outbox for which kind of subscription.

Webhooks get every event. A rule of the server's own gets those that it acts on: for any other a row
would be written, claimed and settled only to find that there is nothing to do.
"""

from collections.abc import Mapping

AUTOMATIC_APPROVAL_KIND = "rule:automatic_approval"

_ACTED_ON: Mapping[str, frozenset[str]] = {
    AUTOMATIC_APPROVAL_KIND: frozenset({"task.proof_submitted", "evidence.stored"}),
}


def gets(kind: str, event_type: str) -> bool:
    """Whether subscriptions of a kind get events of this wire name."""
    acted_on = _ACTED_ON.get(kind)
    return acted_on is None or event_type in acted_on
