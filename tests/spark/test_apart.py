"""Spark for a command: nothing of the JVM's on the terminal, no signal but the command's own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
WAIT_S = 250

OPEN = """
import gc, os, signal, sys, threading
from pyspark import SparkContext
from streaming.settings_loader import load_settings
from streaming.spark.apart import open_spark_apart
from streaming.spark.session import jvm_pid

with open(sys.argv[1], "w+b") as printed:
    spark = open_spark_apart(load_settings(), printed)
"""

OPENED = f"""{OPEN}
print(spark.range(3).count(), os.getsid(jvm_pid(spark)) != os.getsid(0))
spark.stop()
"""

KILLED = f"""{OPEN}
spark.sparkContext.parallelize([1], 1).map(abs).count()  # opens the connection that ends
jvm = jvm_pid(spark)
gc.collect()  # objects that go are told to the JVM, which shall be asked nothing while it ends
told = threading.Event()

class Last:
    def garbage_collect_object(self, *_):
        told.set()

SparkContext._gateway._gateway_client.finalizer_deque.appendleft((Last(), "in turn"))
assert told.wait(60)
os.kill(jvm, signal.SIGTERM)
print(SparkContext._gateway.proc.wait(60))
for one in threading.enumerate():
    if one is not threading.main_thread():
        one.join(2)
"""

NOT_STARTED = """
import sys
from streaming.settings_loader import load_settings
from streaming.spark.apart import SparkNotStarted, launch_jvm_apart

with open(sys.argv[1], "w+b") as printed:
    try:
        launch_jvm_apart(load_settings(), "-Xss1", printed)
    except SparkNotStarted as error:
        print(error)
"""


def run(script: str, *arguments: object) -> tuple[str, str]:
    words = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=WAIT_S)
    return done.stdout.strip(), done.stderr


def test_what_the_jvm_prints_goes_to_a_file_and_it_has_a_session_of_its_own(tmp_path):
    printed = tmp_path / "spark.log"
    assert run(OPENED, printed) == ("3 True", "")
    assert "WARN" in printed.read_text()


def test_a_jvm_that_is_ended_leaves_no_traceback(tmp_path):
    ended_by_sigterm = "143"
    assert run(KILLED, tmp_path / "spark.log") == (ended_by_sigterm, "")


def test_a_jvm_that_does_not_start_says_why(tmp_path):
    said, _ = run(NOT_STARTED, tmp_path / "spark.log")
    assert said.startswith("Spark's JVM did not start: ")
    assert "stack size" in said
