"""The application: every route, the middlewares around them, and the services behind them.

Whoever runs it passes `SERVER_OPTIONS` to the runner, so that bodies come as they were sent and are
unpacked here, within their bounds.
"""

from typing import Final

from aiohttp import web

from workmate_server.http import (
    blobs,
    devices,
    enrolment,
    evidence_reads,
    health,
    log,
    principals,
    schemas,
    sessions,
    subscriptions,
    sync,
    task_reads,
    tasks,
    tokens,
    uploads,
)
from workmate_server.http.limits import GUARDS, Guards
from workmate_server.http.middlewares import (
    add_safety_headers,
    answer_problems,
    compress_answers,
)
from workmate_server.http.services import SERVICES, Services
from workmate_server.http.stopping import watch_for_stop

SERVER_OPTIONS: Final = {"auto_decompress": False}
"""What `aiohttp.web.AppRunner` must be told."""

_RESOURCES = (
    blobs,
    devices,
    enrolment,
    evidence_reads,
    health,
    log,
    principals,
    schemas,
    sessions,
    subscriptions,
    sync,
    task_reads,
    tasks,
    tokens,
    uploads,
)


def build_app(services: Services) -> web.Application:
    """Return the whole HTTP API over these services."""
    app = web.Application(middlewares=[compress_answers, answer_problems])
    app[SERVICES] = services
    app[GUARDS] = Guards(services.settings, services.clock)
    app.on_response_prepare.append(add_safety_headers)
    watch_for_stop(app)
    for resource in _RESOURCES:
        app.add_routes(resource.routes)
    return app
