"""The Makefile helps: every target listed, documents name what exists, refusals are clear."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from streaming.cli import app
from tests.unit.house.commands import commands_of

HELPED = re.compile(r"^  make (?P<name>[a-z-]+) +\S", re.MULTILINE)
# Internal prerequisites: one only complains, of the others `check` is made.
UNLISTED = {"java-17", "static", "quick"}
WANTED = {
    "help", "setup", "demo", "run", "test", "check", "conformance", "bench", "fmt", "golden",
    "lock", "clean",
}  # fmt: skip


def make(root: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_help_lists_every_target(root: Path) -> None:
    targets = {*re.findall(r"^([a-z][a-z0-9-]*):", (root / "Makefile").read_text(), re.MULTILINE)}
    assert targets >= WANTED
    assert set(HELPED.findall(make(root, "help").stdout)) == targets - UNLISTED


def test_help_is_what_a_bare_make_shows(root: Path) -> None:
    assert make(root).stdout == make(root, "help").stdout


def test_an_old_python_is_refused_in_words(root: Path, tmp_path: Path) -> None:
    old = program(tmp_path, "python3", '[ "$1" = --version ] && echo Python 3.9.2; exit 1')
    for folder in ("state", "streaming", "checkpoints"):
        (tmp_path / folder).mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_bytes((root / name).read_bytes())
    refused = make(tmp_path, "setup", f"PYTHON={old}")
    assert refused.returncode != 0
    assert "needs Python 3.11 or newer" in refused.stderr
    assert "Python 3.9.2" in refused.stderr


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("""echo 'openjdk version "11.0.22" 2024-01-16' >&2""", "is version 11"),
        ("""echo 'java version "1.8.0_402"' >&2""", "is version 1"),
        ("exit 127", "no java was found"),
    ],
)
def test_an_old_java_is_refused_in_words(
    root: Path, tmp_path: Path, script: str, said: str
) -> None:
    program(tmp_path, "bin/java", script)
    refused = make(root, "java-17", JAVA_HOME=str(tmp_path))
    assert refused.returncode != 0
    assert "needs Java 17 or newer" in refused.stderr
    assert said in refused.stderr


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_a_new_java_passes(root: Path, tmp_path: Path, version: str) -> None:
    program(tmp_path, "bin/java", f"""echo 'openjdk version "{version}" 2025-04-15' >&2""")
    assert make(root, "java-17", JAVA_HOME=str(tmp_path)).returncode == 0


def test_a_java_that_says_more_than_its_version_passes(root: Path, tmp_path: Path) -> None:
    told = "echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2"
    program(tmp_path, "bin/java", f"""{told}; echo 'openjdk version "17.0.2"' >&2""")
    assert make(root, "java-17", JAVA_HOME=str(tmp_path)).returncode == 0


def code_of(document: Path) -> str:
    """What a document shows as code: fenced blocks and `spans`."""
    text = document.read_text("utf-8")
    fences = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join([*fences, *re.findall(r"`([^`\n]+)`", text)])


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/operating.md"])
def test_documents_name_targets_and_commands_that_exist(root: Path, name: str) -> None:
    code = code_of(root / name)
    targets = {*re.findall(r"^([a-z][a-z0-9-]*):", (root / "Makefile").read_text(), re.MULTILINE)}
    commands = commands_of(app)
    assert set(re.findall(r"^\s*make ([a-z-]+)", code, re.MULTILINE)) <= targets
    named = set(re.findall(r"^\s*(?:\S*/)?helmstream ([a-z-]+)", code, re.MULTILINE))
    assert named <= set(commands)
    assert named or name == "CONTRIBUTING.md"


def headings(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as renderers of Markdown make them."""
    titles = re.findall(r"^#+ (.*)$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_documents_link_to_files_and_headings_that_exist(root: Path) -> None:
    for document in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)]+)\)", document.read_text("utf-8")):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            linked = document.parent / name if name else document
            assert linked.exists(), f"{document.name}: {target}"
            assert not anchor or anchor in headings(linked), f"{document.name}: {target}"


def test_the_index_lists_every_document(root: Path) -> None:
    docs = root / "docs"
    linked = re.findall(r"\]\(([^)#]+)\)", (docs / "README.md").read_text("utf-8"))
    documents = {str(one.relative_to(docs)) for one in docs.rglob("*.md")} - {"README.md"}
    assert documents <= set(linked)


def test_continuous_integration_runs_make_test(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1].endswith("make test")
