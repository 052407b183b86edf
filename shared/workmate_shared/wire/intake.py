"""Check 1 of every command: it decodes, its tenant matches, its values open their commitments.

What fails here is refused without a trace. Whoever calls has verified the signature before, because
bytes are verified before they are parsed.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from workmate_shared.kernel.command import COMMAND_SCHEMA, Command, Event
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.table import Row
from workmate_shared.tasks.commands import CreateTask, named_hashes
from workmate_shared.tasks.manifest import Manifest, content_hash
from workmate_shared.tasks.values import Fixes, ManifestPersonal
from workmate_shared.wire.binary import from_base64
from workmate_shared.wire.codec import MAX_DETAIL, MalformedError, decode
from workmate_shared.wire.commitment import Disclosure, DisclosureError, open_disclosure
from workmate_shared.wire.registry import COMMAND_TYPES, EVENT_TYPES, kind_of_command

MAX_COMMAND_BYTES = 512 * 1024
"""The largest command in bytes; a manifest of the largest size fits."""

NAME_SHOWN = 64
"""How many characters of an unknown command's name an error repeats."""

Disclosures = Mapping[str, Disclosure]


class MessageError(Exception):
    """A message that cannot be taken: a code of the catalogue, the path of the fault, a detail."""

    def __init__(self, code: str, path: str = "$", detail: str = "") -> None:
        super().__init__(f"{code} at {path}: {detail}")
        self.code = code
        self.path = path
        self.detail = detail


class Message(Struct, frozen=True):
    """A command with its opened values, its decoded manifest and the files that it names."""

    command: Command
    opened: Mapping[str, Any]
    manifest: Manifest | None = None

    @property
    def evidence(self) -> tuple[str, ...]:
        """The hashes of the files that the command or its manifest names."""
        return named_hashes(self.command, self.manifest.hashes() if self.manifest else ())


class _Peek(Struct, frozen=True):
    type: str
    schema_version: int


_COMMANDS = {name: msgspec.json.Decoder(kind) for name, kind in COMMAND_TYPES.items()}
_EVENTS = {name: msgspec.json.Decoder(kind) for name, kind in EVENT_TYPES.items()}


def decode_command(payload: bytes) -> Command:
    """Return the command in its exact bytes.

    Raises MessageError: `unknown_schema` for a kind or version from the future, `too_large`, or
    `invalid_command` with the path of the field.
    """
    try:
        peek = decode(payload, _Peek, max_bytes=MAX_COMMAND_BYTES)
        decoder = _COMMANDS.get(peek.type)
        if decoder is None or peek.schema_version > COMMAND_SCHEMA:
            detail = f"{peek.type[:NAME_SHOWN]} {peek.schema_version}"
            raise MessageError("unknown_schema", "$.type", detail)
        return decoder.decode(payload)
    except MalformedError as error:
        raise MessageError(error.code, error.path, error.detail) from error
    except msgspec.ValidationError as error:
        raise _invalid(error) from error


def decode_event(event_type: str, payload: bytes) -> Event:
    """Return the event in the log's bytes; raises KeyError or msgspec.ValidationError."""
    return _EVENTS[event_type].decode(payload)


def check_message(command: Command, disclosures: Disclosures, tenant_id: str) -> Message:
    """Return the command with its values opened and its manifest decoded.

    Raises MessageError: `tenant_mismatch`, `disclosure_missing`, `disclosure_mismatch`,
    `content_hash_mismatch` or `invalid_command` with the path of the fault.
    """
    if command.tenant_id != tenant_id:
        raise MessageError("tenant_mismatch", "$.tenant_id")
    kind = kind_of_command(command.name)
    row = kind.lifecycle.table.row(command.name)
    if row.creates:
        _check_creation(command)
    opened: dict[str, Any] = {}
    for field, kinds in (("personal", kind.personal_kinds), ("position", kind.position_kinds)):
        commitment = getattr(command, field)
        if commitment is None:
            continue
        if command.name not in kinds:
            raise MessageError("invalid_command", f"$.{field}", "this command has none")
        opened[commitment] = _open(commitment, disclosures, kinds[command.name], f"$.{field}")
    if command.override is not None:
        _check_override(command, opened, row)
    manifest = _read_manifest(command)
    if manifest is not None:
        opened |= open_manifest(manifest, disclosures)
    return Message(command, opened, manifest)


def open_manifest(manifest: Manifest, disclosures: Disclosures) -> dict[str, Any]:
    """Return the opened values of a manifest by commitment; raises MessageError as above."""
    opened: dict[str, Any] = {}
    if manifest.personal is not None:
        opened[manifest.personal] = _open(
            manifest.personal, disclosures, ManifestPersonal, "$.manifest.personal"
        )
    if manifest.position is not None:
        opened[manifest.position] = _open(
            manifest.position, disclosures, Fixes, "$.manifest.position"
        )
    return opened


def _open(commitment: str, disclosures: Disclosures, kind: Any, path: str) -> Any:
    disclosure = disclosures.get(commitment)
    if disclosure is None:
        raise MessageError("disclosure_missing", path, commitment)
    try:
        value = open_disclosure(commitment, disclosure)
    except DisclosureError as error:
        raise MessageError("disclosure_mismatch", path, error.detail) from error
    return decode_value(value, kind, path)


def decode_value(value: bytes, kind: Any, path: str) -> Any:
    """Return a personal value or position as its struct; raises MessageError `invalid_command`."""
    try:
        return decode(value, kind, max_bytes=MAX_COMMAND_BYTES)
    except MalformedError as error:
        raise MessageError(
            "invalid_command", path + error.path.removeprefix("$"), error.detail
        ) from error


def _check_creation(command: Command) -> None:
    """A creation builds on nothing, and the id of a task follows from its job."""
    if command.expected_version:
        raise MessageError("invalid_command", "$.expected_version", "a creation expects version 0")
    if command.after is not None:
        raise MessageError("invalid_command", "$.after", "a creation builds on nothing")
    if isinstance(command, CreateTask) and command.aggregate_id != task_id_for(
        command.tenant_id, command.source, command.external_id
    ):
        raise MessageError("invalid_command", "$.aggregate_id", "not the id of this job")


def _check_override(command: Command, opened: Mapping[str, Any], row: Row) -> None:
    if not row.overridable:
        raise MessageError("invalid_command", "$.override", "nobody can act for another here")
    value = opened.get(command.personal or "")
    if not getattr(value, "override_reason", None):
        raise MessageError("invalid_command", "$.override", "an override needs a reason")


def _read_manifest(command: Command) -> Manifest | None:
    text = getattr(command, "manifest", None)
    if text is None:
        return None
    try:
        data = from_base64(text)
    except ValueError as error:
        raise MessageError("invalid_command", "$.manifest", "not canonical base64") from error
    if content_hash(data) != getattr(command, "content_hash", None):
        raise MessageError("content_hash_mismatch", "$.content_hash")
    manifest: Manifest = decode_value(data, Manifest, "$.manifest")
    if manifest.task_id != command.aggregate_id:
        raise MessageError("invalid_command", "$.manifest.task_id", "of another task")
    return manifest


def _invalid(error: msgspec.ValidationError) -> MessageError:
    detail, _, path = str(error).rpartition(" - at `")
    if not detail:
        detail, path = path, "$"
    return MessageError("invalid_command", path.rstrip("`")[:MAX_DETAIL], detail[:MAX_DETAIL])
