"""The job runs at a lower priority than the front."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

JOB = """
import os, sys, typer
import streaming.job, streaming.spark.jvm
from streaming.commands import roles

streaming.spark.jvm.start_jvm = lambda settings: print("JVM", os.nice(0))
streaming.job.run_job = lambda settings, standby: print("job", os.nice(0)) or 0
try:
    roles.job(overrides=[sys.argv[1], "zookeeper.connect=127.0.0.1:1"])
except typer.Exit:
    pass
"""


@pytest.mark.parametrize("nice", [0, 3])
def test_the_job_and_what_it_starts_have_their_priority(nice: int) -> None:
    command = [sys.executable, "-c", JOB, f"job.nice={nice}"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout
    expected = min(os.nice(0) + nice, 19)
    assert said.split() == ["JVM", str(expected), "job", str(expected)]
