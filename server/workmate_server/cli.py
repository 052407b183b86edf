"""The server's command line: read arguments, call one function, print.

Results go to standard output, as JSON with `--json`; errors and notes go to standard error. The exit
code is 0 when the work was done, 1 when something was found or could not be done, 2 for arguments
that make no sense. Options win over the environment variables of the same meaning.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workmate_server.commands.result import Result
    from workmate_server.config import Locations

PRIVATE_MASK = 0o077
"""Files that the server makes are its own user's only."""

INTERRUPTED = 130
"""Exit code of a command that was stopped from the keyboard."""

_DATABASE, _BLOBS, _KEYS = "WORKMATE_DATABASE", "WORKMATE_BLOBS", "WORKMATE_KEYS"
HIGHEST_PORT = 65_535
_TOKEN = "WORKMATE_TOKEN"  # noqa: S105 - the name of a variable

_SERVE = """Serve the API over plain HTTP, and deliver what follows from events. TLS sits in front:
put a proxy that ends it between this process and any network. Prints one JSON line when it listens;
SIGTERM and SIGINT finish what was begun."""
_IMPORT = """Create a task from every row of a job file, CSV or JSON. Rows that were imported before
are unchanged; every other row is created or refused by name. Exits 0 when every row was answered."""

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    os.umask(PRIVATE_MASK)
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s"
    )
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except _expected() as error:
        _tell_error(error, as_json=options.json)
        return 1
    return code


def _expected() -> tuple[type[Exception], ...]:
    from workmate_server.commands.errors import EXPECTED

    return EXPECTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workmate-server", description="The office's server.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    init = _add(commands, "init", _init, "make keys, records and the first tenant")
    init.add_argument("--tenant", required=True, metavar="NAME", help="name of the organisation")
    serve = _add(commands, "serve", _serve, "answer requests until told to stop", _SERVE)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on")
    serve.add_argument("--port", type=_port, default=0, help="port to listen on; 0: any free one")
    serve.add_argument(
        "--allow-private-webhooks",
        action="store_true",
        help="let webhooks reach this machine and private networks",
    )
    _add_import(commands)
    _add(commands, "migrate", _migrate, "bring the schema to that of this program")
    verify = _add(
        commands, "verify", _verify, "hold what is stored against what was signed", blobs=False
    )
    verify.add_argument(
        "--blobs", nargs="?", const="", metavar="URL", help="hash every held file again too"
    )
    _add(commands, "rebuild", _rebuild, "project the log again and compare")
    outbox = commands.add_parser("outbox", help="what waits to be delivered")
    actions = outbox.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (
        ("list", _outbox_list, "list subscriptions and what waits for them"),
        ("redrive", _outbox_redrive, "try dead deliveries again"),
    ):
        action = _add(actions, name, run, text)
        action.add_argument("--tenant", metavar="ID", help="which tenant, if there are several")
        if name == "redrive":
            action.add_argument("subscription", metavar="SUBSCRIPTION", help="id of a subscription")
    return parser


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {HIGHEST_PORT}")
    return number


def _source(text: str) -> str:
    import msgspec

    from workmate_shared.tasks.commands import Source

    try:
        return str(msgspec.convert(text, Source))
    except msgspec.ValidationError as error:
        raise argparse.ArgumentTypeError(f"{error}") from error


def _add(
    commands: Any, name: str, run: Command, text: str, description: str = "", *, blobs: bool = True
) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=description or f"{text[0].upper()}{text[1:]}."
    )
    added.set_defaults(run=run)
    added.add_argument("--database", metavar="URL", help=f"sqlite:///FILE (or {_DATABASE})")
    if blobs:
        added.add_argument("--blobs", metavar="URL", help=f"file:///FOLDER (or {_BLOBS})")
    added.add_argument("--keys", metavar="FOLDER", help=f"where the keys are (or {_KEYS})")
    added.add_argument("--json", action="store_true", help="print the result as JSON")
    return added


def _add_import(commands: Any) -> None:
    added = _add(commands, "import", _import, "create tasks from a job file", _IMPORT)
    added.add_argument("file", type=Path, metavar="JOBS", help="a file .csv or .json")
    added.add_argument("--source", type=_source, metavar="NAME", help="where the jobs are from")
    added.add_argument(
        "--mapping",
        metavar="NAME|FILE",
        help="what its columns mean: nyc311, workmate, or a JSON file; else the one that fits",
    )
    added.add_argument("--policy", type=Path, metavar="FILE", help="proof policy of the tasks")
    added.add_argument("--tenant", metavar="ID", help="which tenant, if there are several")
    added.add_argument("--server", metavar="URL", help="import over the API of this server")
    added.add_argument(
        "--token", metavar="TOKEN", help=f"an integration's access token (better: {_TOKEN})"
    )


def _locations(options: argparse.Namespace) -> "Locations":
    from workmate_server.config import Locations

    given = {_DATABASE: options.database, _BLOBS: options.blobs, _KEYS: options.keys}
    return Locations.from_environment(
        {**os.environ, **{name: value for name, value in given.items() if value}}
    )


def _init(options: argparse.Namespace) -> int:
    from workmate_server.commands.init import init

    # What is told here is told once, so it is JSON in any case: nothing of it is left to be guessed.
    init(_locations(options), options.tenant, lambda result: _tell_json(result, options))
    return 0


def _serve(options: argparse.Namespace) -> int:
    from workmate_server.commands.serving import serve

    return serve(
        _locations(options),
        options.host,
        options.port,
        lambda url: print(json.dumps({"listening": url}), flush=True),
        private_webhooks=options.allow_private_webhooks,
    )


def _import(options: argparse.Namespace) -> int:
    from workmate_server.commands import importing

    asked = importing.ImportOptions(
        file=options.file,
        mapping=options.mapping,
        source=options.source,
        policy=options.policy,
    )
    if options.server is None:
        result = importing.import_directly(asked, _locations(options), options.tenant)
    else:
        token = options.token or os.environ.get(_TOKEN, "")
        result = importing.import_over_http(asked, options.server, token)
    return _tell(result, options)


def _migrate(options: argparse.Namespace) -> int:
    from workmate_server.commands.migrating import migrate

    return _tell(migrate(_locations(options)), options)


def _verify(options: argparse.Namespace) -> int:
    from workmate_server.commands.checking import verify_log

    return _tell(verify_log(_locations(options), blobs=options.blobs is not None), options)


def _rebuild(options: argparse.Namespace) -> int:
    from workmate_server.commands.checking import rebuild_projections

    return _tell(rebuild_projections(_locations(options)), options)


def _outbox_list(options: argparse.Namespace) -> int:
    from workmate_server.commands.deliveries import list_deliveries

    return _tell(list_deliveries(_locations(options), options.tenant), options)


def _outbox_redrive(options: argparse.Namespace) -> int:
    from workmate_server.commands.deliveries import redrive_deliveries

    result = redrive_deliveries(_locations(options), options.tenant, options.subscription)
    return _tell(result, options)


def _tell(result: "Result", options: argparse.Namespace) -> int:
    if options.json:
        return _tell_json(result, options)
    for line in result.lines:
        print(line)
    return _tell_notes(result)


def _tell_json(result: "Result", options: argparse.Namespace) -> int:
    import msgspec

    data = msgspec.json.encode(result.value)
    print((data if options.json else msgspec.json.format(data)).decode(), flush=True)
    return _tell_notes(result)


def _tell_notes(result: "Result") -> int:
    for note in result.notes:
        print(note, file=sys.stderr)
    return result.exit_code


def _tell_error(error: Exception, *, as_json: bool) -> None:
    from workmate_server.commands.errors import describe

    code, detail = describe(error)
    told = json.dumps({"code": code, "detail": detail}) if as_json else f"{code}: {detail}"
    print(told, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
