"""What Python costs for each row where a bulk path still has a loop over partitions.

Run: python -m tests.bench.bench_rows [--partitions N]. One JSON object per line: CPU us for each
row, the least of a few runs, without sockets, with the garbage collector as front and job have it.
Each loop has the rows of a case in which all partitions change: states are written, folders
created, topics and states read and told to the machines.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from state.blocks import Column
from state.decisions import Action, DecisionKind
from state.events import Event, parse_payload
from state.merge import MergedDecision
from streaming.log.api import NewRecord
from streaming.observers.known_topics import observed
from streaming.observers.overrides import Overrides
from streaming.observers.states import StateTuple, state_tuples
from streaming.process.garbage import collect_rarely
from streaming.sinks import zookeeper
from streaming.sinks.batch import SinkDecision
from streaming.sinks.writes import STAGES, Write
from streaming.zk import ops as zk
from streaming.zk.multiread import PATHS_PER_REQUEST
from streaming.zk.ops import WriteOp
from streaming.zk.outcomes import OpOutcome, OutcomeKind
from streaming.zk.znodes import (
    TopicZNode,
    parse_partition_states,
    parse_topic,
    partition_state_path,
)
from tests.bench.load import PARTITIONS_PER_TOPIC, round_robin, topic_name, topics
from tests.bench.report import emit, show

BROKERS = 30
RUNS = 5
_, _, FOLDERS, STATES, *_ = (stage.get(DecisionKind.CHANGE_PARTITIONS) for stage in STAGES)


def changed(partitions: int, actions: Action) -> SinkDecision:
    """Return a decision that changes all partitions."""
    row = np.arange(partitions, dtype=np.int32)
    replicas = round_robin(partitions, BROKERS).astype(np.int32)
    columns: dict[str, Column] = {
        "topic": row // PARTITIONS_PER_TOPIC,
        "partition": row % PARTITIONS_PER_TOPIC,
        "leader": replicas[:, 0],
        "leader_epoch": row % 7,
        "isr": replicas,
        "controller_epoch": np.full(partitions, 3, np.int32),
        "recovery": np.zeros(partitions, np.int8),
        "partition_epoch": row % 5 + 1,
        "actions": np.full(partitions, int(actions), np.int32),
    }
    names = [topic_name(topic) for topic in range(-(-partitions // PARTITIONS_PER_TOPIC))]
    merged = MergedDecision(0, 0, DecisionKind.CHANGE_PARTITIONS, b"")
    return SinkDecision(merged, columns, {"topics": names}, np.zeros(partitions, bool))


def answered(count: int) -> bytes:
    """Return what ZooKeeper answers to a multi of so many writes of data."""
    return count * (zk._HEADER.pack(zk._SET_DATA, 0, 0) + bytes(zk.STAT_BYTES)) + zk._END


def read(znodes: Sequence[bytes]) -> bytes:
    """Return what ZooKeeper answers to a multiRead that finds these."""
    header, stat = zk._HEADER.pack(zk._GET_DATA, 0, 0), bytes(zk.STAT_BYTES)
    nodes = (header + zk._INT.pack(len(one)) + one + stat for one in znodes)
    return b"".join(nodes) + zk._END


def parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[at : at + PATHS_PER_REQUEST] for at in range(0, len(values), PATHS_PER_REQUEST))


class AllWritten:
    """A writer that has made every write."""

    def write(self, ops: Iterable[WriteOp]) -> list[OpOutcome]:
        return [OpOutcome(OutcomeKind.WRITTEN, 1)] * sum(1 for _ in ops)


def make(writes: list[Write]) -> Callable[[], object]:
    writer: Any = AllWritten()
    nothing: Any = None  # neither the batch nor later writes are asked when all is well
    return lambda: zookeeper._make(nothing, writer, writes, nothing)


Loops = list[tuple[str, Callable[[], object]]]
"""(name, what to time)."""


def written(partitions: int, writes: list[Write]) -> Loops:
    """Return the loops between a decision and ZooKeeper."""
    states, created = changed(partitions, Action.WRITE), changed(partitions, Action.CREATE)
    made = [op for op, _ in writes]
    multis = [zk.MultiRequest(part, "", zk.OPEN_ACL) for part in parts(made)]
    told = answered(PATHS_PER_REQUEST)
    return [
        ("writes: states, _state_ops", lambda: list(STATES(states))),
        ("writes: folders, _folder_ops", lambda: list(FOLDERS(created))),
        ("writes: sizes, op_bytes", lambda: [zk.op_bytes(op) for op in made]),
        ("writes: bytes, MultiRequest.serialize", lambda: [one.serialize() for one in multis]),
        (
            "writes: answers, MultiRequest.deserialize",
            lambda: [one.deserialize(told, 0) for one in multis],
        ),
        ("writes: outcomes, _make", make(writes)),
    ]


def found(partitions: int, writes: list[Write]) -> Loops:
    """Return the loops between ZooKeeper and a machine that loads what is there."""
    znodes, paths = [op.data for op, _ in writes], [op.path for op, _ in writes]
    asked = [zk.ReadDataRequest(part, "") for part in parts(paths)]
    came = list(map(read, parts(znodes)))
    versions = np.ones(partitions)
    columns = parse_partition_states(znodes, versions)
    places = [divmod(row, PARTITIONS_PER_TOPIC) for row in range(partitions)]
    named = [(topic_name(topic), number) for topic, number in places]
    topic_znodes = [(name, data) for _, name, data, _ in topics(round_robin(partitions, BROKERS))]
    parsed = [(name, parse_topic(data)) for name, data in topic_znodes]
    tuples = state_tuples(columns)
    records = list(observed_events(parsed, tuples))
    events = [Event(0, 0, one.kind, one.key, one.payload) for one in records]
    return [
        ("reads: topics, parse_topic", lambda: [parse_topic(data) for _, data in topic_znodes]),
        ("reads: paths", lambda: [partition_state_path(*one) for one in named]),
        ("reads: bytes, ReadDataRequest.serialize", lambda: [one.serialize() for one in asked]),
        (
            "reads: answers, ReadDataRequest.deserialize",
            lambda: [one.deserialize(data, 0) for one, data in zip(asked, came, strict=True)],
        ),
        ("reads: parse_partition_states", lambda: parse_partition_states(znodes, versions)),
        ("reads: orjson.loads, a part of that", lambda: [orjson.loads(one) for one in znodes]),
        ("reads: state_tuples", lambda: state_tuples(columns)),
        ("events: made, observed", lambda: list(observed_events(parsed, tuples))),
        ("events: read, parse_payload", lambda: [parse_payload(one) for one in events]),
    ]


def observed_events(
    parsed: Sequence[tuple[str, TopicZNode]], states: Sequence[StateTuple | None]
) -> Iterator[NewRecord]:
    for number, (name, topic) in enumerate(parsed):
        first = number * PARTITIONS_PER_TOPIC
        of_topic = states[first : first + len(topic.replicas)]
        yield observed(name, topic, 0, Overrides(), of_topic)


def least_cpu_s(run: Callable[[], object]) -> float:
    """Return the CPU seconds of the run that was least disturbed."""
    took = []
    for _ in range(RUNS):
        before = time.process_time()
        run()
        took.append(time.process_time() - before)
    return min(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    partitions = parser.parse_args().partitions
    writes = list(STATES(changed(partitions, Action.WRITE)))
    collect_rarely()
    lines = [
        emit("rows", loop=name, cpu_us_each=1e6 * least_cpu_s(run) / partitions)
        for name, run in [*written(partitions, writes), *found(partitions, writes)]
    ]
    show(f"Python for each of {partitions} rows", lines)


if __name__ == "__main__":
    main()
