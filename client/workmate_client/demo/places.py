"""Where the demo keeps things: one folder, which says by itself what is in it."""

import json
from pathlib import Path
from typing import Any


class Places:
    """The files and folders of one demo; never the user's own keyring or profile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.office = folder / "office"
        self.log = folder / "log.jsonl"
        self.batches = folder / "batches.jsonl"
        self.verified = folder / "verify.json"
        self.received = folder / "received.jsonl"
        self.imported = folder / "import.json"
        self.about = folder / "demo.json"

    @property
    def database(self) -> str:
        """The URL of the server's database."""
        return f"sqlite:///{self.office / 'office.db'}"

    @property
    def blobs(self) -> str:
        """The URL of the server's files."""
        return (self.office / "blobs").as_uri()

    def worker(self, name: str) -> Path:
        """Return the profile folder of one worker's laptop."""
        return self.folder / f"laptop-{name}"

    def write_about(self, about: dict[str, Any]) -> None:
        """Write down what a checker needs: the throw-away passphrase and who the workers are."""
        self.about.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")

    def read_about(self) -> dict[str, Any]:
        """Return what was written down."""
        about: dict[str, Any] = json.loads(self.about.read_text(encoding="utf-8"))
        return about


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON values of a file with one on each line."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
