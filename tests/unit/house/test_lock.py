"""The locks pin everything by hash, name no host, and agree with each other and pyproject.toml."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

WHOLE, RUN, BUILD = "requirements.lock", "requirements-run.lock", "requirements-build.lock"
LOCKS = (WHOLE, RUN, BUILD)
PIN = re.compile(r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>\S+)", re.MULTILINE)


def pins(root: Path, lock: str) -> set[tuple[str, str]]:
    return set(PIN.findall((root / lock).read_text("utf-8")))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash_and_no_line_has_a_host(root: Path, lock: str) -> None:
    text = (root / lock).read_text("utf-8")
    header, *blocks = re.split(r"\n(?=[a-z0-9])", text)
    assert header.startswith("#")
    assert len(blocks) == len(PIN.findall(text)) > (0 if lock == BUILD else 20)
    assert [block for block in blocks if "--hash=sha256:" not in block] == []
    assert not re.search(r"https?:|--(?:index|find|extra|trusted)|@ ", text)


@pytest.mark.parametrize("part", [RUN, BUILD])
def test_the_other_locks_are_parts_of_the_whole(root: Path, part: str) -> None:
    assert pins(root, part) < pins(root, WHOLE)


def test_every_dependency_is_locked(root: Path) -> None:
    pyproject = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    groups = pyproject["dependency-groups"]
    development = [item for group in groups.values() for item in group if isinstance(item, str)]
    running = pyproject["project"]["dependencies"]
    building = pyproject["build-system"]["requires"]
    assert pyproject["dependency-groups"]["build"] == building
    for lock, asked in ((WHOLE, development), (RUN, running), (BUILD, building)):
        locked = {name for name, _ in pins(root, lock)}
        assert {re.split(r"[\[<>=]", line)[0] for line in asked} <= locked


def test_tools_of_development_do_not_run(root: Path) -> None:
    names = {name for name, _ in pins(root, RUN)}
    assert not names & {"pytest", "mypy", "ruff", "hypothesis", "testcontainers"}


@pytest.mark.parametrize("place", ["Makefile", "Dockerfile", "docs/spark-cluster.md"])
def test_a_lock_is_installed_as_it_is(root: Path, place: str) -> None:
    """Some versions of pip resolve it anew without --no-deps, and want unlocked newer releases."""
    installs = re.findall(r"pip install (.*) -r requirements", (root / place).read_text("utf-8"))
    assert installs
    assert all("--no-deps --require-hashes" in options for options in installs)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_all_that_its_packages_need(root: Path, lock: str) -> None:
    """Without extras: what these bring is in the lock because `make lock` resolves them."""
    locked = {canonicalize_name(name) for name, _ in pins(root, lock)}
    for name in locked:
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform
        wanted = [Requirement(line) for line in needs]
        bare = {
            canonicalize_name(one.name)
            for one in wanted
            if one.marker is None or one.marker.evaluate({"extra": ""})
        }
        assert bare <= locked, name
