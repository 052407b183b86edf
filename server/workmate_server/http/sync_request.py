"""Read a sync request so that no part of it costs another part its answer.

Each command is decoded by itself; one that cannot be read is refused where it stands. Whatever else
cannot be read refuses the pull. A body that is no object with a list of commands is refused whole.
"""

import binascii
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from workmate_server.config import Settings
from workmate_server.http.problems import ProblemError
from workmate_shared.kernel.ids import CommandId
from workmate_shared.wire.binary import from_base64
from workmate_shared.wire.codec import MalformedError, decode, decode_part
from workmate_shared.wire.intake import MessageError
from workmate_shared.wire.messages import PROTOCOL, SignedCommand, SyncRequest

Part = Raw | UnsetType


class _Body(Struct):
    """A request taken apart, nothing of it decoded yet."""

    protocol: Part = UNSET
    newest_header: Part = UNSET
    cursor: Part = UNSET
    limit: Part = UNSET
    device: Part = UNSET
    commands: list[Raw] = []


class _Claim(Struct):
    command_id: CommandId


class _Envelope(Struct):
    payload: str


class _Unread(Struct):
    envelope: _Envelope


class Sent(Struct, frozen=True):
    """One command as it was sent: read, or why not."""

    command: SignedCommand | MessageError
    data: bytes

    @property
    def claimed_id(self) -> str:
        """The id that it claims for itself, or nothing: unproven, it only names the answer."""
        return _claimed_id(self.data)


class Asked(Struct, frozen=True):
    """A request as far as it could be read; `fault` is the code that refuses the pull."""

    request: SyncRequest
    commands: list[Sent]
    fault: str | None


def read_sync(data: bytes, settings: Settings) -> Asked:
    """Return what a device asks for. Blocks for as long as the body is long.

    Raises MalformedError for a body that cannot be taken apart, ProblemError `too_large` for more
    commands than one request may have.
    """
    broken: MalformedError | None = None
    try:
        body = decode(data, _Body, max_bytes=len(data), max_depth=settings.json_depth_max)
    except MalformedError as error:
        broken, body = error, _take_apart(data)
    most = settings.sync_commands_max
    if len(body.commands) > most:
        raise ProblemError("too_large", f"More than {most} commands.", limit=most)
    # What the whole was judged for is not judged in each part again.
    read = decode if broken is not None else decode_part
    commands = [_read_command(read, bytes(raw), settings) for raw in body.commands]
    request, fault = _read_rest(body, settings)
    # What no part explains is wrong with the whole, such as one name twice.
    if broken is not None and fault is None and not any(_is_unread(one) for one in commands):
        raise broken
    return Asked(request, commands, fault)


def _take_apart(data: bytes) -> _Body:
    try:
        return msgspec.json.decode(data, type=_Body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedError("invalid_command", "$", "Not a sync request.") from error


def _read_rest(body: _Body, settings: Settings) -> tuple[SyncRequest, str | None]:
    parts: dict[str, Any] = {
        name: part
        for name in body.__struct_fields__
        if name != "commands" and (part := getattr(body, name)) is not UNSET
    }
    data = msgspec.json.encode(parts)
    try:
        kind: type[SyncRequest] = SyncRequest
        depth = settings.json_depth_max
        return decode(data, kind, max_bytes=len(data), max_depth=depth), None
    except MalformedError:
        return SyncRequest(protocol=PROTOCOL), "invalid_request"


def _read_command(read: Callable[..., Any], data: bytes, settings: Settings) -> Sent:
    most = settings.command_bytes_max
    try:
        command = read(data, SignedCommand, max_bytes=most, max_depth=settings.json_depth_max)
    except MalformedError as error:
        return Sent(MessageError(error.code, error.path, error.detail), data)
    return Sent(command, data)


def _claimed_id(data: bytes) -> str:
    try:
        unread = msgspec.json.decode(data, type=_Unread)
        payload = from_base64(unread.envelope.payload)
        return msgspec.json.decode(payload, type=_Claim).command_id
    except (msgspec.DecodeError, ValueError, RecursionError, binascii.Error):
        return ""


def _is_unread(sent: Sent) -> bool:
    return isinstance(sent.command, MessageError)
