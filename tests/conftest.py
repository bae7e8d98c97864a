"""What all tests share: markers by folder, Hypothesis profiles, the golden-rewriting switch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from streaming.embedded.ports import PICKER
from streaming.spark.local_fs import fetch_local_fs_jar
from tests.fixtures.quick_starts import archive_servers, use_class_archives

pytest_plugins = [
    "tests.fixtures.certificates",  # before log_cluster, which imports it
    "tests.fixtures.zookeeper",
    "tests.fixtures.kafka",
    "tests.fixtures.key_distribution",
    "tests.fixtures.log_cluster",
    "tests.fixtures.stub_brokers",
    "tests.fixtures.signal_handlers",
    "tests.fixtures.garbage",
]

TESTS = Path(__file__).parent
MARKER_OF_FOLDER = {
    "integration": "integration",
    "differential": "integration",
    "spark": "spark",
    "e2e": "e2e",
}
MARKERS_OF_JOBS = {"spark", "e2e"}
LONGEST_FIRST = ("e2e", "spark", "differential", "integration")

# How long an example takes says how busy the machine is, and nothing of what is tested.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("quick", UNHURRIED, max_examples=10)
settings.register_profile("short", UNHURRIED, max_examples=50)
settings.register_profile("long", UNHURRIED, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write golden files instead of comparing"
    )


def pytest_configure() -> None:
    """Let processes of tests pick ports apart, since a server that is down keeps its own, and their
    servers start quickly.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    PICKER.use_share(int(worker), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    use_class_archives()


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests wait for threads and sockets too."""
    return (os.cpu_count() or 1) + 1


def folder_of(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by the folder it lives in, so that no test of a JVM runs in `make check`.

    Those of the folders with long tests come first, so that no process of two ends long after the
    other.
    """
    for item in items:
        if (folder := folder_of(item)) in MARKER_OF_FOLDER:
            item.add_marker(MARKER_OF_FOLDER[folder])
    places = {folder: place for place, folder in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(folder_of(item), len(places)))


@pytest.fixture(scope="session", autouse=True)
def quick_starts(request: pytest.FixtureRequest) -> None:
    """Prepare this machine for the many starts of the tests that need a JVM, before the first."""
    marks = {mark.name for item in request.session.items for mark in item.iter_markers()}
    if marks & MARKERS_OF_JOBS:
        fetch_local_fs_jar()
    if marks & set(MARKER_OF_FOLDER.values()):
        archive_servers()


@pytest.fixture
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    """True when golden files are to be written rather than compared (`make golden`)."""
    return bool(request.config.getoption("--rewrite-golden"))
