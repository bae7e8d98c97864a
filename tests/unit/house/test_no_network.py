"""The commands that start servers of their own, on a machine that can fetch nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.embedded.ivy import CACHE_VARIABLE
from streaming.embedded.kafka_jars import DEFAULT_VERSION
from streaming.embedded.ports import free_ports

_JAVA_WITHOUT_NETWORK = """\
#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "17.0.15" 2025-04-15' >&2; exit 0; fi
echo 'Server access error'
exit 1
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An empty cache, and a Java as which Ivy fails."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA_WITHOUT_NETWORK)
    java.chmod(0o755)
    ours = {"JAVA_HOME": str(java.parent.parent), CACHE_VARIABLE: str(tmp_path / "cache")}
    return {**os.environ, **ours}


@pytest.mark.parametrize("command", ["demo", "run"])
def test_jars_that_cannot_be_fetched_are_named(
    command: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    argv = [sys.executable, "-m", "streaming.cli", command, "--set", f"gateway.port={port}"]
    argv += ["--set", f"data.dir={tmp_path / 'data'}"]
    ended = subprocess.run(
        argv, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 4, ended.stderr
    assert "Traceback" not in ended.stderr
    *_, said, output = ended.stderr.splitlines()
    assert said.startswith(f"error: the jars of kafka-{DEFAULT_VERSION} could not be fetched: ")
    assert "check the network" in said
    assert output == "Server access error"
