"""`import`: jobs of another system become tasks, each row once, and every row is accounted for."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from workmate_server.bootstrap import open_parts, require_whole_log, running_engine
from workmate_server.commands.direct import DirectOffice
from workmate_server.commands.result import DONE, FOUND, Result
from workmate_server.config import Locations, Settings
from workmate_server.imports.convert import Converter
from workmate_server.imports.handing_in import Office, import_records
from workmate_server.imports.mapping import (
    BUILTIN_MAPPINGS,
    Mapping,
    load_mapping,
    load_policy,
)
from workmate_server.imports.over_http import office_over_http
from workmate_server.imports.reading import Record, fitting_mapping, read_records
from workmate_server.imports.report import Report
from workmate_server.telemetry.system import SystemClock

_REFUSALS_SHOWN = 50


class ImportOptions(Struct, frozen=True, kw_only=True):
    """What to import and by which rules; None leaves a question to the mapping."""

    file: Path
    mapping: str | None = None
    source: str | None = None
    policy: Path | None = None


class _Prepared(Struct, frozen=True):
    """A file that was read, and the rules for its rows."""

    mapping: Mapping
    records: list[Record]
    converter: Converter


def import_over_http(options: ImportOptions, url: str, token: str) -> Result:
    """Import through a server's API. Raises FileError, MappingError or ServerUrlError."""
    settings = Settings()
    prepared = _prepare(options, settings)

    async def run() -> Report:
        async with office_over_http(url, token, settings, SystemClock()) as office:
            return await import_records(prepared.records, prepared.converter, office)

    return _result(asyncio.run(run()))


def import_directly(options: ImportOptions, locations: Locations, tenant_id: str | None) -> Result:
    """Import into the database; a server may run beside it.

    Raises FileError or MappingError; StartError, KeyFolderError, ConfigError, SchemaVersionError.
    """
    with open_parts(locations) as parts:
        prepared = _prepare(options, parts.settings)
        require_whole_log(parts)
        tenant = parts.tenant(tenant_id)
        source = options.source or prepared.mapping.source

        async def run() -> Report:
            async with running_engine(parts) as engine:
                office: Office = await _opened(DirectOffice(parts, engine, tenant, source))
                return await import_records(prepared.records, prepared.converter, office)

        return _result(asyncio.run(run()))


async def _opened(office: DirectOffice) -> DirectOffice:
    await office.open()
    return office


def _prepare(options: ImportOptions, settings: Settings) -> _Prepared:
    mapping = _mapping(options, settings)
    policy = None if options.policy is None else load_policy(options.policy)
    converter = Converter(mapping, settings.import_cell_chars_max, options.source, policy)
    return _Prepared(mapping, read_records(options.file, mapping, settings), converter)


def _mapping(options: ImportOptions, settings: Settings) -> Mapping:
    """Return the mapping that was asked for, else that of the source's name, else the fitting one."""
    if options.mapping is not None:
        return load_mapping(options.mapping)
    if options.source in BUILTIN_MAPPINGS:
        return load_mapping(options.source)
    return fitting_mapping(
        options.file, [load_mapping(name) for name in BUILTIN_MAPPINGS], settings
    )


def _result(report: Report) -> Result:
    told = f"{report.created} created, {report.unchanged} unchanged, {len(report.refused)} refused"
    lines = [f"{report.rows} rows: {told}", *_table(report)]
    return Result(value=report, lines=lines, exit_code=DONE if report.complete else FOUND)


def _table(report: Report) -> Sequence[str]:
    shown = report.refused[:_REFUSALS_SHOWN]
    lines = [
        f"row {one.row:>6}  {one.external_id or '-':<20}  {one.rule:<24}  {one.detail}"
        for one in shown
    ]
    rest = len(report.refused) - len(shown)
    return [*lines, f"and {rest} more; --json lists them all"] if rest else lines
