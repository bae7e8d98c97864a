"""Python workers that live on while nothing happens."""

from __future__ import annotations

import os
import time

import pyarrow as pa
import pytest

from streaming.spark.warm_workers import EVERY_S, WarmWorkers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
LONGER_THAN_SPARK_WAITS_S = 80


def its_pid(batches):
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()]})


def worker_pid(spark) -> int:
    [row] = spark.range(0, 1, 1, 1).mapInArrow(its_pid, "pid long").collect()
    return row["pid"]


def test_workers_are_used_when_it_is_time_to(spark):
    now_s = [0.0]
    workers = WarmWorkers(spark, 1, clock=lambda: now_s[0])

    def used_at(at_s: float) -> bool:
        now_s[0] = at_s
        looked = workers.look()
        if looked:
            workers._using.join(60)
        return looked

    times_s = (1.0, EVERY_S - 1, EVERY_S, EVERY_S + 1, 2 * EVERY_S + 1)
    assert [used_at(one) for one in times_s] == [False, False, True, False, True]


@pytest.mark.slow
def test_a_worker_outlives_a_quiet_time(spark):
    """Without being used it is gone by then, and another one answers."""
    first = worker_pid(spark)
    workers = WarmWorkers(spark, 1)
    quiet_until = time.monotonic() + LONGER_THAN_SPARK_WAITS_S
    while time.monotonic() < quiet_until:
        workers.look()
        time.sleep(0.5)
    assert worker_pid(spark) == first
    time.sleep(LONGER_THAN_SPARK_WAITS_S)
    assert worker_pid(spark) != first
