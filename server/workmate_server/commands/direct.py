"""Hand jobs in to the engine of this process, in the very way in which the API does.

The commands are made by the same functions as those of `POST /v1/tasks`, so that one job is one task
with one fingerprint whichever way it came. They are issued by a service of its own, named after the
source, so that the log says who brought what.
"""

from collections.abc import Sequence
from typing import Any

from workmate_server.bootstrap import Parts, StartError, Tenant, make_services
from workmate_server.engine.engine import Engine, OverloadedError, StoppingError
from workmate_server.engine.model import Decided, Submission
from workmate_server.engine.workspace import SYSTEM_ID
from workmate_server.http.problems import ProblemError
from workmate_server.http.translate import (
    Asked,
    make_submission,
    read_task_body,
    submission_of,
)
from workmate_server.identity.authenticate import Caller, read_principal
from workmate_server.imports.convert import Job
from workmate_server.imports.handing_in import CONFLICT, NOT_SENT, Answer
from workmate_server.store.loads import load_snapshots
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.table import Role
from workmate_shared.principals.principal import Principal
from workmate_shared.principals.table import ACTIVE, PRINCIPAL_TABLE
from workmate_shared.tasks.policy import Retention
from workmate_shared.tasks.table import TASK_TABLE
from workmate_shared.wire.codec import MalformedError, encode
from workmate_shared.wire.commitment import SALT_BYTES, make_disclosure
from workmate_shared.wire.intake import MessageError

IMPORTER_PREFIX = "import:"
"""How the id of the service begins that imports the jobs of a source."""

_DONE = ("committed", "unchanged")


class DirectOffice:
    """The engine of this process, for one tenant and one source."""

    def __init__(self, parts: Parts, engine: Engine, tenant: Tenant, source: str) -> None:
        self._services = make_services(parts, engine)
        self._tenant = tenant
        self._caller = _caller(tenant, IMPORTER_PREFIX + source, Role.INTEGRATION)

    @property
    def jobs_at_once(self) -> int:
        """How many jobs are committed together."""
        return self._services.settings.batch_commands_max

    async def open(self) -> None:
        """Make the service that imports, unless it is there.

        Raises StartError, `importer_not_allowed`, where it may not create tasks any more, or
        `importer_not_made`.
        """
        services, principal_id = self._services, self._caller.principal_id
        principal = await services.run_blocking(self._read_importer)
        if principal is None:
            submission = await services.run_blocking(self._importer)
            [made] = await services.engine.submit(self._tenant.tenant_id, [submission])
            if made.status not in _DONE:
                raise StartError("importer_not_made", f"{principal_id}: {made.sentence}")
        elif principal.state != ACTIVE or Role.INTEGRATION not in principal.roles:
            detail = f"{principal_id} was deactivated or has lost its role; name another --source"
            raise StartError("importer_not_allowed", detail)

    async def hand_in(self, jobs: Sequence[Job]) -> list[Answer]:
        """Return what became of each job; see `Office.hand_in`."""
        prepared = await self._services.run_blocking(self._prepare, jobs)
        submissions = [one for one in prepared if isinstance(one, Submission)]
        try:
            decided = iter(await self._services.engine.submit(self._tenant.tenant_id, submissions))
        except (OverloadedError, StoppingError):
            return [Answer("not_sent", NOT_SENT, "the engine takes nothing now")] * len(jobs)
        return [_answer(next(decided)) if isinstance(one, Submission) else one for one in prepared]

    def _prepare(self, jobs: Sequence[Job]) -> list[Submission | Answer]:
        return [self._prepare_one(job) for job in jobs]

    def _prepare_one(self, job: Job) -> Submission | Answer:
        row = TASK_TABLE.row("create_task")
        try:
            asked = Asked(
                caller=self._caller,
                row=row,
                aggregate_id=task_id_for(self._tenant.tenant_id, job.source, job.external_id),
                key=f"{job.source}:{job.external_id}",
                expected_version=0,
                body=read_task_body(self._services, row.command, encode(job.body)),
            )
            return make_submission(self._services, asked, {"source": job.source})
        except (MalformedError, MessageError) as error:
            return Answer("refused", error.code, f"{error.path}: {error.detail}")
        except ProblemError as error:
            return Answer("refused", error.code, error.detail)

    def _read_importer(self) -> Principal | None:
        name = self._caller.principal_id
        with self._services.database.read() as connection:
            found = load_snapshots(
                connection, self._tenant.tenant_id, "principal", [name], lock=False
            )
        return read_principal(found[name]) if name in found else None

    def _importer(self) -> Submission:
        """Return the creation of the service; its fingerprint is the same however often it is."""
        name = self._caller.principal_id
        body: dict[str, Any] = {"kind": "service", "roles": [Role.INTEGRATION]}
        shown = {"display_name": f"Import of {name.removeprefix(IMPORTER_PREFIX)}"}
        salt = self._services.entropy.token_bytes(SALT_BYTES)
        commitment, disclosure = make_disclosure(shown, salt, Retention().personal)
        asked = Asked(
            caller=_caller(self._tenant, SYSTEM_ID, Role.SYSTEM),
            row=PRINCIPAL_TABLE.row("create_principal"),
            aggregate_id=name,
            key=f"importer/{name}",
            expected_version=0,
            body={**body, **shown},
        )
        public = {**body, "personal": commitment}
        return submission_of(self._services, asked, public, {commitment: disclosure})


def _caller(tenant: Tenant, principal_id: str, role: Role) -> Caller:
    return Caller(
        tenant_id=tenant.tenant_id,
        principal_id=principal_id,
        credential_id=principal_id,
        lineage=tenant.lineage,
        claimed=(role,),
        roles=frozenset({role}),
    )


def _answer(decided: Decided) -> Answer:
    if decided.status in _DONE:
        new = decided.status == "committed" and not decided.replayed
        return Answer("created" if new else "unchanged")
    code = decided.code or decided.status
    if code == "idempotency_key_reused":
        code = CONFLICT
    refused = decided.receipt is not None or code in _REFUSED
    return Answer("refused" if refused else "not_sent", code, decided.sentence)


_REFUSED = frozenset({CONFLICT, "internal"})
"""Refusals of one job that leave no trace; what else was not recorded concerns every job."""
