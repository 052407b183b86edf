"""Hand jobs in to the engine of this process, in the very way in which the API does.

The commands are made by the same function as those of `POST /v1/tasks`, so that one job is one task
with one fingerprint whichever way it came. They are issued by a service of its own, named after the
source, so that the log says who brought what.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection

from workmate_server.bootstrap import Parts, StartError, Tenant, make_services
from workmate_server.engine.engine import Engine, OverloadedError, StoppingError
from workmate_server.engine.model import Decided, Submission
from workmate_server.engine.workspace import SYSTEM_ID
from workmate_server.http.problems import ProblemError
from workmate_server.http.tasks import prepare_creation
from workmate_server.identity.authenticate import Caller, read_principal
from workmate_server.imports.convert import Job
from workmate_server.imports.handing_in import CONFLICT, NOT_SENT, Answer
from workmate_server.store.loads import load_snapshots
from workmate_shared.kernel.catalogue import CATALOGUE, Recorded
from workmate_shared.kernel.table import Role
from workmate_shared.principals.table import ACTIVE
from workmate_shared.wire.codec import MalformedError, encode
from workmate_shared.wire.intake import MessageError
