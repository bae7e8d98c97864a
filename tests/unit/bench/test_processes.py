"""What processes used is still counted when one of them has ended."""

from __future__ import annotations

import subprocess
import sys

import psutil

from tests.bench.processes import cpu_s, high_water_mb

WORKER = """
import sys, time
while time.process_time() < 0.4:
    pass
print("worked", flush=True)
sys.stdin.read()
"""
PARENT = f"""
import subprocess, sys
worker = subprocess.Popen(
    [sys.executable, "-c", {WORKER!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
worker.stdout.readline()
print(worker.pid, flush=True)
sys.stdin.readline()
worker.communicate()
print("ended", flush=True)
sys.stdin.read()
"""


def test_time_of_a_worker_that_ends_is_its_parents():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = psutil.Process(int(parent.stdout.readline()))
        found = {"workers": [psutil.Process(parent.pid), worker]}
        before = cpu_s(found)["workers_cpu_s"]
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "ended\n"
        after = cpu_s(found)["workers_cpu_s"]
        memory = high_water_mb(found)["workers_mb"]
        parent.stdin.close()
    # The kernel counts in ticks, whichever process one falls into: what was worked is told roughly.
    assert after >= before >= 0.2
    assert memory > 0
