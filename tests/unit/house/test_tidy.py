"""The tree is tidy; each exception has its number and its reason, and may only shrink."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.unit.house.tidy import (
    MAX_FILE_LINES,
    MAX_FUNCTION_LINES,
    function_lengths,
    has_docstring,
    imported_packages,
    leftovers,
    names_read_elsewhere,
    unused_names,
)

# path -> (lines it has, why it is one file). A smaller number than the file's fails, a larger too.
LONG_FILES: dict[str, tuple[int, str]] = {}
# path:function -> (lines it has, why it is one function)
LONG_FUNCTIONS: dict[str, tuple[int, str]] = {}

CODE_FOLDERS = ("state", "streaming", "checkpoints", "tests")
# What no other module reads: docs/operating.md shows it to notebooks.
FOR_NOTEBOOKS = {
    "checkpoints/group_table.py": ["read_groups"],
    "checkpoints/tables.py": ["read_partitions"],
}
# Made by tools or by others: not ours to phrase.
NOT_PROSE = {"LICENSE", "requirements.lock", "requirements-run.lock", "requirements-build.lock"}
TEXT_ENDINGS = {"", ".py", ".toml", ".md", ".json", ".lock", ".txt", ".sh", ".cfg"}


def modules(root: Path) -> list[Path]:
    return sorted(path for folder in CODE_FOLDERS for path in (root / folder).rglob("*.py"))


def product(root: Path) -> list[Path]:
    return [path for path in modules(root) if not path.is_relative_to(root / "tests")]


def own_texts(root: Path) -> list[Path]:
    """Text files that are in git or could be added to it."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:  # an unpacked source archive
        return [*modules(root), *root.glob("*.md"), *root.glob("conf/*.toml")]
    paths = (root / line for line in listing.stdout.splitlines())
    return [
        path
        for path in paths
        if path.is_file() and path.suffix in TEXT_ENDINGS and path.name not in NOT_PROSE
    ]


def test_no_file_is_longer_than_it_may_be(root: Path) -> None:
    sizes = {
        str(p.relative_to(root)): len(p.read_text("utf-8").splitlines()) for p in modules(root)
    }
    too_long = {path: size for path, size in sizes.items() if size > MAX_FILE_LINES}
    assert too_long == {path: size for path, (size, _) in LONG_FILES.items()}


def test_no_function_is_longer_than_it_may_be(root: Path) -> None:
    too_long = {
        f"{path.relative_to(root)}:{name}": length
        for path in modules(root)
        for name, length in function_lengths(path.read_text("utf-8"))
        if length > MAX_FUNCTION_LINES
    }
    assert too_long == {name: length for name, (length, _) in LONG_FUNCTIONS.items()}


def test_every_module_says_what_it_is_for(root: Path) -> None:
    silent = [str(p.relative_to(root)) for p in modules(root) if not has_docstring(p.read_text())]
    assert silent == []


def test_nothing_is_left_lying_about(root: Path) -> None:
    found = [
        f"{path.relative_to(root)}: {leftover}"
        for path in own_texts(root)
        for leftover in leftovers(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_every_name_is_used(root: Path) -> None:
    sources = {path.relative_to(root): path.read_text("utf-8") for path in product(root)}
    read: defaultdict[str, set[str]] = defaultdict(set)
    for source in sources.values():
        for module, name in names_read_elsewhere(source):
            read[module].add(name)
    unused = {
        str(path): names
        for path, source in sources.items()
        if (names := unused_names(source, read[".".join(path.with_suffix("").parts)]))
    }
    assert unused == FOR_NOTEBOOKS


def test_every_dependency_is_imported(root: Path) -> None:
    pyproject = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    asked = {re.split(r"[\[<>=]", one)[0] for one in pyproject["project"]["dependencies"]}
    imported = set().union(*(imported_packages(path.read_text("utf-8")) for path in product(root)))
    brought = packages_distributions()
    names = {name for package in imported for name in brought.get(package, ())}
    assert asked <= {name.lower().replace("_", "-") for name in names}


def test_an_unused_name_is_found() -> None:
    source = "_A, B = 1, 2\n_C: int = 3\n__all__ = []\ndef _d(): return _C\nclass _E: pass\n"
    assert unused_names(source) == ["_A", "B", "_d", "_E"]
    reader = "from a import m, B\nfrom c import d\ndef f(): return m.e + d + B.x"
    read = set(names_read_elsewhere(reader))
    assert {("a", "B"), ("c", "d"), ("a.m", "e")} <= read
    assert unused_names(source, {"B"}) == ["_A", "_d", "_E"]
    assert unused_names("@command\ndef told(): pass\n") == []
    assert imported_packages("import a.b, c\ndef f():\n    from d.e import g\n") == {*"acd"}


@pytest.mark.parametrize("word", ["# TO" + "DO: later", "see /wo" + "rk/notes", "by Cla" + "ude"])
def test_a_leftover_is_found(word: str) -> None:
    assert list(leftovers(f"first\n{word}\n"))


def test_words_that_only_look_alike_pass() -> None:
    assert list(leftovers("network/io, a framework, todos of /home/work, the tmp folder\n")) == []


def test_a_docstring_does_not_count_as_length() -> None:
    docstring = '"""One.\n\n        Two.\n        """'
    source = f"class A:\n    def f(self):\n        {docstring}\n        return 1\n"
    assert list(function_lengths(source)) == [("A.f", 2)]
