"""Speed of the column-wise UpdateMetadata encoding against the schema codec, as one JSON line.

Run as `python -m tests.bench.bench_wire`. The ratio is the number to compare between machines.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from streaming.wire.apis import APIS, ApiKey
from streaming.wire.partition_rpcs import PartitionRows
from tests.unit.wire.support import as_body, encode

TOPICS = 400
PARTITIONS_PER_TOPIC = 50
REPLICATION_FACTOR = 3
BROKERS = 30
VERSION = 8
RUNS = 5


def benchmark_rows() -> PartitionRows:
    """400 topics of 50 partitions, RF 3, every tenth partition with one replica offline."""
    n = TOPICS * PARTITIONS_PER_TOPIC
    row = np.arange(n, dtype=np.int32)
    ids = row[:, None] + np.arange(REPLICATION_FACTOR, dtype=np.int32)
    replicas: Any = ids % BROKERS
    failed = row % 10 == 0
    isr = replicas.copy()
    isr[failed, -1] = -1
    offline = np.full_like(replicas, -1)
    offline[failed, 0] = replicas[failed, -1]
    none = np.empty((n, 0), np.int32)
    return PartitionRows(
        topic_names=[f"topic-{topic:06d}" for topic in range(TOPICS)],
        topic_ids=np.full((TOPICS, 16), 7, np.uint8),
        topic_index=row // PARTITIONS_PER_TOPIC,
        partition=row % PARTITIONS_PER_TOPIC,
        controller_epoch=np.full(n, 3, np.int32),
        leader=replicas[:, 0].copy(),
        leader_epoch=row,
        isr=isr,
        partition_epoch=row,
        replicas=replicas,
        offline_replicas=offline,
        adding=none,
        removing=none,
        is_new=np.zeros(n, bool),
        leader_recovery_state=np.zeros(n, np.int8),
        delete_partition=np.zeros(n, bool),
    )


def fastest_seconds(run: Callable[[], object]) -> float:
    """Best of a few runs, which is least disturbed by other work on the machine."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure both ways once they were seen to agree, and write the line."""
    rows = benchmark_rows()
    body = as_body(rows)["UpdateMetadata"]
    schema = APIS[ApiKey.UPDATE_METADATA].request
    assert encode("UpdateMetadata", VERSION, rows).body == schema.encode(VERSION, body)
    columns_s = fastest_seconds(lambda: encode("UpdateMetadata", VERSION, rows))
    schema_s = fastest_seconds(lambda: schema.encode(VERSION, body))
    result = {
        "bench": "wire_update_metadata",
        "version": VERSION,
        "partitions": len(rows),
        "columns_partitions_per_s": round(len(rows) / columns_s),
        "schema_codec_partitions_per_s": round(len(rows) / schema_s),
        "ratio": round(schema_s / columns_s, 1),
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
