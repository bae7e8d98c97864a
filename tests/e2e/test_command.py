"""`helmstream demo` as a command: a Ctrl-C or a hangup at any moment leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

# What a shell runs in the background has Ctrl-C ignored, and so have its children.
_PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from streaming.cli import main
main()
"""
_STARTS_S = 180
_STOPS_S = 180


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A temporary folder under which the paths of sockets are not too long."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("handlers_kept")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_demo_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path, short_folder: Path
) -> None:
    command = [sys.executable, "-c", _PROGRAM, "demo"]
    output = tmp_path / "output"
    with output.open("wb") as file:
        demo = subprocess.Popen(
            command, stdout=file, stderr=file, env={**os.environ, "TMPDIR": str(short_folder)}
        )
    try:
        children = _children(demo, at_least=6)  # ZooKeeper, three brokers, front and job
        demo.send_signal(number)
        code = demo.wait(_STOPS_S)
    finally:
        demo.kill()
        demo.wait()
    assert code == 128 + number, output.read_text()
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert not alive, f"still running: {alive}; gone: {gone}"
    assert not list(short_folder.glob("helmstream-demo-*"))
    assert "everything is stopped" in output.read_text()


def _children(demo: subprocess.Popen[bytes], at_least: int) -> list[psutil.Process]:
    parent = psutil.Process(demo.pid)
    deadline_s = time.monotonic() + _STARTS_S
    while len(parent.children()) < at_least:
        assert demo.poll() is None, "the demo ended by itself"
        assert time.monotonic() < deadline_s, f"only {parent.children()} after {_STARTS_S} s"
        time.sleep(0.2)
    return parent.children(recursive=True)
