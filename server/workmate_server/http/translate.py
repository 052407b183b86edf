"""Turn a request of the JSON API into a command: what is stored is exactly what was checked.

The server writes the command that a device would have signed: public fields as they came, personal
values and positions as commitments under fresh salts. The fingerprint is taken of the request as it
came, so that a repeat is known however it is salted.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from workmate_server.engine.model import Submission
from workmate_server.http.bodies import OVERRIDE_REASON, body_type, own_fields
from workmate_server.http.problems import ProblemError
from workmate_server.http.services import Services
from workmate_server.identity.authenticate import Caller
from workmate_shared.kernel.command import COMMAND_SCHEMA, Command
from workmate_shared.kernel.table import Row
from workmate_shared.tasks.policy import Retention
from workmate_shared.wire.codec import decode, encode
from workmate_shared.wire.commitment import SALT_BYTES, Disclosure, make_disclosure
from workmate_shared.wire.fingerprint import request_fingerprint
from workmate_shared.wire.intake import Message, check_message, decode_command

_UNPRINTED = ("occurred_at", "idempotency_key")


class Asked(Struct, frozen=True, kw_only=True):
    """One request: who asks for which command on what, under which key, with which body.

    `body` is the decoded mapping as it came.
    """

    caller: Caller
    row: Row
    aggregate_id: str
    key: str
    expected_version: int | None
    body: Mapping[str, Any]


def read_task_body(services: Services, command: str, data: bytes) -> dict[str, Any]:
    """Return a body as plain JSON after checking that it can ask for the command.

    Raises MalformedError with the path of the fault.
    """
    depth = services.settings.json_depth_max
    body: dict[str, Any] = decode(data, dict[str, Any], max_bytes=len(data), max_depth=depth)
    normal = encode(_with_upper_pin(body))
    decode(normal, body_type(command), max_bytes=len(normal), max_depth=depth)
    return body


def make_submission(
    services: Services, asked: Asked, filled_in: Mapping[str, Any] | None = None
) -> Submission:
    """Return the submission that a request asks for.

    `filled_in` are public fields that the server adds without their counting in the fingerprint.
    Raises MessageError, or ProblemError for a caller without any role.
    """
    body = _with_upper_pin(asked.body)
    personal = dict(body.get("personal") or {})
    override = body.get("override")
    if override is not None:
        personal[OVERRIDE_REASON] = override["personal"]["reason"]
    given: dict[str, Disclosure] = {}
    committed: dict[str, str] = {}
    for name, value in (("personal", personal or None), ("position", body.get("position"))):
        if value is not None:
            salt = services.entropy.token_bytes(SALT_BYTES)
            committed[name], disclosure = make_disclosure(value, salt, getattr(Retention(), name))
            given[committed[name]] = disclosure
    for commitment, disclosure in body.get("disclosures", {}).items():
        given[commitment] = msgspec.convert(disclosure, Disclosure)
    public = dict(filled_in or {})
    public |= {name: body[name] for name in own_fields(asked.row.command) if name in body}
    if override is not None:
        public["override"] = {"on_behalf_of": override["on_behalf_of"]}
    occurred_at = body.get("occurred_at") or services.now()
    return submission_of(
        services,
        asked,
        public | committed | {"occurred_at": occurred_at},
        given,
    )


def submission_of(
    services: Services,
    asked: Asked,
    public: Mapping[str, Any],
    given: Mapping[str, Disclosure],
) -> Submission:
    """Return the submission of a command with these public fields and these disclosures.

    Only what the message commits to is kept of `given`. Raises MessageError, or ProblemError for a
    caller without any role.
    """
    caller, row = asked.caller, asked.row
    role = caller.acting_role(row, override="override" in public)
    if role is None:
        raise ProblemError("access_not_allowed")
    stamped = {
        "type": row.command,
        "schema_version": COMMAND_SCHEMA,
        "tenant_id": caller.tenant_id,
        "aggregate_id": asked.aggregate_id,
        "actor": {"id": caller.principal_id, "role": role},
        "command_id": asked.key,
        "lineage": caller.lineage,
        "occurred_at": services.now(),
    }
    if asked.expected_version is not None:
        stamped["expected_version"] = asked.expected_version
    # Encoded by way of the struct, so that the stored bytes have one form whatever was sent.
    payload = encode(decode_command(encode(stamped | dict(public))))
    command = decode_command(payload)
    message = check_message(command, given, caller.tenant_id)
    return Submission(
        message=message,
        payload=payload,
        fingerprint=request_fingerprint(
            services.keys.fingerprint_key,
            row.command,
            asked.aggregate_id,
            asked.expected_version,
            {name: value for name, value in asked.body.items() if name not in _UNPRINTED},
        ),
        disclosures=_kept(command, message, given),
    )


def _kept(
    command: Command, message: Message, given: Mapping[str, Disclosure]
) -> dict[str, Disclosure]:
    named = [*command.commitments()]
    if message.manifest is not None:
        named += message.manifest.commitments()
    return {name: given[name] for name in named}


def _with_upper_pin(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with its Mappls Pin in upper case, which is its one spelling."""
    position = body.get("position")
    if not isinstance(position, dict) or not isinstance(position.get("mappls_pin"), str):
        return dict(body)
    pin = position["mappls_pin"].upper()
    return {**body, "position": {**position, "mappls_pin": pin}}
