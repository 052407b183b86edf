"""The server's command line, as an operator meets it: real processes on real files."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from support.server_process import (
    TENANT,
    ApiError,
    Desk,
    Office,
    Place,
    begin,
    copy_office,
    hire,
    make_place,
    run_command,
    run_here,
    serving,
    two_serving,
)
from workmate_server.identity.keyfolder import KeyFolder
from workmate_server.store.sqlite import SqliteDatabase
from workmate_server.telemetry.system import SystemEntropy
from workmate_shared.wire.dsse import key_id

JOBS = [
    {"external_id": f"job-{number}", "personal": {"address": f"Lange Gasse {number}"}}
    for number in range(5)
]


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return begin(tmp_path_factory.mktemp("begun"))


@pytest.fixture
def office(begun: Office, tmp_path: Path) -> Office:
    return copy_office(begun, tmp_path / "office")


def write_jobs(folder: Path, jobs: object = JOBS) -> str:
    file = folder / "jobs.json"
    file.write_text(json.dumps(jobs))
    return str(file)


def change_database(place: Place, *statements: str) -> None:
    keys = KeyFolder.open(place.keys)
    database = SqliteDatabase(place.database, keys.database_key)
    try:
        with database.write() as connection:
            for statement in statements:
                connection.execute(text(statement))
    finally:
        database.close()


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in (".db-shm", ".db-wal")
    }


def test_init_tells_tenant_token_lineage_and_the_public_keys_under_their_ids(
    tmp_path: Path,
) -> None:
    ended = run_command(make_place(tmp_path), "init", "--tenant", TENANT)
    assert ended.code == 0
    assert set(ended.result) == {"tenant_id", "admin_token", "lineage", "server_keys"}
    assert ended.result["admin_token"].startswith("wmt_")
    for name, public_key in ended.result["server_keys"].items():
        assert name == key_id(bytes.fromhex(public_key))
    assert "Back this folder up apart from the database" in ended.stderr


def test_what_init_makes_is_for_its_own_user_only(office: Office) -> None:
    made = [office.place.keys, office.place.database, office.place.folder / "blobs"]
    made += office.place.keys.rglob("*")
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_the_administrators_token_works_at_the_server_that_init_began(office: Office) -> None:
    with serving(office) as server:
        listed = server.desk(office.admin_token).call("GET", "/v1/principals")
    assert {"admin"} in [set(one["roles"]) for one in listed["items"]]


def test_a_second_init_is_refused_and_changes_nothing(office: Office) -> None:
    before = files_of(office.place.folder)
    ended = run_command(office.place, "init", "--tenant", "Other")
    assert (ended.code, ended.result) == (1, None)
    assert ended.error["code"] == "already_initialised"
    assert files_of(office.place.folder) == before


def test_init_with_other_keys_on_an_existing_database_is_refused_and_makes_none(
    office: Office, tmp_path: Path
) -> None:
    elsewhere = Place(office.place.folder, tmp_path / "other")
    ended = run_here(elsewhere, "init", "--tenant", TENANT)
    assert ended.error["code"] == "keys_missing"
    assert not elsewhere.keys.exists()


def test_init_with_the_keys_of_another_database_is_refused(office: Office, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ended = run_here(Place(other, office.place.keys), "init", "--tenant", TENANT)
    assert ended.error["code"] == "keys_in_use"
    assert not (other / "office.db").exists()


@pytest.mark.parametrize("command", ["serve", "migrate", "verify", "rebuild"])
def test_a_command_on_nothing_says_what_to_run_and_makes_nothing(
    command: str, tmp_path: Path
) -> None:
    ended = run_here(make_place(tmp_path), command)
    assert (ended.code, ended.error["code"]) == (1, "not_initialised")
    assert "init" in ended.error["detail"]
    assert list(tmp_path.iterdir()) == []


def test_missing_keys_are_told_and_not_made(office: Office) -> None:
    shutil.rmtree(office.place.keys)
    for command in ("serve", "verify", "rebuild"):
        assert run_here(office.place, command).error["code"] == "keys_missing"
    assert not office.place.keys.exists()


def test_keys_that_others_can_read_are_refused(office: Office) -> None:
    (office.place.keys / "database.key").chmod(0o644)
    assert run_here(office.place, "serve").error["code"] == "keys_unsafe_mode"


def test_keys_of_another_server_do_not_open_the_database(office: Office, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    stranger = Place(office.place.folder, begin(other).place.keys)
    before = office.place.database.read_bytes()
    for command in ("serve", "verify", "rebuild", "migrate"):
        ended = run_here(stranger, command)
        assert (ended.code, ended.error["code"]) == (1, "database_unreadable")
    assert office.place.database.read_bytes() == before


def test_a_newer_schema_is_refused_by_every_command(office: Office) -> None:
    change_database(office.place, "UPDATE alembic_version SET version_num = 'from-the-future'")
    jobs = write_jobs(office.place.folder)
    for command in (["serve"], ["migrate"], ["verify"], ["rebuild"], ["import", jobs]):
        ended = run_here(office.place, *command)
        assert (ended.code, ended.error["code"]) == (1, "schema_version")
        assert "newer" in ended.error["detail"]


def test_an_older_schema_is_refused_until_migrate_has_run(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    KeyFolder.create(place.keys, SystemEntropy())
    change_database(place, "PRAGMA user_version = 1")
    refused = run_here(place, "serve")
    assert (refused.code, refused.error["code"]) == (1, "schema_version")
    assert "workmate-server migrate" in refused.error["detail"]
    assert run_here(place, "migrate").result == {"changed": True}
    assert run_here(place, "migrate").result == {"changed": False}
    assert run_here(place, "serve").error["code"] == "not_initialised"
    assert run_here(place, "init", "--tenant", TENANT).code == 0


def test_serve_prints_one_json_line_and_ends_with_0_on_sigterm_and_sigint(office: Office) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with serving(office) as server:
            assert server.stop(number) == 0
            assert server.process.stdout is not None
            assert server.process.stdout.read() == ""
            assert server.log.read_text() == ""


def test_an_address_in_use_is_told(office: Office) -> None:
    with serving(office) as server:
        port = server.url.rpartition(":")[2]
        ended = run_command(office.place, "serve", "--port", port)
    assert (ended.code, ended.error["code"]) == (1, "address_unavailable")


def test_the_help_of_serve_says_that_tls_sits_in_front() -> None:
    program = [sys.executable, "-m", "workmate_server.cli", "serve", "--help"]
    told = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert "TLS sits in front" in " ".join(told.split())


def test_what_was_acknowledged_under_load_is_there_after_sigterm(office: Office) -> None:
    acknowledged: list[str] = []
    enough = Event()

    def create(desk: Desk, worker: int) -> None:
        for number in range(10_000):
            name = f"load-{worker}-{number}"
            try:
                desk.call("POST", "/v1/tasks", {"external_id": name}, key="")
            except (ApiError, OSError):
                return
            acknowledged.append(name)
            if len(acknowledged) >= 40:
                enough.set()

    with serving(office) as server, ThreadPoolExecutor(8) as pool:
        desk = hire(server.desk(office.admin_token), "svc", ["integration"])
        for worker in range(8):
            pool.submit(create, desk, worker)
        assert enough.wait(60)
        assert server.stop() == 0
    assert run_command(office.place, "verify").result["clean"]
    with serving(office) as server:
        for name in acknowledged:
            listed = Desk(server.url, desk.token).call("GET", f"/v1/tasks?external_id={name}")
            assert len(listed["items"]) == 1


def test_whoever_waits_for_changes_holds_up_no_server_that_is_told_to_stop(office: Office) -> None:
    with serving(office) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), 60) as waiting:
            waiting.sendall(
                b"GET /v1/sync/wait?timeout=50 HTTP/1.1\r\nHost: office\r\n"
                b"Authorization: Bearer " + office.admin_token.encode() + b"\r\n\r\n"
            )
            # Connections are taken in order: when this one is answered, the other has been taken.
            server.desk(office.admin_token).call("GET", "/health/live")
            assert server.stop() == 0
            answer = b"".join(iter(lambda: waiting.recv(65_536), b""))
    assert b" 503 " in answer.splitlines()[0]
    assert b"shutting_down" in answer


class Receiver(BaseHTTPRequestHandler):
    """Takes webhooks and puts the kinds of their events in a queue."""

    events: Queue[str] = Queue()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.events.put(json.loads(body)["type"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_one_serving_process_delivers_webhooks_too(office: Office) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        Thread(target=receiver.serve_forever, daemon=True).start()
        with serving(office, "--allow-private-webhooks") as server:
            admin = server.desk(office.admin_token)
            url = f"http://127.0.0.1:{receiver.server_port}/"
            admin.call("POST", "/v1/subscriptions", {"url": url})
            hire(admin, "svc", ["integration"])
            assert Receiver.events.get(timeout=60) == "principal.created"
            assert Receiver.events.get(timeout=60) == "credential.added"
        receiver.shutdown()


def test_two_processes_on_one_database_are_one_server(office: Office) -> None:
    with two_serving(office) as (one, two):
        desk = hire(one.desk(office.admin_token), "svc", ["integration"])
        made = desk.call("POST", "/v1/tasks", {"external_id": "shared"}, key="")
        task_id = made["task"]["task_id"]
        assert Desk(two.url, desk.token).call("GET", f"/v1/tasks/{task_id}")["version"] == 1
        again = Desk(two.url, desk.token).call(
            "POST", "/v1/tasks", {"external_id": "shared"}, key=""
        )
        assert again["receipt"] == made["receipt"]
    assert run_command(office.place, "verify").result["clean"]


def test_a_database_older_than_what_was_signed_is_refused_and_named(office: Office) -> None:
    place = office.place
    backup = place.folder / "backup.db"
    shutil.copy(place.database, backup)
    jobs = write_jobs(place.folder)
    assert run_here(place, "import", jobs).code == 0
    for leftover in place.folder.glob("office.db-*"):
        leftover.unlink()
    shutil.copy(backup, place.database)
    for command in (["serve"], ["import", jobs]):
        ended = run_here(place, *command)
        assert (ended.code, ended.error["code"]) == (1, "log_behind_head")
        assert "bring back the newer one" in ended.error["detail"]
    found = run_here(place, "verify").result["findings"]
    assert [finding["fault"] for finding in found] == ["missing"]


def test_a_copied_header_that_cannot_be_read_is_refused_by_name(office: Office) -> None:
    [copy] = (office.place.keys / "heads").iterdir()
    copy.write_bytes(copy.read_bytes()[:-20])
    assert run_here(office.place, "serve").error["code"] == "head_copy_damaged"


def test_importing_twice_over_the_database_creates_every_task_once(office: Office) -> None:
    jobs = write_jobs(office.place.folder)
    first = run_command(office.place, "import", jobs)
    assert (first.code, first.result["created"], first.result["unchanged"]) == (0, 5, 0)
    second = run_command(office.place, "import", jobs)
    assert (second.code, second.result["created"], second.result["unchanged"]) == (0, 0, 5)
    assert run_command(office.place, "verify").result["clean"]


def test_a_job_is_the_same_whether_it_came_over_the_api_or_by_an_import(office: Office) -> None:
    jobs = write_jobs(office.place.folder)
    with serving(office) as server:
        desk = hire(server.desk(office.admin_token), "svc", ["integration"])
        made = desk.call("POST", "/v1/tasks", {"source": "import", **JOBS[0]}, key="")
        assert made["outcome"] == "committed"
        direct = run_command(office.place, "import", jobs).result
        assert (direct["created"], direct["unchanged"]) == (4, 1)
        over_http = run_command(
            office.place, "import", jobs, "--server", server.url, "--token", desk.token
        ).result
        assert (over_http["created"], over_http["unchanged"]) == (0, 5)


def test_an_import_over_http_is_answered_row_by_row(office: Office) -> None:
    jobs = [*JOBS, {"external_id": "job-0", "priority": 1}, {"external_id": ""}]
    file = write_jobs(office.place.folder, jobs)
    with serving(office) as server:
        desk = hire(server.desk(office.admin_token), "svc", ["integration"])
        token = {"WORKMATE_TOKEN": desk.token}
        ended = run_command(office.place, "import", file, "--server", server.url, environment=token)
        changed = [{**job, "priority": 9} for job in JOBS]
        other = write_jobs(office.place.folder, changed)
        conflicts = run_command(
            office.place, "import", other, "--server", server.url, environment=token
        )
    assert (ended.code, ended.result["created"]) == (0, 5)
    rules = [(one["row"], one["rule"]) for one in ended.result["refused"]]
    assert rules == [(6, "external_id_conflict"), (7, "external_id_missing")]
    assert {one["rule"] for one in conflicts.result["refused"]} == {"external_id_conflict"}


def test_an_import_with_a_wrong_token_stops_and_accounts_for_every_row(office: Office) -> None:
    jobs = write_jobs(office.place.folder, [{"external_id": f"n{n}"} for n in range(30)])
    with serving(office) as server:
        ended = run_command(
            office.place, "import", jobs, "--server", server.url, "--token", "wmt_wrong"
        )
    assert (ended.code, ended.result["rows"], ended.result["complete"]) == (1, 30, False)
    assert {one["rule"] for one in ended.result["refused"]} == {"unauthenticated", "not_sent"}
    assert len(ended.result["refused"]) == 30


def test_a_token_is_not_sent_over_plain_http_to_another_machine(office: Office) -> None:
    jobs = write_jobs(office.place.folder)
    ended = run_here(office.place, "import", jobs, "--server", "http://192.0.2.1", "--token", "x")
    assert (ended.code, ended.error["code"]) == (1, "server_url_invalid")


def test_an_import_beside_a_running_server_is_seen_by_it(office: Office) -> None:
    with serving(office) as server:
        assert run_command(office.place, "import", write_jobs(office.place.folder)).code == 0
        desk = hire(server.desk(office.admin_token), "dora", ["dispatcher"])
        assert len(desk.call("GET", "/v1/tasks")["items"]) == len(JOBS)


def test_verify_names_what_was_changed_behind_the_servers_back(office: Office) -> None:
    change_database(office.place, "UPDATE principal SET state = 'deactivated'")
    ended = run_here(office.place, "verify")
    assert ended.code == 1
    assert not ended.result["clean"]
    assert {finding["fault"] for finding in ended.result["findings"]} == {"differs"}
    assert all(finding["place"].startswith("principal ") for finding in ended.result["findings"])


def test_rebuild_tells_what_differed_and_makes_it_as_the_log_says(office: Office) -> None:
    whole = run_command(office.place, "rebuild")
    assert (whole.code, whole.result["identical"]) == (0, True)
    assert whole.result["aggregates"] == 2
    change_database(office.place, "UPDATE principal SET state = 'deactivated'")
    mended = run_here(office.place, "rebuild")
    assert (mended.code, mended.result["identical"]) == (1, False)
    assert mended.result["differences"]
    assert mended.result["findings"] == []
    assert run_here(office.place, "verify").result["clean"]


def test_outbox_list_and_redrive_know_the_subscriptions(office: Office) -> None:
    listed = run_here(office.place, "outbox", "list").result["subscriptions"]
    [rule] = listed
    assert rule["kind"] == "rule:automatic_approval"
    redriven = run_here(office.place, "outbox", "redrive", rule["subscription_id"])
    assert redriven.result == {"redriven": 0}
    unknown = run_here(office.place, "outbox", "redrive", "nobody")
    assert unknown.error["code"] == "subscription_unknown"
