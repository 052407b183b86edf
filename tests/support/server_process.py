"""The real `workmate-server` as processes of its own, each with its files in one folder.

    office = begin(tmp_path)
    with serving(office) as server:
        desk = server.desk(office.admin_token)
        desk.call("POST", "/v1/principals", {...})

A server is told to stop at the end of its block and must end by itself, with exit code 0.
"""

import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workmate_server.cli import main

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
TENANT = "Stadtwerke"

_PROGRAM = (sys.executable, "-m", "workmate_server.cli")


@dataclass(frozen=True)
class Place:
    """Where one server keeps its things."""

    folder: Path
    keys: Path

    @property
    def database(self) -> Path:
        """The database file."""
        return self.folder / "office.db"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its processes: its locations, and nothing of the caller's."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("WORKMATE_")}
        return inherited | {
            "WORKMATE_DATABASE": f"sqlite:///{self.database}",
            "WORKMATE_BLOBS": (self.folder / "blobs").as_uri(),
            "WORKMATE_KEYS": str(self.keys),
        }


@dataclass(frozen=True)
class Office:
    """A server that has been begun, and what only its administrator knows."""

    place: Place
    tenant_id: str
    admin_token: str
    lineage: str
    server_keys: Mapping[str, str]


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, its JSON result if any, its error if any."""

    code: int
    result: Any
    error: Any
    stderr: str


class ApiError(Exception):
    """The server answered with a problem."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {problem}")
        self.status = status
        self.code = problem.get("code")
        self.problem = problem


@dataclass(frozen=True)
class Desk:
    """Somebody with an access token, calling the API."""

    url: str
    token: str

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        version: int | None = None,
    ) -> Any:
        """Return the decoded answer; raises ApiError for a problem, OSError without an answer.

        A POST gets a key of its own unless it is given one; "" leaves the key out.
        """
        headers = {"Authorization": f"Bearer {self.token}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if method != "GET" and key != "":
            headers["Idempotency-Key"] = key or uuid.uuid4().hex
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise ApiError(error.code, json.loads(error.read() or b"{}")) from error
        return json.loads(content) if content else None


@dataclass(frozen=True)
class Server:
    """A process that serves."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def desk(self, token: str) -> Desk:
        """Return somebody who calls this server."""
        return Desk(self.url, token)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell the process to stop; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS_MAX)


def make_place(folder: Path) -> Place:
    """Return a place in a folder of which nothing is there yet."""
    return Place(folder, folder / "keys")


def run_command(
    place: Place, *arguments: str, environment: Mapping[str, str] | None = None
) -> Ended:
    """Run one command to its end, with `--json`."""
    finished = subprocess.run(
        [*_PROGRAM, *arguments, "--json"],
        env={**place.environment, **(environment or {})},
        cwd=place.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS_MAX,
    )
    return Ended(
        finished.returncode,
        json.loads(finished.stdout) if finished.stdout else None,
        _error(finished.stderr),
        finished.stderr,
    )


def run_here(place: Place, *arguments: str) -> Ended:
    """Run one command to its end like `run_command`, and in this process, which is quicker."""
    out, told = io.StringIO(), io.StringIO()
    kept, mask = dict(os.environ), os.umask(0o022)
    try:
        os.environ.update(place.environment)
        with redirect_stdout(out), redirect_stderr(told):
            code = main([*arguments, "--json"])
    finally:
        os.umask(mask)
        os.environ.clear()
        os.environ.update(kept)
    result = json.loads(out.getvalue()) if out.getvalue() else None
    return Ended(code, result, _error(told.getvalue()), told.getvalue())


def _error(stderr: str) -> Any:
    lines = [line for line in stderr.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def begin(folder: Path, *, keys: Path | None = None) -> Office:
    """Run `init` in a folder and return what it told."""
    place = Place(folder, keys or folder / "keys")
    ended = run_command(place, "init", "--tenant", TENANT)
    assert ended.code == 0, ended.stderr
    return Office(place, **ended.result)


def copy_office(office: Office, folder: Path) -> Office:
    """Return a server of its own, with the same tenant and keys, made from one that stands still."""
    shutil.copytree(office.place.folder, folder)
    return replace(office, place=make_place(folder))


@contextmanager
def serving(
    office: Office, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run `serve` on a free port of this machine until the end of the block.

    Raises AssertionError if it does not come up, or does not end by itself with exit code 0.
    """
    place = office.place
    log = place.folder / f"serve-{uuid.uuid4().hex}.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*_PROGRAM, "serve", *options],
            env={**place.environment, **(environment or {})},
            cwd=place.folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    with process:
        try:
            server = Server(_read_url(process, log), process, log)
            yield server
            if process.poll() is None:
                assert server.stop() == 0, log.read_text()
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def two_serving(office: Office, *options: str) -> Iterator[tuple[Server, Server]]:
    """Run two `serve` processes on one database until the end of the block."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(serving(office, *options)) for _ in range(2))
        yield first, second


def _read_url(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], START_SECONDS_MAX)
    line = process.stdout.readline() if readable else ""
    assert line, f"the server did not come up: {log.read_text()}"
    url: str = json.loads(line)["listening"]
    return url


def hire(desk: Desk, principal_id: str, roles: Sequence[str], skills: Sequence[str] = ()) -> Desk:
    """Create somebody with these roles and an access token; return their desk."""
    person = {
        "principal_id": principal_id,
        "kind": "person",
        "display_name": principal_id,
        "roles": list(roles),
        "skills": list(skills),
    }
    desk.call("POST", "/v1/principals", person, key=f"hire-{principal_id}")
    token = desk.call(
        "POST", "/v1/tokens", {"principal_id": principal_id}, key=f"token-{principal_id}"
    )
    return Desk(desk.url, token["token"])
