"""What brokers ask of a controller: moves of partitions, ISRs that grow, a shutdown."""

from __future__ import annotations

import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import orjson

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from streaming.zk.ops import Create
from streaming.zk.znodes import parse_partition_states
from tests.bench.controller.stage import Stage
from tests.bench.load import PARTITIONS_PER_TOPIC, round_robin, topic_id, topic_name
from tests.bench.system import altered
from tests.fixtures.gateway_client import ask_once

MOVED = 10_000
_ANSWER_TIMEOUT_S = 1800.0
_REASSIGN_PATH = "/admin/reassign_partitions"


@dataclass(frozen=True, slots=True)
class Moves:
    """A reassignment through ZooKeeper: the last replica of each partition goes elsewhere."""

    stage: Stage
    targets: list[list[int]]

    def start(self) -> int:
        """Ask for it; return the wall clock (ns)."""
        partitions = [
            {
                "topic": topic_name(row // PARTITIONS_PER_TOPIC),
                "partition": row % PARTITIONS_PER_TOPIC,
                "replicas": target,
            }
            for row, target in enumerate(self.targets)
        ]
        body = orjson.dumps({"version": 1, "partitions": partitions})
        since_ns = time.time_ns()
        self.stage.session.multi([Create(_REASSIGN_PATH, body)])
        return since_ns

    def under_way(self) -> bool:
        """Whether the controller has taken it up and waits for the new replicas."""
        return not self.over()

    def over(self) -> bool:
        """Whether nothing is left of it."""
        return self.stage.session.get(_REASSIGN_PATH) is None

    def alter_isrs(self, port: int) -> int:
        """As the leaders do when the new replicas have caught up: grow the ISRs, all at once."""
        states = self.stage.states()
        count = len(self.targets)
        read = parse_partition_states(states.data[:count], states.version[:count].tolist())
        asked: dict[int, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for row, target in enumerate(self.targets):
            isr = [one for one in read.isr[row].tolist() if one >= 0]
            grown = isr + [one for one in target if one not in isr]
            epochs = int(read.leader_epoch[row]), int(states.version[row])
            one = altered(row % PARTITIONS_PER_TOPIC, grown, *epochs, dict.fromkeys(grown, -1))
            asked[int(read.leader[row])].append((row, one))
        since_ns = time.time_ns()
        with ThreadPoolExecutor(len(asked)) as pool:
            list(pool.map(lambda one: self._alter(port, *one), asked.items()))
        return since_ns

    def _alter(self, port: int, leader: int, rows: list[tuple[int, dict[str, Any]]]) -> None:
        topics: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row, partition in rows:
            topics[row - row % PARTITIONS_PER_TOPIC].append(partition)
        body = {
            "broker_id": leader,
            "broker_epoch": self.stage.epochs[leader],
            "topics": [
                {"topic_id": topic_id(first), "partitions": partitions}
                for first, partitions in topics.items()
            ],
        }
        answer = _ask(port, ApiKey.ALTER_PARTITION, body)
        expected = {ProtocolError.NONE}
        while answer["error_code"] == ProtocolError.REQUEST_TIMED_OUT:  # as a broker does
            answer = _ask(port, ApiKey.ALTER_PARTITION, body)
            # What was accepted meanwhile may be over by now, under another leader epoch.
            expected.add(ProtocolError.FENCED_LEADER_EPOCH)
        _check(answer, expected)


def last_replica_moved(stage: Stage) -> Moves:
    """Return moves of the first 10,000 partitions."""
    brokers = len(stage.broker_ids)
    replicas = round_robin(min(stage.partitions, MOVED), brokers)
    replicas[:, -1] = (replicas[:, -1] + 4) % brokers + 1
    return Moves(stage, replicas.tolist())


def shut_down(stage: Stage, port: int, broker_id: int) -> int:
    """Ask for a controlled shutdown, as the broker does; it must be granted."""
    since_ns = time.time_ns()
    body = {"broker_id": broker_id, "broker_epoch": stage.epochs[broker_id]}
    answer = _ask(port, ApiKey.CONTROLLED_SHUTDOWN, body)
    assert answer["error_code"] == 0, answer
    return since_ns


def _ask(port: int, api: ApiKey, body: dict[str, Any]) -> dict[str, Any]:
    return ask_once(port, api, 3, body, _ANSWER_TIMEOUT_S)


def _check(answer: dict[str, Any], expected: set[ProtocolError]) -> None:
    assert answer["error_code"] == ProtocolError.NONE, answer
    codes = {one["error_code"] for topic in answer["topics"] for one in topic["partitions"]}
    assert codes <= expected, codes
