"""Many partitions on many brokers: taking control of them, then losing brokers.

Run: python -m tests.bench.bench_bulk [--partitions N] [--set key=value ...]. One JSON object per
line. Partitions have three replicas, topics 50 partitions; 30 stub brokers. No two of the brokers
that fail share a partition, so each failure changes as many as the first. The first one meets a
system that has only just started; before the others a broker without partitions comes and goes a
few times. The empty micro-batch is measured in the same run, between the failures; compare the
ratios.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from streaming.zk.multiread import read_many
from tests.bench.load import create_topics, topic_id
from tests.bench.processes import cpu_s, high_water_mb, processes
from tests.bench.report import emit, show
from tests.bench.system import Log, System, alter_partition, read_state
from tests.bench.worker import Worker
from tests.fixtures.gateway_client import GatewayClient

BROKERS = 30
COLD_FAILURE = 1
FAILURES = [7, 13, 19, 25]
EMPTY_BROKER = BROKERS + 1
WARM_UP_BOUNCES = 5
TOPIC = "topic-00000"
ALTERED = 20
EMPTY_EVENTS = 10
PAUSE_MS = 50
GOAL = 5.0


def take_control(system: System, partitions: int) -> dict[str, Any]:
    system.control(600)
    (elected,) = [
        one for one in Log(system.folders.events).records()[:10] if one.kind == "controller_elected"
    ]
    received = system.stubs.ask("records", since=0)
    told = len({one["broker_id"] for one in received if one["api"] == "UPDATE_METADATA"})
    assert told == EMPTY_BROKER, f"{told} of {EMPTY_BROKER} brokers were told"
    last_ms = max(one["at_ns"] for one in received) / 1e6
    return {
        "partitions": partitions,
        "claim_to_last_byte_ms": last_ms - elected.time_ms,
        "rpc_mb": sum(one["request_bytes"] for one in received) / 1e6,
    }


def lose_broker(system: System, broker_id: int, paths: list[str]) -> dict[str, Any]:
    """Drop a broker; return how long everything about it took and how much it was."""
    events, outcomes = Log(system.folders.events), Log(system.folders.outcomes)
    first_event, first_outcome = events.end(), outcomes.end()
    seen = len(system.stubs.ask("records", since=0))
    versions = read_many(system.session, paths).version
    system.stubs.ask("drop", ids=[broker_id])
    system.wait_for(lambda: events.end() > first_event, 60, "the event")
    system.settle(120)
    (event,) = events.records(first_event)
    znodes = read_many(system.session, paths)
    written = znodes.version != versions
    received = system.stubs.ask("records", since=seen)
    bodies = [(one.kind, orjson.loads(one.payload)) for one in outcomes.records(first_outcome)]
    (batch,) = [body for kind, body in bodies if kind == "persisted"]
    answers = [body["at_ms"] for kind, body in bodies if kind == "confirmed"]
    return {
        "znodes": int(written.sum()),
        "rpc_mb": sum(one["request_bytes"] for one in received) / 1e6,
        "to_sinks_ms": batch["written_at_ms"] - batch["duration_ms"] - event.time_ms,
        "to_last_znode_ms": float(znodes.mtime_ms[written].max() - event.time_ms),
        "to_last_byte_ms": max(one["at_ns"] for one in received) / 1e6 - event.time_ms,
        "to_last_answer_ms": float(max(answers) - event.time_ms),
    }


def alter_partitions(system: System, epochs: dict[int, int]) -> list[float]:
    """Shrink the ISR of some partitions one by one; return the ms from event to znode."""
    gateway = GatewayClient(system.gateway_port)
    events = Log(system.folders.events)
    found: list[float] = []
    for partition in range(ALTERED):
        state = read_state(system.session, TOPIC, partition)
        first_event = events.end()
        alter_partition(gateway, topic_id(0), partition, state, isr=state.isr[:-1], epochs=epochs)
        system.settle()
        (event,) = events.records(first_event)
        found.append(read_state(system.session, TOPIC, partition).mtime_ms - event.time_ms)
    gateway.close()
    return found


def warm_up(system: System) -> None:
    for _ in range(WARM_UP_BOUNCES):
        system.stubs.ask("drop", ids=[EMPTY_BROKER])
        system.settle(120)
        system.stubs.ask("register", ids=[EMPTY_BROKER])
        system.settle(120)


def run(partitions: int, overrides: list[str], folder: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    empty_ms: list[float] = []
    failures = []
    with (
        System(folder / "system", overrides, zookeeper_heap_mb=1_500) as system,
        Worker(
            "tests.bench.empty_batch", [str(folder / "empty"), *overrides], folder / "empty.log"
        ) as empty,
    ):
        started = system.stubs.ask("start", ids=list(range(1, EMPTY_BROKER + 1)))
        paths = create_topics(system.session, partitions, BROKERS)
        empty.ask("measure", events=EMPTY_EVENTS, pause_ms=PAUSE_MS)
        control = take_control(system, partitions)
        cold = lose_broker(system, COLD_FAILURE, paths)
        warm_up(system)
        empty_ms += empty.ask("measure", events=EMPTY_EVENTS, pause_ms=PAUSE_MS)
        altered_ms = alter_partitions(system, {int(id_): one for id_, one in started.items()})
        for broker_id in FAILURES:
            empty_ms += empty.ask("measure", events=EMPTY_EVENTS, pause_ms=PAUSE_MS)
            failures.append(lose_broker(system, broker_id, paths))
        found = processes(system.supervisor)
        memory, cpu = high_water_mb(found), cpu_s(found)
    base = median(empty_ms)
    lines.append(emit("empty_batch_one_machine", p50_ms=base))
    ratio = control["claim_to_last_byte_ms"] / base
    lines.append(emit("take_control", **control, ratio=ratio))
    altered = median(altered_ms)
    lines.append(emit("alter_partition_to_znode", p50_ms=altered, ratio=altered / base))
    lines.append(emit("broker_failure_cold", **cold, ratio=cold["to_last_byte_ms"] / base))
    for one in failures:
        emit("broker_failure", **one, ratio=one["to_last_byte_ms"] / base)
    middle = {name: float(median(one[name] for one in failures)) for name in failures[0]}
    lines.append(
        emit(
            "broker_failure_median",
            **middle,
            znode_ratio=middle["to_last_znode_ms"] / base,
            ratio=middle["to_last_byte_ms"] / base,
            goal=GOAL,
        )
    )
    lines.append(emit("memory_high_water", **memory, total_mb=sum(memory.values())))
    lines.append(emit("cpu", **cpu))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = int(os.environ.get("PARTITIONS", "100000"))
    parser.add_argument("--partitions", type=int, default=default)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder:
        lines = run(given.partitions, given.overrides, Path(folder))
    for line in lines:
        show("", [line])


if __name__ == "__main__":
    main()
