"""Write the reference pages that the code itself knows, or check that they are up to date.

    python docs/generate.py           writes docs/reference
    python docs/generate.py --check   exits 1 and names every page that would change

The same code always gives the same bytes. Only files that begin with the marker of a generated page
are ever overwritten or removed.
"""

import argparse
import sys
from pathlib import Path

from pages.codes import codes_page
from pages.lifecycles import authorisation_page, lifecycle_page
from pages.markdown import MARKER
from pages.messages import messages_page
from pages.settings import settings_page

import workmate_client.config
import workmate_server.config
from workmate_shared.kernel.catalogue import CATALOGUE
from workmate_shared.wire.registry import KINDS

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = Path("docs", "reference")


def pages() -> dict[str, str]:
    """Return the content of every generated page by its name in `docs/reference`."""
    tables = {f"{kind.name}-lifecycle.md": kind.lifecycle.table for kind in KINDS}
    return {
        **{name: lifecycle_page(table) for name, table in tables.items()},
        "authorisation.md": authorisation_page(tables.values()),
        "codes.md": codes_page(CATALOGUE.values()),
        "messages.md": messages_page(KINDS),
        "device-settings.md": settings_page(
            "Limits of the device",
            workmate_client.config,
            f"The profile lies in the folder that `{workmate_client.config.HOME_VARIABLE}` names, "
            "else in the platform's folder for data.",
        ),
        "server-settings.md": settings_page(
            "Limits of the server",
            workmate_server.config,
            "Where database, bytes and keys lie is said by `WORKMATE_DATABASE`, `WORKMATE_BLOBS` "
            "and `WORKMATE_KEYS`, or by the options of the same names.",
        ),
    }


def stale(root: Path) -> list[str]:
    """Return the paths of pages that are missing, outdated or no longer made, sorted."""
    folder = root / REFERENCE
    made = pages()
    wrong = {name for name, text in made.items() if _read(folder / name) != text}
    return [(REFERENCE / name).as_posix() for name in sorted(wrong | _orphans(folder, made))]


def write(root: Path) -> list[str]:
    """Bring the pages up to date; return the paths of those that changed.

    Raises FileExistsError where a page would replace a file that is not a generated one.
    """
    changed = stale(root)
    made = pages()
    for path in (root / name for name in changed):
        if path.exists() and not _read(path).startswith(MARKER):
            raise FileExistsError(f"{path} is not a generated page")
        if path.name in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[path.name], encoding="utf-8")
        else:
            path.unlink()
    return changed


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _orphans(folder: Path, made: dict[str, str]) -> set[str]:
    return {
        path.name
        for path in folder.glob("*.md")
        if path.name not in made and _read(path).startswith(MARKER)
    }


def main(arguments: list[str]) -> int:
    """Write or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the generated pages of the reference.")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a page is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    options = parser.parse_args(arguments)
    if options.check:
        outdated = stale(options.root)
        for name in outdated:
            print(f"{name}: not what the code says now; run make docs")
        return 1 if outdated else 0
    for name in write(options.root):
        print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
