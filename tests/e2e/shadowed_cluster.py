"""Three brokers under Kafka's own controller, and a shadow beside it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import orjson
from kafka import KafkaAdminClient

from streaming.demo.metadata import ask_metadata
from streaming.embedded.kafka_jars import DEFAULT_VERSION
from streaming.log.embedded import EmbeddedLogReader
from streaming.supervisor.embedded import EmbeddedCluster
from streaming.zk.client import ZkSession
from streaming.zk.znodes import CONTROLLER_PATH, parse_controller_id, parse_topic, topic_path
from streaming.zk.znodes.paths import partition_state_path
from tests.e2e.real_cluster import started
from tests.e2e.waiting import wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS

ASK_MS = 120_000
WINDOW_MS = 60_000  # a controller on a busy machine is late, not wrong
_ELECTED = re.compile(
    r"\[(?P<time>[^]]+)\] INFO \[Controller id=\d+ epoch=\d+\] Changed partition (?P<partition>\S+)"
    r" from \w+ (?P<said>to OnlinePartition with state .*) \(state\.change\.logger\)"
)
"""Where it came from is left out: a shutdown that is over within a look counts as a death."""
_COUNTED = re.compile(r" (leaderEpoch|partitionEpoch)=\d+[,)]")
"""Several changes in one event are one write of ours (docs/differences.md)."""


def shadowed(folder: Path) -> AbstractContextManager[ShadowedCluster]:
    """A cluster whose brokers run, for as long as the context lasts; its shadow does not yet."""
    return started(ShadowedCluster(folder))


class ShadowedCluster:
    """Starts everything in a folder, on free loopback ports; `stop` ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shadow"
        config = {"zookeeper.session.timeout.ms": "6000"}
        self.cluster = EmbeddedCluster(folder / "cluster", 3, DEFAULT_VERSION, config=config)
        self.session = ZkSession(self.cluster.connect, SESSION_TIMEOUT_MS)
        self.shadow: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.cluster.start_brokers()
        self.session.connect()
        wait_for("a controller that brokers know", self.controlled)

    def start_shadow(self, *, spark: bool = False) -> None:
        command = [sys.executable, "-m", "streaming.cli", "shadow", "--all"]
        command += [] if spark else ["--local"]
        command += ["--zookeeper", self.cluster.connect, "--data-dir", str(self.folder)]
        command += [f"--set=shadow.window.ms={WINDOW_MS}"]
        with (self.folder.parent / "shadow.out").open("wb") as out:
            self.shadow = subprocess.Popen(command, stdout=out, stderr=out)
        wait_for("the shadow's load", self.decided)

    def decided(self) -> bool:
        if not (self.folder / "decisions" / "head").exists():
            return False
        with EmbeddedLogReader(self.folder / "decisions") as reader:
            return reader.end_offset() > 0

    def end_shadow(self) -> int:
        assert self.shadow is not None
        self.shadow.terminate()
        return self.shadow.wait(240)

    def stop(self) -> None:
        if self.shadow is not None:
            self.shadow.kill()
            self.shadow.wait(10)
        self.session.close()
        self.cluster.stop()

    def admin(self) -> Any:
        return KafkaAdminClient(
            bootstrap_servers=self.cluster.bootstrap_servers, request_timeout_ms=ASK_MS
        )

    def controller(self) -> int | None:
        znode = self.session.get(CONTROLLER_PATH)
        return None if znode is None else parse_controller_id(znode.data)

    def controlled(self) -> bool:
        views = [ask_metadata(one.client_port) for one in self.cluster.brokers.values()]
        return {view.controller_id for view in views} == {self.controller()}

    def another(self) -> int:
        """A broker that is not the controller."""
        return next(id_ for id_ in (1, 2, 3) if id_ != self.controller())

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """A partition's state as ZooKeeper has it; {} when there is none."""
        znode = self.session.get(partition_state_path(topic, partition))
        return {} if znode is None else orjson.loads(znode.data)

    def isrs(self, topic: str, partitions: int) -> list[list[int]]:
        return [self.state(topic, p).get("isr", []) for p in range(partitions)]

    def full(self, topic: str, partitions: int, members: int = 3) -> bool:
        return all(len(isr) == members for isr in self.isrs(topic, partitions))

    def without(self, broker: int, partitions: int) -> bool:
        return all(isr and broker not in isr for isr in self.isrs("t", partitions))

    def on(self, topic: str, partition: int, replicas: list[int]) -> bool:
        znode = self.session.get(topic_path(topic))
        if znode is None:
            return False
        now = parse_topic(znode.data)
        return now.replicas[partition] == replicas and not now.adding and not now.removing

    def gone(self, topic: str) -> bool:
        return self.session.get(topic_path(topic)) is None

    def said(self) -> list[dict[str, Any]]:
        text = (self.folder / "shadow-report.jsonl").read_bytes()
        return [orjson.loads(line) for line in text.splitlines() if line.endswith(b"}")]

    def log_sizes(self) -> dict[int, int]:
        """How far each broker has written its log."""
        return {id_: one.log_path.stat().st_size for id_, one in self.cluster.brokers.items()}

    def elections_logged(self, marks: Mapping[int, int]) -> dict[str, list[str]]:
        """What brokers' controllers have logged of elections behind marks, by topic."""
        logs = ((one.log_path, marks[id_]) for id_, one in self.cluster.brokers.items())
        return _elections(path.read_bytes()[mark:].decode() for path, mark in logs)

    def elections_tapped(self) -> dict[str, list[str]]:
        """What the shadow would have logged of them."""
        command = [sys.executable, "-m", "streaming.cli", "tap", "--state-changes", "--no-follow"]
        command += ["--data-dir", str(self.folder)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return _elections([told.stdout])

    def agreed(self, kind: str) -> set[str]:
        """The topics of which decisions of a kind agreed, where none differed."""
        return {one["topic"] for one in self.agreements(kind)}

    def agreed_to_move(self, topic: str, partition: int, replicas: list[int]) -> bool:
        """Whether both have ended a partition's move to these replicas."""
        ended = self.agreements("complete_reassignment")
        moves = [one["live"].get(str(partition)) for one in ended if one["topic"] == topic]
        return {"replicas": replicas, "adding": [], "removing": []} in moves

    def agreements(self, kind: str) -> list[dict[str, Any]]:
        assert self.shadow is not None
        assert self.shadow.poll() in {None, 0}, "the shadow has ended"
        said = self.said()
        diverged = [one for one in said if one.get("status") in {"differed", "missed", "extra"}]
        assert diverged == [], "DIFFERENT"
        agreed = {"agreed", "explained"}
        return [one for one in said if one.get("status") in agreed and one["kind"] == kind]


def _elections(logs: Iterable[str]) -> dict[str, list[str]]:
    """The elections of state-change logs, by topic: ordered by partition and time, without what
    names a controller or counts writes.
    """
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for line in (line for log in logs for line in log.splitlines()):
        if matched := _ELECTED.fullmatch(line):
            topic, number = matched["partition"].rsplit("-", 1)
            said = _COUNTED.sub("", matched["said"])
            found[topic].append((number, matched["time"], said))
    return {
        topic: [f"{topic}-{number} {said}" for number, _, said in sorted(lines)]
        for topic, lines in found.items()
    }
