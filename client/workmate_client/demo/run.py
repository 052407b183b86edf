"""`workmate demo`: tell the story on one laptop, then let a separate checker judge what is left.

Exit status 0 only if every invariant held.
"""

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import Any

from workmate_client.demo.checker import check_folder
from workmate_client.demo.kit import Kit
from workmate_client.demo.link import FlakyLink
from workmate_client.demo.places import Places
from workmate_client.demo.processes import (
    ProcessFailedError,
    ServerProcess,
    run_server_command,
)
from workmate_client.demo.receiver import Receiver
from workmate_client.demo.sample import draw_photos, write_jobs
from workmate_client.demo.story import MINA, RAVI, Office, Story
from workmate_client.demo.timeline import Timeline
from workmate_client.system import SystemClock

PHOTO_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".heic", ".webp"})


def main(arguments: Sequence[str], kit: Kit) -> int:
    """Run the demo and return its exit status."""
    options = _parser().parse_args(arguments)
    if options.check is not None:
        return _check_again(Places(options.check.absolute()), kit, as_json=options.json)
    with ExitStack() as stack:
        if options.keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workmate-")))
        else:
            folder = options.keep.absolute()
            if folder.exists() and any(folder.iterdir()):
                print(f"{folder} is not empty; name a new folder", file=sys.stderr)
                return 2
            folder.mkdir(parents=True, exist_ok=True)
        places = Places(folder)
        try:
            asyncio.run(_tell(options, places))
        except ProcessFailedError as error:
            print(f"the demo failed: {error}", file=sys.stderr)
            return 1
        status = _report(check_folder(places, kit), as_json=options.json)
        if not options.json:
            _suggest(places, kept=options.keep)
        return status


def _check_again(places: Places, kit: Kit, *, as_json: bool) -> int:
    if not places.verified.is_file():
        print(f"{places.folder} is no kept demo that came to its end", file=sys.stderr)
        return 2
    return _report(check_folder(places, kit), as_json=as_json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workmate demo", description="The whole journey on this laptop, with real processes."
    )
    parser.add_argument("--jobs", type=Path, metavar="FILE", help="jobs to import, as CSV or JSON")
    parser.add_argument(
        "--mapping", default="nyc311", metavar="NAME", help="how its columns read (nyc311)"
    )
    parser.add_argument("--photos", type=Path, metavar="DIR", help="photos to use as evidence")
    parser.add_argument("--headless", action="store_true", help="never open an interface")
    parser.add_argument("--json", action="store_true", help="JSON lines, the figures last")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep everything in this folder")
    parser.add_argument("--check", type=Path, metavar="DIR", help="only judge a kept folder again")
    return parser


async def _tell(options: argparse.Namespace, places: Places) -> None:
    clock = SystemClock()
    began = clock.monotonic()
    timeline = Timeline(lambda: clock.monotonic() - began, as_json=options.json)
    places.office.mkdir()
    jobs = options.jobs or write_jobs(places.folder / "jobs.csv")
    photos = _photos(options.photos or draw_photos(places.folder / "photos"))
    locations = ["--database", places.database, "--blobs", places.blobs]
    founded = await run_server_command(["init", *locations, "--tenant", "Demo"])
    passphrase = secrets.token_urlsafe(12)
    places.write_about({"passphrase": passphrase, "tenant_id": founded["tenant_id"]})
    async with (
        ServerProcess(places) as server,
        FlakyLink(server.port) as link,
        Receiver(places.received) as receiver,
    ):
        office = await asyncio.to_thread(Office, server.url, founded["admin_token"])
        story = Story(timeline, places, office, link, photos)
        story.seq_before_receiver = await _subscribe(office, receiver)
        try:
            await _chapters(story, (jobs, options.mapping), server, passphrase)
            await story.finish(receiver)
        finally:
            for laptop in story.laptops.values():
                await laptop.close()
    report = await run_server_command(["verify", *locations], accept=frozenset({0, 1}))
    places.verified.write_text(json.dumps(report) + "\n", encoding="utf-8")
    workers = {
        places.worker(name.split()[0].lower()).name: worker_id
        for name, worker_id in story.ids.items()
    }
    places.write_about(
        {
            "passphrase": passphrase,
            "tenant_id": founded["tenant_id"],
            "workers": workers,
            "events_before_receiver": story.seq_before_receiver,
        }
    )


async def _chapters(
    story: Story, jobs: tuple[Path, str], server: ServerProcess, passphrase: str
) -> None:
    await story.import_jobs(*jobs, server.url)
    await story.cancel_one()
    await story.enrol(RAVI, story.link_url, passphrase)
    await story.enrol(MINA, server.url, passphrase)
    await story.assign()
    await story.go_out()
    await story.work()
    await story.meanwhile()
    await story.come_back()
    await story.settle_conflicts()
    await story.take_over()
    await story.review()


async def _subscribe(office: Office, receiver: Receiver) -> int:
    """Let the receiver have the outbox; return how many events came before."""

    def subscribe() -> int:
        made = office.admin.call("POST", "/v1/subscriptions", {"url": receiver.url})
        receiver.trust(made["secret"])
        page = office.auditor.call("GET", "/v1/log?after=0&limit=500")
        return len(page["events"])

    return await asyncio.to_thread(subscribe)


def _photos(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ProcessFailedError(f"there is no folder {folder}")
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in PHOTO_ENDINGS)
    if not found:
        raise ProcessFailedError(f"there are no photos in {folder}")
    return found


def _report(figures: dict[str, Any], *, as_json: bool) -> int:
    faults = figures.pop("faults")
    if not as_json:
        print("\nChecked against the log, the journals and the receiver's file")
        for name, value in figures.items():
            print(f"  {name:<18} {value}")
    for fault in faults:
        print(f"  ! {fault}", file=sys.stderr)
    if as_json:
        print(json.dumps(figures))
    return 1 if faults else 0


def _suggest(places: Places, *, kept: Path | None) -> None:
    print("\nTo try next:")
    workmate, server = _program("workmate"), _program("workmate-server")
    if kept is None:
        folder = Path("workmate-demo")
        print(f"  {workmate} demo --keep {folder}")
        print(f"  {workmate} demo --check {folder}")
        print(f"  {server} verify --database sqlite:///{folder}/office/office.db")
        return
    laptop = places.worker(RAVI.split(maxsplit=1)[0].lower())
    passphrase = places.read_about()["passphrase"]
    variables = f"WORKMATE_HOME={quote(str(laptop))} WORKMATE_PASSPHRASE={quote(passphrase)}"
    print(f"  {variables} {workmate} jobs")
    print(f"  {variables} {workmate} receipts verify")
    print(f"  {server} verify --database {places.database} --blobs {places.blobs}")


def _program(name: str) -> str:
    """Return how a shell in this folder starts a program of this installation."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        return name
    here = Path.cwd()
    return quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
