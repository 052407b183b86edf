import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from support.documentation import DOCS, ROOT, check, generate

LONG = "def long():\n" + "    x = 1\n" * 70
FINE = "def fine():\n" + "    x = 1\n" * 69
DECISION = "# 1. So\n\n" + "".join(f"## {name}\n\nText.\n\n" for name in check.DECISION_SECTIONS)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the project's documentation and Makefile, and a module in each package."""
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for side in check.SOURCES:
        (tmp_path / side).mkdir()
        (tmp_path / side / "module.py").write_text(FINE)
    generate.write(tmp_path)
    return tmp_path


def faults(root: Path, only: Callable[[Path], Iterable[str]]) -> list[str]:
    return list(only(root))


def test_a_tree_without_faults_passes_in_silence(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main(["--root", str(tree)]) == 0
    assert capsys.readouterr().out == ""


def test_every_fault_is_one_line_and_the_exit_code_is_one(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "docs/reference/codes.md").unlink()
    (tree / "client/module.py").write_text(LONG)
    assert check.main(["--root", str(tree)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "docs/reference/codes.md: not what the code says now; run make docs"
    assert lines[-1] == "client/module.py:1: long has 71 lines, 70 at most"
    assert all(": " in line for line in lines)


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("missing.md", "there is no such file"),
        ("tour.md#no-such-place", "there is no such heading"),
        ("#nowhere", "there is no such heading"),
        ("../../elsewhere.md", "leads out of the project"),
        ("/README.md", "leads out of the project"),
    ],
)
def test_a_link_that_leads_nowhere_is_named_with_its_line(
    tree: Path, target: str, wrong: str
) -> None:
    page = tree / "docs/new.md"
    page.write_text(f"# New\n\nSee [this]({target}).\n")
    assert faults(tree, check.check_links) == [f"docs/new.md:3: link to {target}: {wrong}"]


def test_a_reference_definition_is_a_link_too(tree: Path) -> None:
    (tree / "docs/new.md").write_text("# New\n\nSee [this].\n\n[this]: gone.md\n")
    assert faults(tree, check.check_links) == [
        "docs/new.md:5: link to gone.md: there is no such file"
    ]


def test_links_that_lead_somewhere_or_are_only_shown_pass(tree: Path) -> None:
    (tree / "docs/new.md").write_text(
        '# What\'s `new`, here?\n\n## Twice\n\n## Twice\n\n<a id="own"></a>\n\n'
        "[a](#whats-new-here) [b](#twice-1) [c](#own) [d](tour.md#three-packages) [e](../Makefile)\n"
        "[f](https://example.org/x.md) `[g](gone.md)` [`h`](tour.md) [i](decisions/)\n\n"
        "```text\n[j](gone.md)\n# No heading\n```\n"
    )
    assert faults(tree, check.check_links) == []


def test_a_heading_inside_a_block_is_no_anchor(tree: Path) -> None:
    (tree / "docs/new.md").write_text("# New\n\n[a](#inside)\n\n```sh\n# inside\n```\n")
    assert len(faults(tree, check.check_links)) == 1


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("make demo DEMO_ARGS=--headless", []),
        ("$ PYTHON=python3.12 make test TEST_ARGS='-k some words' && make nothing", ["nothing"]),
        ("make -j2 check docs", []),
        ("make test lunch  # make tea", ["lunch"]),
        ("cmake sandwich", []),
        ("(cd x; make supper)", ["supper"]),
    ],
)
def test_a_shown_make_command_exists(tree: Path, line: str, unknown: list[str]) -> None:
    (tree / "docs/new.md").write_text(f"# New\n\n```sh\n{line}\n```\n")
    assert faults(tree, check.check_commands) == [
        f"docs/new.md:4: the Makefile has no target {name}" for name in unknown
    ]


def test_a_make_command_in_a_block_of_another_language_is_not_looked_at(tree: Path) -> None:
    (tree / "docs/new.md").write_text("# New\n\n```text\nmake nothing\n```\n")
    assert faults(tree, check.check_commands) == []


@pytest.mark.parametrize("section", check.DECISION_SECTIONS)
def test_a_decision_lacks_no_section(tree: Path, section: str) -> None:
    page = tree / "docs/decisions/9999-so.md"
    page.write_text(DECISION)
    assert faults(tree, check.check_decisions) == []
    page.write_text(DECISION.replace(f"## {section}\n", ""))
    (fault,) = faults(tree, check.check_decisions)
    assert fault.startswith("docs/decisions/9999-so.md: a decision has the sections Status, ")


def test_functions_of_every_package_are_measured_wherever_they_stand(tree: Path) -> None:
    inner = "class A:\n    async def inner(self):\n" + "        await x\n" * 70
    (tree / "server/deep").mkdir()
    (tree / "server/deep/module.py").write_text(inner)
    (tree / "shared/module.py").write_text("def broken(:\n")
    assert faults(tree, check.check_functions) == [
        "server/deep/module.py:2: inner has 71 lines, 70 at most",
        "shared/module.py:1: not Python: invalid syntax",
    ]


def without_plus(text: str) -> str:
    """Return what the test means: with a plus inside, the text is no fault of this very file."""
    return text.replace("+", "")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("/wo+rk/main", "a path of one machine"),
        ("see `/tmp/w+m/rules`", "a path of one machine"),
        ("https://py+pi.org/simple", "the address of a package registry"),
        ("https://files.python+hosted.org", "the address of a package registry"),
    ],
)
def test_paths_of_a_machine_and_registries_are_named(tree: Path, words: str, named: str) -> None:
    (tree / "client/module.py").write_text(f"# {without_plus(words)}\n")
    assert faults(tree, check.check_words) == [f"client/module.py:1: names {named}"]


@pytest.mark.parametrize("words", ["client/wo+rk/x", "/wo+rker", "/tmp/w+mx", "~/wo+rk"])
def test_words_that_only_look_alike_pass(tree: Path, words: str) -> None:
    (tree / "client/module.py").write_text(f"# {without_plus(words)}\n")
    assert faults(tree, check.check_words) == []
