"""`init`: make keys, schema and the first tenant; tell the administrator's token once.

Keys come first and are never overwritten. What exists and is finished is refused and not touched;
what was cut short is finished.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from workmate_server.bootstrap import (
    Parts,
    StartError,
    assembled,
    ensure_rules,
    has_content,
    running_engine,
)
from workmate_server.commands.founding import (
    FixedClock,
    Founding,
    SeededEntropy,
    begin_founding,
    end_founding,
    only_founder,
    read_founding,
)
from workmate_server.commands.result import Result
from workmate_server.config import Locations, blob_folder, database_file
from workmate_server.engine.tenants import NewTenant, TenantFounder
from workmate_server.identity.keyfolder import KeyFolder, KeyFolderError
from workmate_server.ports import Hooks
from workmate_server.store import loads
from workmate_server.telemetry.files import make_folder
from workmate_server.telemetry.system import SystemEntropy


class Begun(Struct, frozen=True, kw_only=True):
    """What `init` tells: `server_keys` are the log's public keys (hex) by key id."""

    tenant_id: str
    admin_token: str
    lineage: str
    server_keys: dict[str, str]


def init(
    locations: Locations,
    tenant: str,
    tell: Callable[[Result], object],
    hooks: Hooks | None = None,
) -> None:
    """Begin a server and tell the result; only then is the record of the beginning removed.

    Kill points: `init.<step>.after` for the steps keys, record, schema, tenant and told.
    Raises StartError: `already_initialised`, `init_unfinished`, `init_running`, `keys_in_use` or
    `keys_missing`; KeyFolderError and ConfigError.
    """
    _refuse_orphan(locations)
    with only_founder(locations.keys):
        keys = _open_or_create(locations)
        _make_folders(locations)
        with assembled(locations, keys, hooks=hooks) as parts:
            parts.hooks.reach("init.keys.after")
            _refuse_second(parts)
            founding = begin_founding(
                keys.path, locations.database, tenant, parts.clock, parts.entropy
            )
            parts.hooks.reach("init.record.after")
            parts.database.migrate()
            parts.hooks.reach("init.schema.after")
            begun = asyncio.run(_found(parts, founding))
            parts.hooks.reach("init.tenant.after")
            ensure_rules(parts)
            tell(_result(begun, keys, locations))
            parts.hooks.reach("init.told.after")
        end_founding(keys.path)


def _refuse_orphan(locations: Locations) -> None:
    """Refuse a database whose keys are not there: new ones would not open it."""
    file = database_file(locations.database)
    if file is None or not has_content(file):
        return
    try:
        KeyFolder.open(locations.keys)
    except KeyFolderError as error:
        if error.code != "keys_missing":
            raise
        detail = f"{locations.database} is there and its keys are not at {locations.keys}"
        raise StartError("keys_missing", detail) from error


def _open_or_create(locations: Locations) -> KeyFolder:
    try:
        return KeyFolder.open(locations.keys)
    except KeyFolderError as error:
        if error.code != "keys_missing":
            raise
    return KeyFolder.create(locations.keys, SystemEntropy())


def _make_folders(locations: Locations) -> None:
    """Make the folders of the database file and of the bytes."""
    file = database_file(locations.database)
    if file is not None:
        make_folder(file.absolute().parent)
    folder = blob_folder(locations.blobs)
    if folder is not None:
        make_folder(folder.absolute())


def _refuse_second(parts: Parts) -> None:
    if read_founding(parts.keys.path) is not None:
        return
    file = database_file(parts.locations.database)
    if file is None or has_content(file):
        parts.database.require_current_schema()
        with parts.database.read() as connection:
            if loads.load_tenants(connection):
                detail = f"{parts.locations.database} has its tenant and its keys already"
                raise StartError("already_initialised", detail)
    if parts.keys.read_heads():
        detail = (
            f"the keys at {parts.keys.path} have signed the log of another database; "
            "name another folder with --keys, or bring that database back"
        )
        raise StartError("keys_in_use", detail)


async def _found(parts: Parts, founding: Founding) -> NewTenant:
    async with running_engine(parts) as engine:
        founder = TenantFounder(
            parts.database,
            engine,
            FixedClock(founding.begun_at),
            SeededEntropy(bytes.fromhex(founding.seed)),
        )
        key = parts.keys.log_key
        return await founder.found(founding.tenant, key.key_id, key.public_key)


def _result(tenant: NewTenant, keys: KeyFolder, locations: Locations) -> Result:
    begun = Begun(
        tenant_id=tenant.tenant_id,
        admin_token=tenant.admin_token,
        lineage=tenant.lineage,
        server_keys={keys.log_key.key_id: keys.log_key.public_key.hex()},
    )
    notes = (
        "The token above is shown this once; keep it where secrets are kept.",
        f"Keys: {keys.path}. Back this folder up apart from the database.",
        "Without the keys nobody can read the records; with both, anybody can.",
        f"Records: {locations.database}. Bytes: {locations.blobs}.",
    )
    return Result(value=begun, notes=notes)
