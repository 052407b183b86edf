"""The demo's real processes: one server, and one for each worker's laptop."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from workmate_client.demo.hands import FLAG
from workmate_client.demo.places import Places

START_SECONDS = 60.0
ANSWER_SECONDS = 300.0
STOP_SECONDS = 30.0
LINE_BYTES = 16 * 1024 * 1024


class ProcessFailedError(Exception):
    """A process of the demo did not do what it was asked; the text says what it printed."""


def server_program(*arguments: str) -> list[str]:
    """Return the command line of the server program beside this one."""
    return [sys.executable, "-m", "workmate_server.cli", *arguments]


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WORKMATE_")}
    return {**kept, **more}


async def run_server_command(
    arguments: Sequence[str], *, accept: frozenset[int] = frozenset({0})
) -> Any:
    """Run a command of the server program with `--json` and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        *server_program(*arguments, "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
        env=_environment(),
    )
    out, err = await process.communicate()
    if process.returncode not in accept or not out.strip():
        raise ProcessFailedError(f"{arguments[0]} ended with {process.returncode}: {err.decode()}")
    return json.loads(out)


class ServerProcess:
    """`workmate-server serve` on a free port of loopback."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rsplit(":", 1)[1])

    async def __aenter__(self) -> Self:
        """Start it and wait until it says that it is ready."""
        with (self._places.folder / "server.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *server_program("serve", "--port", "0", "--allow-private-webhooks"),
                "--database",
                self._places.database,
                "--blobs",
                self._places.blobs,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                stdin=asyncio.subprocess.DEVNULL,
                env=_environment(),
                limit=LINE_BYTES,
            )
        stream = self._process.stdout
        line = await asyncio.wait_for(stream.readline(), START_SECONDS) if stream else b""
        if not line:
            raise ProcessFailedError("the server did not start; see server.log")
        self.url = json.loads(line)["listening"]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let it finish its work and end."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()


class Laptop:
    """One worker's process; `ask` it, `kill` it, `start` it again on the same folder."""

    def __init__(self, name: str, folder: Path, passphrase: str) -> None:
        self.name = name
        self.folder = folder
        self._passphrase = passphrase
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; its folder is whatever an earlier one left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "workmate_client.cli",
                "demo",
                FLAG,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=_environment(
                    WORKMATE_HOME=str(self.folder), WORKMATE_PASSPHRASE=self._passphrase
                ),
                limit=LINE_BYTES,
            )

    async def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send one request and return its answer; raises ProcessFailedError for a refusal."""
        await self.send(do, **fields)
        return await self.answer()

    async def send(self, do: str, **fields: Any) -> None:
        """Send one request without waiting for its answer."""
        process = self._process
        if process is None or process.stdin is None:
            raise ProcessFailedError(f"the laptop of {self.name} is off")
        process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        await process.stdin.drain()

    async def answer(self) -> dict[str, Any]:
        """Return the next answer; raises ProcessFailedError for a refusal or a process that died."""
        process = self._process
        if process is None or process.stdout is None:
            raise ProcessFailedError(f"the laptop of {self.name} is off")
        line = await asyncio.wait_for(process.stdout.readline(), ANSWER_SECONDS)
        if not line:
            raise ProcessFailedError(f"the laptop of {self.name} went out; see its log")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProcessFailedError(f"{self.name}: {answer['error']}: {answer['detail']}")
        return answer

    async def kill(self) -> None:
        """End the process as a power cut would, with SIGKILL."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()

    async def close(self) -> None:
        """Close standard input and wait until the process has ended."""
        process = self._process
        if process is None or process.returncode is not None or process.stdin is None:
            return
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        await self.kill()
