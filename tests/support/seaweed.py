"""A real S3 server for the tests: SeaweedFS on free ports of the loopback, in a folder of its own.

Modules that use the fixture `seaweed` say `pytest_plugins = ["support.seaweed"]`.
"""

import json
import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

STARTS = 3
POLLS = 300
POLL_SECONDS = 0.1
BUCKET = "evidence"
SERVERS = ("master", "volume", "filer", "s3")


class S3Server(msgspec.Struct, frozen=True):
    """Where the server is, and what an S3 client needs to be let in."""

    endpoint: str
    access_key_id: str = "office"
    secret_access_key: str = "not a secret"
    region: str = "us-east-1"

    def options(self) -> dict[str, str]:
        """Return the connection's options as `obstore` names them."""
        return msgspec.structs.asdict(self)

    def url(self, prefix: str) -> str:
        """Return the URL of a prefix in the one bucket."""
        return f"s3://{BUCKET}/{prefix}"

    def store(self) -> S3Store:
        """Return a plain client of the bucket."""
        return S3Store(
            BUCKET,
            endpoint=self.endpoint,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            region=self.region,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )


def free_ports(count: int) -> list[int]:
    """Return so many ports of the loopback that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def command_line(folder: Path, server: S3Server, ports: list[int]) -> list[str]:
    """Return how to start all parts of SeaweedFS as one process that stays on the loopback."""
    config = folder / "s3.json"
    credentials = [{"accessKey": server.access_key_id, "secretKey": server.secret_access_key}]
    identity = {"name": "office", "credentials": credentials, "actions": ["Admin"]}
    config.write_text(json.dumps({"identities": [identity]}))
    data = folder / "data"
    data.mkdir(exist_ok=True)
    return [
        str(Path(sysconfig.get_path("scripts")) / "weed"),
        "-logtostderr",
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
        f"-s3.config={config}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=100",
        *(f"-{part}.port={port}" for part, port in zip(SERVERS, ports[:4], strict=True)),
        *(f"-{part}.port.grpc={port}" for part, port in zip(SERVERS, ports[4:], strict=True)),
    ]


def is_ready(process: subprocess.Popen[bytes], server: S3Server) -> bool:
    """Wait until the server stores an object; False if it ends or stays deaf."""
    store = server.store()
    for _ in range(POLLS):
        try:
            obstore.put(store, "ready", b"")
        except BaseError:
            try:
                process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return False
        return True
    return False


@contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], S3Server]]:
    """Run the server once, ready or not, and stop it in the end."""
    ports = free_ports(2 * len(SERVERS))
    server = S3Server(f"http://127.0.0.1:{ports[SERVERS.index('s3')]}")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command_line(folder, server, ports), stdout=log, stderr=log)
        try:
            yield process, server
        finally:
            # Nothing of it is needed again, and asked politely it takes ten seconds.
            process.kill()
            process.wait()
            for part, port in zip(SERVERS, ports[4:], strict=True):
                Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock").unlink(missing_ok=True)


@contextmanager
def running_seaweed(folder: Path) -> Iterator[S3Server]:
    """Run the server; other ports are tried if somebody took one in between."""
    for _ in range(STARTS):
        with started(folder) as (process, server):
            if is_ready(process, server):
                yield server
                return
    raise RuntimeError((folder / "log").read_text()[-2000:])


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 server for all tests of a session; each test keeps to a prefix of its own."""
    with running_seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server
