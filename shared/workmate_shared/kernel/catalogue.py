"""The catalogue of codes: what happened, what is safe, what to do, who must act.

Every answer that is not plain success names one of these codes; a code is recorded as a conflict or
a rejection for ever, or it is never recorded at all. The reference page is generated from here.
HTTP statuses follow RFC 9110 and RFC 6585, problems RFC 9457.
"""

from enum import StrEnum

from msgspec import Struct


class Recorded(StrEnum):
    """How a code ends a command. RETRY and REFUSED leave no trace; the key stays free."""

    CONFLICT = "conflict"
    REJECTED = "rejected"
    RETRY = "retry"
    REFUSED = "refused"


class Entry(Struct, frozen=True):
    """One code: its HTTP status, how it is recorded, and four plain sentences."""

    code: str
    status: int
    recorded: Recorded
    title: str
    happened: str
    safe: str
    todo: str
    who: str


_KEPT = "Your work is kept as it is."
_NOTHING = "Nothing was recorded and nothing changed."
_EVIDENCE = "Your photos, answers and times are kept."
_ENTRIES: list[Entry] = []


def _add(
    recorded: Recorded,
    code: str,
    status: int,
    title: str,
    happened: str,
    todo: str,
    who: str,
    safe: str = _KEPT,
) -> None:
    _ENTRIES.append(Entry(code, status, recorded, title, happened, safe, todo, who))


def _conflict(code: str, title: str, happened: str, todo: str, who: str = "the actor") -> None:
    _add(Recorded.CONFLICT, code, 409, title, happened, todo, who, _EVIDENCE)


def _rejected(
    code: str, status: int, title: str, happened: str, todo: str, who: str = "the actor"
) -> None:
    _add(Recorded.REJECTED, code, status, title, happened, todo, who, _EVIDENCE)


def _retry(
    code: str, status: int, title: str, happened: str, todo: str, who: str = "nobody"
) -> None:
    _add(Recorded.RETRY, code, status, title, happened, todo, who)


def _refused(
    code: str, status: int, title: str, happened: str, todo: str, who: str = "the caller"
) -> None:
    _add(Recorded.REFUSED, code, status, title, happened, todo, who, _NOTHING)


_conflict(
    "version_conflict",
    "Somebody changed this",
    "It was changed after the version that the command builds on.",
    "Look at what changed, then do it again on the present state or set it aside.",
)
_conflict(
    "chain_broken",
    "An earlier step did not go through",
    "The command builds on an earlier one that ended in a conflict or a rejection.",
    "Settle the earlier step; the steps after it can be done again with it.",
)
_conflict(
    "external_id_conflict",
    "This job exists with other content",
    "A job with this source and external id was created with other content.",
    "Compare with the existing job and amend it if it must change.",
    "the integration",
)
_conflict(
    "principal_exists",
    "This principal exists with other content",
    "A principal with this id was created with other content.",
    "Choose another id, or change the existing principal.",
    "an administrator",
)
_conflict(
    "state_not_allowed",
    "Not possible in this state",
    "The command is not allowed in the state it met.",
    "Look at the present state and at what it allows.",
)
_conflict(
    "manifest_decided",
    "This proof has been decided",
    "The proof named was approved, rejected, submitted or dismissed before.",
    "Gather a new proof if one is needed.",
)
_conflict(
    "manifest_id_reused",
    "Two proofs under one id",
    "Another proof with the same manifest id and other content is known.",
    "Make the proof again under a new id.",
)
_conflict(
    "history_lost",
    "The server was restored to an earlier time",
    "The command builds on history that the restored server no longer has.",
    "Look at the job as it is now and do it again if it is still needed.",
)
_conflict(
    "credential_exists",
    "This credential exists",
    "A credential with this id was added before.",
    "Use the existing credential or choose another id.",
    "an administrator",
)

_rejected(
    "actor_deactivated",
    403,
    "This account is no longer active",
    "The account that acted has been deactivated.",
    "Ask the office; what was gathered has been handed over to it.",
    "an administrator",
)
_rejected(
    "device_revoked",
    403,
    "This device is no longer trusted",
    "The device that signed the command has been revoked.",
    "Ask the office; what was gathered has been handed over to it.",
    "an administrator",
)
_rejected(
    "role_not_allowed",
    403,
    "Not allowed for this role",
    "The role that acted may not issue this command.",
    "Ask somebody with the role, or an administrator for it.",
)
_rejected(
    "not_assignee",
    403,
    "Assigned to somebody else",
    "Only the assignee may do this, and the task is not assigned to this actor.",
    "Ask the dispatcher who holds the task now.",
)
_rejected(
    "override_invalid",
    403,
    "The override names the wrong person",
    "An override must name the present assignee, or the author of the proof taken over.",
    "Name the right person and give the reason again.",
    "a supervisor",
)
_rejected(
    "self_approval",
    403,
    "Nobody approves their own proof",
    "The proof was submitted by, or on behalf of, the one who would approve it.",
    "Ask another supervisor.",
    "another supervisor",
)
_rejected(
    "validation_not_automatic",
    403,
    "A person must approve this proof",
    "The policy of this task does not allow automatic approval.",
    "Review and decide the proof.",
    "a supervisor",
)
_rejected(
    "observation_not_allowed",
    403,
    "Not an observation of this role",
    "One of the readings is of a kind that only the system may record.",
    "Leave the reading out.",
)
_rejected(
    "worker_not_eligible",
    422,
    "The worker cannot take this task",
    "The worker is unknown, not active, or lacks a required skill.",
    "Choose another worker or amend the required skills.",
    "a dispatcher",
)
_rejected(
    "proof_policy_unmet",
    422,
    "The proof does not meet the policy",
    "The declared policy finds something missing or wrong in the proof.",
    "Look at the findings; reject the proof with a reason or wait for the missing files.",
    "a supervisor",
)
_rejected(
    "manifest_unknown",
    422,
    "No such proof on this task",
    "The manifest id names no proof of this task.",
    "Name a proof that the task has.",
)
_rejected(
    "policy_locked",
    422,
    "The proof policy can no longer change",
    "Work has begun, so the rules for its proof stay as they are.",
    "Release the task first, or leave the policy out.",
    "a dispatcher",
)
_rejected(
    "credential_unknown",
    422,
    "No such credential",
    "The principal has no credential with this id.",
    "Look the credential up and try again.",
    "an administrator",
)

_retry(
    "not_found",
    404,
    "Not found",
    "It does not exist, or it is not this caller's to see.",
    "Check the id; a device tries again by itself.",
)
_retry(
    "version_ahead",
    409,
    "Ahead of the server",
    "The command builds on a version that the server does not have.",
    "Pull first; the same command may be sent again.",
)
_retry(
    "blocked_by",
    409,
    "An earlier step has not arrived",
    "The command builds on one that the server has not seen yet.",
    "Send the earlier command; the same command may be sent again.",
)
_retry(
    "bytes_missing",
    409,
    "Files are still on their way",
    "Not all files named are held and verified yet.",
    "Upload them, then send the same command again.",
)
_retry(
    "disclosure_missing",
    409,
    "A value is missing",
    "A value that the signed command commits to did not come with it.",
    "Send the same command with its values.",
)
_retry(
    "unknown_schema",
    409,
    "The server is too old for this",
    "The server does not know this kind or version of command yet.",
    "Wait for the server to be updated; the same command may be sent again.",
    "the operator",
)
_retry(
    "overloaded",
    503,
    "The server is busy",
    "More work is waiting than the server takes.",
    "Send the same again after the time given.",
)
_retry(
    "database_away",
    503,
    "The server cannot reach its records",
    "The database did not answer.",
    "Send the same again after the time given.",
    "the operator",
)
_retry(
    "too_many",
    429,
    "Too many requests",
    "More requests came than this caller may make.",
    "Send the same again after the time given.",
)
_retry(
    "shutting_down",
    503,
    "The server is stopping",
    "The server finishes its work and takes no new one.",
    "Send the same again after the time given.",
)

_refused(
    "invalid_command",
    400,
    "Cannot be read",
    "The message cannot be decoded, or a field breaks its rule; the path says which.",
    "Correct the field and send again.",
)
_refused(
    "invalid_request",
    400,
    "Cannot be read",
    "A parameter, header or body of the request breaks its rule.",
    "Correct it and send again.",
)
_refused(
    "idempotency_key_missing",
    400,
    "No idempotency key",
    "The request changes something and carries no Idempotency-Key.",
    "Make a key, keep it with the request and send it with every try.",
)
_refused(
    "idempotency_key_mismatch",
    400,
    "Two idempotency keys",
    "The header and the body carry different keys.",
    "Send one key.",
)
_refused(
    "disclosure_mismatch",
    400,
    "A value does not open its commitment",
    "A value sent beside the command is not the one that was committed to.",
    "Send the value that was captured.",
)
_refused(
    "content_hash_mismatch",
    400,
    "The proof and its hash differ",
    "The content hash is not that of the manifest's bytes.",
    "Send the manifest bytes and hash that were made together.",
)
_refused(
    "bad_cursor",
    400,
    "Not a cursor of this server",
    "The cursor cannot be read.",
    "Start the list again without a cursor.",
)
_refused(
    "signature_invalid",
    400,
    "The signature does not verify",
    "The signed bytes, the key or the signature do not belong together.",
    "Send the bytes as they were signed.",
)
_refused(
    "unauthenticated",
    401,
    "Not signed in",
    "The request carries no credential that this server accepts now.",
    "Sign in again; what is queued stays queued.",
)
_refused(
    "tenant_mismatch",
    403,
    "Of another tenant",
    "The command names another tenant than the one it was sent to.",
    "Send it to its own server.",
)
_refused(
    "creation_not_allowed",
    403,
    "Not allowed to create this",
    "The role that asked may not create this.",
    "Ask somebody with the role.",
)
_refused(
    "access_not_allowed",
    403,
    "Not allowed to read this",
    "None of the caller's roles may read this.",
    "Ask somebody with the role, or an administrator for it.",
)
_refused(
    "location_purpose_refused",
    403,
    "No such purpose for positions",
    "The stated purpose is not one for which positions are shown.",
    "State a purpose that the tenant allows, or leave it out.",
)
_refused(
    "method_not_allowed",
    405,
    "Not a method of this address",
    "The address exists and does not know this method.",
    "Use a method that the Allow header lists.",
)
_refused(
    "cursor_expired",
    410,
    "The cursor has expired",
    "The server's history or the caller's view changed since the cursor was given.",
    "Start again without a cursor; what is queued stays queued.",
)
_refused(
    "too_large",
    413,
    "Too large",
    "The request or one item in it is larger than the limit.",
    "Send less at a time.",
)
_refused(
    "wrong_type",
    415,
    "Wrong type",
    "The content type or encoding is not one that this address takes.",
    "Send the type that the description names.",
)
_refused(
    "range_not_satisfiable",
    416,
    "No such range",
    "The range asked for lies outside the file.",
    "Ask for a range inside the file.",
)
_refused(
    "idempotency_key_reused",
    422,
    "The key was used for something else",
    "The same key came before with other content; that first command stands.",
    "Use a new key for a new command.",
)
_refused(
    "expected_version_required",
    428,
    "No expected version",
    "The command changes something that exists and does not say which version it builds on.",
    "Send If-Match with the version that was read.",
)
_refused(
    "protocol_too_old",
    426,
    "This program is too old",
    "The server no longer answers this version of the protocol.",
    "Update the program; what is queued can still be sent.",
    "the operator",
)
_refused(
    "re_enrol",
    401,
    "This device must be enrolled again",
    "Another copy of this device has been active.",
    "Enrol again; what is queued can still be sent.",
    "an administrator",
)
_refused(
    "upload_conflict",
    409,
    "The upload is elsewhere",
    "The offset sent is not the one that the server holds.",
    "Ask for the offset and go on from there.",
)
_refused(
    "hash_mismatch",
    460,
    "The file arrived damaged",
    "The bytes do not have the hash that was announced; they were discarded.",
    "Send the file again from the start.",
)
_refused(
    "upload_protocol",
    412,
    "Not a tus 1.0.0 request",
    "The Tus-Resumable header is missing or names another version.",
    "Use a tus 1.0.0 client.",
)
_refused(
    "enrolment_unknown",
    404,
    "No such enrolment",
    "No usable enrolment belongs to this code.",
    "Ask for a new code.",
    "an administrator",
)
_refused(
    "internal",
    500,
    "A fault in the server",
    "The server failed in a way that it did not expect.",
    "Send the same again; tell the operator if it stays.",
    "the operator",
)

CATALOGUE: dict[str, Entry] = {entry.code: entry for entry in _ENTRIES}
"""Every code, by code."""
