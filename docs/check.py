"""Check what no other tool checks: that the documentation is true, and the house rules of the text.

    python docs/check.py     prints one line for each fault and exits 1 if there is any

Generated pages are current, links and anchors lead somewhere, the `make` commands that are shown
exist, decision records are whole, no function is too long, and nothing names a path of somebody's
machine or the address of a package registry.
"""

import argparse
import ast
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

import generate

FUNCTION_LINES_MAX = 70
"""Lines of the longest function, from its `def` to its end."""

DECISION_SECTIONS = ("Status", "Context", "Decision", "Rejected", "Consequences")
"""The headings that every decision record has, in this order."""

SOURCES = ("client", "server", "shared")
TEXTS = (".ci", "Makefile", "README.md", "docs", "pyproject.toml", "tests", *SOURCES)
"""What the project says in words: folders are read whole."""
TEXT_SUFFIXES = frozenset({"", ".css", ".html", ".json", ".md", ".py", ".tcss", ".toml", ".txt"})

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*(\w*)")
_CODE_SPAN = re.compile(r"(`+).+?\1")
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s*(\S+)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*$")
_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_TARGET = re.compile(r"^([A-Za-z][\w .-]*?)\s*:(?!=)", re.MULTILINE)
_OPERATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")"})
# Written so that no pattern matches its own text.
_FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~-])/(?:wor[k]|tmp/w[m]|tmp/[v])(?![\w.-])"),
    "the address of a package registry": re.compile(
        r"pyp[i]\.org|pythonhoste[d]\.org|npmj[s]\.(?:com|org)|crate[s]\.io|proxy\.golan[g]\.org"
    ),
}


def main(arguments: list[str]) -> int:
    """Print every fault of the project; return the exit code."""
    parser = argparse.ArgumentParser(description="Check the documentation and the house rules.")
    parser.add_argument("--root", type=Path, default=generate.ROOT, help="the project's folder")
    root = parser.parse_args(arguments).root
    faults = [fault for check in CHECKS for fault in check(root)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def check_generated(root: Path) -> Iterator[str]:
    """Yield a fault for every generated page that is not what the code says now."""
    for name in generate.stale(root):
        yield f"{name}: not what the code says now; run make docs"


def check_links(root: Path) -> Iterator[str]:
    """Yield a fault for every relative link that leads to no file or to no heading."""
    for page in _pages(root):
        for number, line in _prose(page):
            for match in _LINK.finditer(_CODE_SPAN.sub("", line)):
                target = match[1] or match[2]
                if _SCHEME.match(target):
                    continue
                wrong = _follow(root, page, target)
                if wrong:
                    yield f"{_place(root, page, number)}: link to {target}: {wrong}"


def check_commands(root: Path) -> Iterator[str]:
    """Yield a fault for every `make` command in a shell block whose target the Makefile lacks."""
    makefile = root / "Makefile"
    known = {
        name
        for names in _TARGET.findall(_read(makefile) if makefile.exists() else "")
        for name in names.split()
    }
    for page in _pages(root):
        for number, line in _fenced(page, "sh"):
            for name in _make_targets(line):
                if name not in known:
                    yield f"{_place(root, page, number)}: the Makefile has no target {name}"


def check_decisions(root: Path) -> Iterator[str]:
    """Yield a fault for every decision record without its sections in their order."""
    for page in sorted((root / "docs" / "decisions").glob("[0-9]*.md")):
        found = [title for level, title in _headings(page) if level > 1]
        if [title for title in found if title in DECISION_SECTIONS] != list(DECISION_SECTIONS):
            wanted = ", ".join(DECISION_SECTIONS)
            yield f"{_place(root, page)}: a decision has the sections {wanted}, in this order"


def check_functions(root: Path) -> Iterator[str]:
    """Yield a fault for every function of the packages that is too long."""
    for source in _files(root, SOURCES, frozenset({".py"})):
        try:
            tree = ast.parse(_read(source))
        except SyntaxError as error:
            yield f"{_place(root, source, error.lineno or 1)}: not Python: {error.msg}"
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    place = _place(root, source, node.lineno)
                    yield f"{place}: {node.name} has {lines} lines, {FUNCTION_LINES_MAX} at most"


def check_words(root: Path) -> Iterator[str]:
    """Yield a fault for every line that names a machine's path or a registry's address."""
    for text in _files(root, TEXTS, TEXT_SUFFIXES):
        for number, line in enumerate(_read(text).splitlines(), start=1):
            for what, pattern in _FORBIDDEN.items():
                if pattern.search(line):
                    yield f"{_place(root, text, number)}: names {what}"


CHECKS: tuple[Callable[[Path], Iterable[str]], ...] = (
    check_generated,
    check_links,
    check_commands,
    check_decisions,
    check_functions,
    check_words,
)
"""Every check: from the project's folder to its faults, each in one line."""


def slug(heading: str) -> str:
    """Return the anchor of a heading as code hosts make it: `2. Who's who` is `2-whos-who`."""
    return _NOT_IN_SLUG.sub("", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page; a heading's second occurrence ends in `-1`, and so on."""
    seen: dict[str, int] = {}
    found = {name for _, line in _prose(page) for name in _ANCHOR.findall(line)}
    for _, title in _headings(page):
        name = slug(title)
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    return found


def _follow(root: Path, page: Path, target: str) -> str:
    """Return what is wrong with a relative link, or nothing."""
    path, _, anchor = unquote(target).partition("#")
    found = (page.parent / path).resolve() if path else page
    if path.startswith("/") or not found.is_relative_to(root.resolve()):
        return "leads out of the project"
    if not found.exists():
        return "there is no such file"
    if anchor and found.suffix == ".md" and anchor not in anchors(found):
        return "there is no such heading"
    return ""


def _make_targets(line: str) -> Iterator[str]:
    """Yield the targets of every `make` on a line of shell."""
    lexer = shlex.shlex(line.strip().removeprefix("$ "), posix=True, punctuation_chars=True)
    try:
        words = list(lexer)
    except ValueError:
        # A quotation that goes on in the next line.
        words = line.split()
    inside = starts = True
    for word in words:
        if word in _OPERATORS:
            inside = starts = True
        elif starts and "=" not in word:
            inside, starts = word == "make", False
        elif inside and not starts and "=" not in word and not word.startswith("-"):
            yield word


def _pages(root: Path) -> Iterator[Path]:
    return _files(root, ("README.md", "docs"), frozenset({".md"}))


def _files(root: Path, names: Iterable[str], suffixes: frozenset[str]) -> Iterator[Path]:
    for name in names:
        place = root / name
        found = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in found:
            if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _place(root: Path, path: Path, line: int | None = None) -> str:
    name = path.relative_to(root).as_posix()
    return f"{name}:{line}" if line else name


def _headings(page: Path) -> Iterator[tuple[int, str]]:
    for _, line in _prose(page):
        match = _HEADING.match(line)
        if match:
            yield len(match[1]), match[2]


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line, language in _lines(page) if language is None)


def _fenced(page: Path, wanted: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line, language in _lines(page) if language == wanted)


def _lines(page: Path) -> Iterator[tuple[int, str, str | None]]:
    """Yield line number, line, and the language of the fenced block that it stands in."""
    fence: tuple[str, str] | None = None
    for number, line in enumerate(_read(page).splitlines(), start=1):
        match = _FENCE.match(line)
        if fence is None and match:
            fence = (match[1], match[2])
        elif fence and match and match[1].startswith(fence[0]) and not match[2]:
            fence = None
        else:
            yield number, line, fence[1] if fence else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
