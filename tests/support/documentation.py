"""The documentation's own programs, `docs/generate.py` and `docs/check.py`, as modules."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load(name: str) -> ModuleType:
    """Import a module as it is imported when one of the programs runs: from the folder `docs`."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


generate = load("generate")
check = load("check")
codes = load("pages.codes")
fields = load("pages.fields")
lifecycles = load("pages.lifecycles")
markdown = load("pages.markdown")
settings = load("pages.settings")
