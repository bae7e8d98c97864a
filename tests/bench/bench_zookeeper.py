"""Fenced writes and bulk reads of partition states on a real ZooKeeper, each against one at a time.

Run: python -m tests.bench.bench_zookeeper [--partitions N]. One JSON object per line; compare the
ratios, they come from one run. The baselines: for writes what Kafka's own controller does, one
multi(check, set) per znode and ten in flight; for reads one get per znode and 1,000 in flight.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
from kazoo.client import KazooClient
from kazoo.protocol.serialization import CheckVersion, Transaction
from kazoo.protocol.serialization import SetData as KazooSetData

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.zk.claim import ControllerClaim, claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.fenced import FencedWriter
from streaming.zk.multiread import read_many
from streaming.zk.ops import Create, SetData
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes import (
    parse_partition_states,
    partition_path,
    partition_state_bytes,
    partition_state_path,
    partitions_path,
    topic_path,
)

PARTITIONS_PER_TOPIC = 100
IN_FLIGHT = 10


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def report(name: str, znodes: int, seconds: float, base_rate: float | None = None) -> float:
    rate = znodes / seconds
    line = {"bench": name, "znodes": znodes, "seconds": round(seconds, 3), "per_s": round(rate)}
    if base_rate is not None:
        line["ratio"] = round(rate / base_rate, 1)
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    return rate


def states(count: int, leader_epoch: int) -> list[bytes]:
    rows = np.arange(count)
    isr = np.stack([rows % 30, (rows + 1) % 30, (rows + 2) % 30], axis=1)
    return partition_state_bytes(rows % 30, np.full(count, leader_epoch), isr, 1, np.zeros(count))


def create_tree(writer: FencedWriter, count: int) -> list[str]:
    data = states(count, 0)
    ops = [Create("/brokers"), Create("/brokers/topics")]
    paths = []
    for row in range(count):
        topic, partition = f"topic-{row // PARTITIONS_PER_TOPIC}", row % PARTITIONS_PER_TOPIC
        if partition == 0:
            ops += [Create(topic_path(topic)), Create(partitions_path(topic))]
        paths.append(partition_state_path(topic, partition))
        ops += [Create(partition_path(topic, partition)), Create(paths[-1], data[row])]
    outcomes = writer.write(ops)
    assert {outcome.kind for outcome in outcomes} == {"written"}
    return paths


def kazoo_multis(client: KazooClient, claim: ControllerClaim, ops: list[SetData], per: int) -> None:
    """kazoo's own transactions of `per` sets each, ten in flight."""
    check = CheckVersion("/controller_epoch", claim.epoch_zk_version)
    pending = deque()
    for start in range(0, len(ops), per):
        sets = [KazooSetData(o.path, o.data, o.expected_version) for o in ops[start : start + per]]
        answer = client.handler.async_result()
        client._call(Transaction([check, *sets]), answer)
        pending.append(answer)
        if len(pending) == IN_FLIGHT:
            pending.popleft().get(timeout=60)
    while pending:
        pending.popleft().get(timeout=60)


def kazoo_reads(client: KazooClient, paths: list[str]) -> None:
    pending = deque()
    for path in paths:
        pending.append(client.get_async(path))
        if len(pending) == 1_000:
            pending.popleft().get(timeout=60)
    while pending:
        pending.popleft().get(timeout=60)


def bench_writes(session: ZkSession, client: KazooClient, paths: list[str]) -> None:
    claim = claim_controller(session, 1000, steal=True)
    assert isinstance(claim, ControllerClaim)
    version = 0

    def next_sets(count: int) -> list[SetData]:
        data = states(len(paths), version + 1)[:count]
        return [
            SetData(path, value, version) for path, value in zip(paths[:count], data, strict=True)
        ]

    few = len(paths) // 10  # the slow baseline gets a tenth of the znodes
    sets = next_sets(few)
    base = report(
        "write_one_per_multi_kazoo", few, timed(lambda: kazoo_multis(client, claim, sets, 1))
    )
    rest = [SetData(p, d, 0) for p, d in zip(paths[few:], states(len(paths), 1)[few:], strict=True)]
    FencedWriter(session, claim.epoch_zk_version, WriteLimits()).write(rest)
    version = 1
    for name, per_multi in (("one", 1), ("100", 100), ("500", 500), ("2000", 2_000)):
        count = few if per_multi == 1 else len(paths)
        writer = FencedWriter(
            session, claim.epoch_zk_version, WriteLimits(max_ops_per_multi=per_multi)
        )
        sets = next_sets(count)
        seconds = timed(lambda writer=writer, sets=sets: writer.write(sets))
        report(f"write_{name}_per_multi_fenced", count, seconds, base)
        if per_multi == 1:
            writer.write(next_sets(len(paths)))  # bring all to one version, repeating a tenth
        version += 1
    sets = next_sets(len(paths))
    seconds = timed(lambda: kazoo_multis(client, claim, sets, 500))
    report("write_500_per_multi_kazoo", len(paths), seconds, base)
    writer = FencedWriter(session, claim.epoch_zk_version, WriteLimits())
    seconds = timed(lambda: writer.write(sets))
    report("write_again_all_done_already", len(paths), seconds, base)


def bench_reads(session: ZkSession, client: KazooClient, paths: list[str]) -> None:
    few = len(paths) // 5
    base = report("read_get_async_kazoo", few, timed(lambda: kazoo_reads(client, paths[:few])))
    report("read_multi_read", len(paths), timed(lambda: read_many(session, paths)), base)
    columns = read_many(session, paths)
    seconds = timed(lambda: parse_partition_states(columns.data, columns.version))
    report("parse_partition_states", len(paths), seconds, base)
    report("format_partition_states", len(paths), timed(lambda: states(len(paths), 9)), base)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    count = parser.parse_args().partitions
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedZooKeeper(Path(folder), max_heap_mb=1_500) as server,
        ZkSession(server.connect_string, 30_000) as session,
    ):
        claim = claim_controller(session, 1000, steal=True)
        assert isinstance(claim, ControllerClaim)
        paths = create_tree(FencedWriter(session, claim.epoch_zk_version, WriteLimits()), count)
        client = KazooClient(server.connect_string, timeout=30)
        client.start()
        try:
            bench_writes(session, client, paths)
            bench_reads(session, client, paths)
        finally:
            client.stop()
            client.close()


if __name__ == "__main__":
    main()
