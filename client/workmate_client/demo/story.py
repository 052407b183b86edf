"""The journey, chapter by chapter: what people do, and what goes wrong on the way.

Everything goes through the published API and the real device; what is told is what was answered.
"""

import asyncio
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workmate_client.demo.link import FlakyLink
from workmate_client.demo.office import Desk
from workmate_client.demo.places import Places
from workmate_client.demo.processes import Laptop, run_server_command
from workmate_client.demo.receiver import Receiver
from workmate_client.demo.timeline import Timeline

RAVI, MINA = "Ravi K.", "Mina S."
SKILLS = ["electrical", "plumbing"]
DRAIN_SECONDS = 60.0
SYNC_TRIES = 20


class Office:
    """The people of the office, each with a token of their own."""

    def __init__(self, url: str, admin_token: str) -> None:
        self._url = url
        self.admin = Desk(url, admin_token, "administrator")
        self._tokens: dict[str, str] = {}
        self.integration = self._hire("city portal", "service", ["integration"])
        self.dispatcher = self._hire("M. Das", "person", ["dispatcher"])
        self.supervisor = self._hire("A. Roth", "person", ["supervisor"])
        self.second = self._hire("B. Lind", "person", ["supervisor"])
        self.auditor = self._hire("auditor", "person", ["auditor"])
        self.integration_token = self._tokens["city portal"]

    def _hire(self, name: str, kind: str, roles: list[str]) -> Desk:
        principal = self.admin.call(
            "POST",
            "/v1/principals",
            {"kind": kind, "display_name": name, "roles": roles, "skills": [], "domains": []},
        )
        token = self.admin.call(
            "POST", "/v1/tokens", {"principal_id": principal["principal_id"], "roles": roles}
        )
        self._tokens[name] = token["token"]
        return Desk(self._url, token["token"], name)

    def hire_worker(self, name: str) -> tuple[str, str]:
        """Create a worker; return the principal's id and a one-time enrolment code."""
        principal = self.admin.call(
            "POST",
            "/v1/principals",
            {"kind": "person", "display_name": name, "roles": ["worker"], "skills": SKILLS},
        )
        code = self.admin.call(
            "POST", "/v1/enrolment-codes", {"principal_id": principal["principal_id"]}
        )
        return principal["principal_id"], code["code"]


class Story:
    """The state of the story while it is told; chapters are methods, called in order."""

    def __init__(
        self,
        timeline: Timeline,
        places: Places,
        office: Office,
        link: FlakyLink,
        photos: Sequence[Path],
    ) -> None:
        self._tell = timeline
        self._places = places
        self._office = office
        self._link = link
        self._photos = itertools.cycle([str(path) for path in photos])
        self.laptops: dict[str, Laptop] = {}
        self.ids: dict[str, str] = {}
        self._jobs: dict[str, list[str]] = {RAVI: [], MINA: []}
        self.link_url = link.url
        self.seq_before_receiver = 0

    async def _office_does(self, call: Any, *arguments: Any) -> Any:
        return await asyncio.to_thread(call, *arguments)

    async def import_jobs(self, jobs: Path, mapping: str, server_url: str) -> None:
        """Chapter: the city's jobs become tasks, or refusals that name row and rule."""
        self._tell.chapter("The office opens")
        report = await run_server_command(
            [
                *("import", str(jobs), "--mapping", mapping),
                *("--server", server_url, "--token", self._office.integration_token),
            ],
            accept=frozenset({0, 1}),
        )
        self._places.imported.write_text(_json(report), encoding="utf-8")
        self._tell.say(
            "city portal",
            f"{report['rows']} rows: {report['created']} tasks, {len(report['refused'])} refused",
        )
        for refusal in report["refused"][:5]:
            self._tell.say("city portal", f"refused row {refusal['row']}: {refusal['rule']}")

    async def assign(self) -> None:
        """Chapter: the dispatcher gives every job to one of two workers."""
        self._tell.chapter("A dispatcher assigns")
        tasks = await self._office_does(
            lambda: list(self._office.dispatcher.pages("/v1/tasks?state=unassigned&limit=500"))
        )
        for task, name in zip(tasks, itertools.cycle((RAVI, MINA))):
            await self._office_does(self._give, task, name, "shares the round")
            self._jobs[name].append(task["task_id"])
        self._tell.say(
            "M. Das", f"{len(self._jobs[RAVI])} jobs to {RAVI}, {len(self._jobs[MINA])} to {MINA}"
        )

    def _give(self, task: dict[str, Any], name: str, reason: str) -> None:
        body = {"worker_id": self.ids[name], "personal": {"selection_reason": reason}}
        self._office.dispatcher.call(
            "POST", f"/v1/tasks/{task['task_id']}/assign", body, version=task["version"]
        )

    async def enrol(self, name: str, server_url: str, passphrase: str) -> None:
        """A worker's laptop is bound to the worker, with keys in a vault of its own."""
        worker_id, code = await self._office_does(self._office.hire_worker, name)
        folder = self._places.worker(name.split(maxsplit=1)[0].lower())
        laptop = Laptop(name, folder, passphrase)
        await laptop.start()
        await laptop.ask("enrol", server=server_url, code=code)
        self.laptops[name], self.ids[name] = laptop, worker_id
        self._tell.say(name, "laptop enrolled with a one-time code; the server's key is pinned")

    async def go_out(self) -> None:
        """Chapter: both laptops take their jobs along; from here on there is no network."""
        self._tell.chapter("Two workers go out")
        for name, laptop in self.laptops.items():
            answer = await laptop.ask("sync")
            self._tell.say(name, f"{answer['pulled']} jobs on the laptop; goes offline")

    async def work(self) -> None:
        """Chapter: offline work in both places, and one laptop that goes out in the middle."""
        self._tell.chapter("A day without network")
        await asyncio.gather(self._ravis_day(), self._minas_day())

    async def _ravis_day(self) -> None:
        laptop, jobs = self.laptops[RAVI], self._jobs[RAVI]
        chain = jobs[0]
        await laptop.ask("travel", task_id=chain)
        await laptop.ask("note", task_id=chain, text="gate code is 4711 <b>ask</b> for the key")
        await laptop.ask("gather", task_id=chain, photo=[next(self._photos)], name=RAVI)
        await laptop.ask("submit", task_id=chain)
        self._tell.say(RAVI, "first job: accepted, travelled, arrived, noted, proof submitted")
        for task_id in jobs[1:]:
            await self._finish(laptop, task_id)
        self._tell.say(RAVI, f"{len(jobs)} jobs done, all saved on the laptop")

    async def _minas_day(self) -> None:
        laptop, jobs = self.laptops[MINA], self._jobs[MINA]
        half = len(jobs) // 2
        for task_id in jobs[:half]:
            await self._finish(laptop, task_id)
        await laptop.ask("travel", task_id=jobs[half])
        await laptop.send("gather", task_id=jobs[half], photo=[next(self._photos)], name=MINA)
        await laptop.kill()
        self._tell.say(MINA, "the laptop went out in the middle of a proof (SIGKILL)")
        await laptop.start()
        status = await laptop.ask("status")
        self._tell.say(MINA, f"started again: {status['pending']} acts are still there")
        for task_id in jobs[half:]:
            await self._finish(laptop, task_id)
        self._tell.say(MINA, f"{len(jobs)} jobs done, all saved on the laptop")

    async def _finish(self, laptop: Laptop, task_id: str) -> None:
        await laptop.ask(
            "finish_job", task_id=task_id, photo=[next(self._photos)], name=laptop.name
        )

    async def meanwhile(self) -> None:
        """Chapter: the office changes two jobs that workers are busy with."""
        self._tell.chapter("Meanwhile in the office")
        dispatcher = self._office.dispatcher
        amended, moved = self._jobs[RAVI][0], self._jobs[MINA][0]
        await self._office_does(dispatcher.act, amended, "amend", {"priority": 1})
        self._tell.say("M. Das", "amended a job of Ravi's in the middle of his offline chain")
        task = await self._office_does(dispatcher.task, moved)
        await self._office_does(self._give, task, RAVI, "nearer after all")
        self._tell.say("M. Das", "gave one of Mina's jobs to Ravi while she is offline")

    async def come_back(self) -> None:
        """Chapter: the network returns, badly; everything arrives once."""
        self._tell.chapter("The network returns, badly")
        self._link.lose_next_reply_to(b"POST /v1/sync ")
        answer = await self.laptops[RAVI].ask("sync")
        lost = self._link.lost_replies
        self._tell.say("the link", f"{lost} reply lost after the server had committed")
        self._tell.say(
            RAVI, f"the same bytes again: {answer['sent']} acts answered, none done twice"
        )
        await asyncio.gather(*(self._sync_all(name) for name in self.laptops))

    async def _sync_all(self, name: str) -> None:
        laptop = self.laptops[name]
        sent = files = conflicts = 0
        for _ in range(SYNC_TRIES):
            answer = await laptop.ask("sync")
            sent += answer["sent"]
            files += answer["files"]
            conflicts += answer["conflicts"] + answer["rejected"]
            if not answer["waiting"] and answer["stopped"] is None:
                break
            await asyncio.sleep(0.5)  # noqa: TID251 - a person tries again after a moment
        self._tell.say(name, f"{sent} acts answered, {files} files sent, {conflicts} not applied")

    async def settle_conflicts(self) -> None:
        """Chapter: what was not applied is decided by the workers."""
        self._tell.chapter("What was not applied is decided")
        for name, laptop in self.laptops.items():
            for one in (await laptop.ask("conflicts"))["conflicts"]:
                self._tell.say(name, f"{', '.join(one['acts'])}: {one['sentence']}")
                if name == RAVI:
                    again = await laptop.ask("redo", command_id=one["command_id"])
                    self._tell.say(name, f"does all {again['acts']} again with one decision")
                else:
                    reason = "the job is Ravi's now; the office has my evidence"
                    await laptop.ask("set_aside", command_id=one["command_id"], reason=reason)
                    self._tell.say(name, f"sets it aside: {reason}")
            await self._sync_all(name)

    async def take_over(self) -> None:
        """Chapter: Mina's evidence on the job that was given away is used, not lost."""
        self._tell.chapter("Work done on a job that was given away")
        moved, laptop = self._jobs[MINA][0], self.laptops[RAVI]
        await laptop.ask("travel", task_id=moved)
        await self._sync_all(RAVI)
        supervisor, office = self._office.supervisor, self._office
        reviews = await self._office_does(lambda: list(supervisor.pages("/v1/reviews?limit=500")))
        waiting = [one for one in reviews if one["task"]["task_id"] == moved]
        manifest_id = waiting[0]["manifest_id"]
        self._tell.say("A. Roth", "sees the evidence that Mina handed over")
        override = {
            "on_behalf_of": self.ids[MINA],
            "personal": {"reason": "her proof is complete"},
        }
        body = {"manifest_id": manifest_id, "override": override}
        await self._office_does(supervisor.act, moved, "submit-proof", body)
        await self._office_does(
            office.second.act, moved, "approve-proof", {"manifest_id": manifest_id}
        )
        self._tell.say("B. Lind", "approved it (four eyes: not the one who took it over)")

    async def review(self) -> None:
        """Chapter: one proof goes back with a reason, its successor and all others pass."""
        self._tell.chapter("The supervisor reviews")
        supervisor = self._office.supervisor
        returned = self._jobs[RAVI][1]
        task = await self._office_does(supervisor.task, returned)
        await self._office_does(
            supervisor.act,
            returned,
            "reject-proof",
            {"manifest_id": task["current_manifest_id"], "personal": {"reason": "blurred"}},
        )
        self._tell.say("A. Roth", "rejected one proof: blurred")
        laptop = self.laptops[RAVI]
        await self._sync_all(RAVI)
        await self._finish(laptop, returned)
        await self._sync_all(RAVI)
        self._tell.say(RAVI, "made the proof again and submitted it")
        approved = await self._office_does(self._approve_all)
        self._tell.say("A. Roth", f"approved {approved} proofs whose policy passes")

    def _approve_all(self) -> int:
        supervisor = self._office.supervisor
        approved = 0
        for task in list(supervisor.pages("/v1/tasks?state=proof_pending&limit=500")):
            supervisor.call(
                "POST",
                f"/v1/tasks/{task['task_id']}/approve-proof",
                {"manifest_id": task["current_manifest_id"]},
                version=task["version"],
            )
            approved += 1
        return approved

    async def cancel_one(self) -> None:
        """One job is cancelled before anybody went out for it."""
        tasks = await self._office_does(
            lambda: list(self._office.dispatcher.pages("/v1/tasks?state=unassigned&limit=500"))
        )
        await self._office_does(
            self._office.dispatcher.act,
            tasks[-1]["task_id"],
            "cancel",
            {"personal": {"reason": "reported twice"}},
        )
        self._tell.say("M. Das", "cancelled one job: reported twice")

    async def finish(self, receiver: Receiver) -> None:
        """Chapter: everybody syncs a last time, and the outbox is emptied."""
        self._tell.chapter("The end of the day")
        for name in self.laptops:
            await self._sync_all(name)
            status = await self.laptops[name].ask("status")
            self._tell.say(
                name,
                f"nothing pending; {status['proven']} of {status['receipts']} receipts verify",
            )
        newest = await self._office_does(self._export_log)
        for _ in range(int(DRAIN_SECONDS / 0.2)):
            if receiver.distinct_events >= newest:
                break
            await asyncio.sleep(0.2)  # noqa: TID251 - waits for the outbox
        self._tell.say("receiver", f"{receiver.distinct_events} events arrived, each once by id")

    def _export_log(self) -> int:
        auditor = self._office.auditor
        count = 0
        with self._places.log.open("w", encoding="utf-8") as file:
            for event in _after(auditor, "/v1/log", "events"):
                file.write(_json(event))
                count += 1
        with self._places.batches.open("w", encoding="utf-8") as file:
            for batch in _after(auditor, "/v1/log/batches", "items"):
                file.write(_json(batch))
        return count - self.seq_before_receiver


def _after(desk: Desk, path: str, field: str) -> Any:
    place = "0"
    while True:
        page = desk.call("GET", f"{path}?after={place}&limit=500")
        yield from page[field]
        if page.get("next") is None:
            return
        place = page["next"]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
