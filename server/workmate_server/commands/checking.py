"""`verify` and `rebuild`: hold what is stored against what was signed, and project it again."""

from collections.abc import Sequence

from msgspec import Struct

from workmate_server.bootstrap import Parts, open_parts
from workmate_server.commands.result import DONE, FOUND, Result
from workmate_server.config import Locations
from workmate_server.engine.rebuild import rebuild
from workmate_server.engine.verify import MAX_FINDINGS, verify
from workmate_server.engine.verify_projections import check_projections
from workmate_server.engine.verify_report import Finding, Findings
from workmate_server.evidence.checking import check_held_bytes
from workmate_server.identity.headcopies import log_public_keys
from workmate_server.store import loads
from workmate_server.store.database import SchemaIncompleteError

DATABASE_FILE = "database file"
"""The place of a finding after which nothing more can be read."""


class Verified(Struct, frozen=True, kw_only=True):
    """What `verify` tells; `blobs` is the number of files hashed again, null if none were asked."""

    clean: bool
    tenants: int
    batches: int
    commands: int
    events: int
    blobs: int | None
    findings: tuple[Finding, ...]


class Rebuilt(Struct, frozen=True, kw_only=True):
    """What `rebuild` tells: whether the projections were what the log says, before and after."""

    aggregates: int
    identical: bool
    differences: tuple[Finding, ...]
    findings: tuple[Finding, ...]


def verify_log(locations: Locations, *, blobs: bool) -> Result:
    """Walk every log; with `blobs`, hash every held file again too.

    Raises StartError, KeyFolderError, ConfigError or SchemaVersionError.
    """
    with open_parts(locations) as parts:
        found: list[Finding] = []
        try:
            parts.database.require_current_schema()
        except SchemaIncompleteError as error:
            # Who took the guards away may have changed more: the walk tells what.
            found.append(Finding("schema", "missing", f"{error}; migrate makes them again"))
        report = verify(parts.database, parts.keys, log_public_keys(parts.keys))
        found += report.findings
        hashed = None
        if blobs and all(finding.place != DATABASE_FILE for finding in found):
            of_bytes = Findings(MAX_FINDINGS)
            hashed = check_held_bytes(parts.database, parts.blobs, of_bytes)
            found += of_bytes.found
    value = Verified(
        clean=not found,
        tenants=report.tenants,
        batches=report.batches,
        commands=report.commands,
        events=report.events,
        blobs=hashed,
        findings=tuple(found),
    )
    walked = (
        f"{report.tenants} tenants, {report.batches} batches, {report.commands} commands, "
        f"{report.events} events" + ("" if hashed is None else f", {hashed} files")
    )
    end = "everything agrees with what was signed" if not found else f"{len(found)} findings"
    return Result(
        value=value, lines=(*_lines(found), f"{walked}: {end}"), exit_code=FOUND if found else DONE
    )


def rebuild_projections(locations: Locations) -> Result:
    """Make the projections again; tell what was not identical before, and what is not now.

    Raises StartError, KeyFolderError, ConfigError or SchemaVersionError.
    """
    with open_parts(locations) as parts:
        parts.database.require_current_schema()
        before = _differences(parts)
        count = rebuild(parts.database)
        after = _differences(parts)
    value = Rebuilt(
        aggregates=count,
        identical=not before and not after,
        differences=tuple(before),
        findings=tuple(after),
    )
    if value.identical:
        end = "identical to what was there"
    elif after:
        end = "the log itself does not project; run verify"
    else:
        end = f"{len(before)} differences, now as the log says"
    lines = (*_lines(before), *_lines(after), f"{count} aggregates projected again: {end}")
    return Result(value=value, lines=lines, exit_code=DONE if value.identical else FOUND)


def _differences(parts: Parts) -> list[Finding]:
    findings = Findings(MAX_FINDINGS)
    with parts.database.read() as connection:
        for head in loads.load_tenants(connection):
            check_projections(connection, head.tenant_id, findings)
    return findings.found


def _lines(findings: Sequence[Finding]) -> list[str]:
    return [f"{finding.place}: {finding.fault}: {finding.detail}" for finding in findings]
