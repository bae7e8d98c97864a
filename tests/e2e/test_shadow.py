"""A shadow beside Kafka's own controller, through everything that brokers and admins do.

It folds in its own process; that the query gives the same is in tests/spark.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from kafka import KafkaAdminClient, TopicPartition

from streaming.demo.metadata import ask_metadata
from streaming.embedded.kafka_jars import DEFAULT_VERSION
from streaming.log.embedded import EmbeddedLogReader
from streaming.supervisor.embedded import EmbeddedCluster
from streaming.zk.client import ZkSession
from streaming.zk.znodes import CONTROLLER_PATH, parse_controller_id, parse_topic, topic_path
from streaming.zk.znodes.admin import reassignment_bytes
from streaming.zk.znodes.paths import partition_state_path
from tests.e2e.waiting import wait_for
from tests.fixtures.silence import silent_kafka_client
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS

ASK_MS = 120_000
PARTITIONS = 6
WINDOW_MS = 60_000  # a controller on a busy machine is late, not wrong
PLAN = "/admin/reassign_partitions"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


class Stage:
    """Three brokers under their own controller, with a shadow beside it."""

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

    def start_shadow(self) -> None:
        command = [sys.executable, "-m", "streaming.cli", "shadow", "--local", "--all"]
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

    def isrs(self, topic: str, partitions: int) -> list[list[int]]:
        znodes = [self.session.get(partition_state_path(topic, p)) for p in range(partitions)]
        return [[] if znode is None else orjson.loads(znode.data)["isr"] for znode in znodes]

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


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    with silent_kafka_client():
        try:
            made.start()
            yield made
        finally:
            made.stop()


def restarts(stage: Stage) -> None:
    """A broker is killed and comes back, another leaves in order and comes back."""
    dead = stage.another()
    stage.cluster.brokers[dead].kill()
    wait_for("the death", lambda: stage.without(dead, PARTITIONS))
    stage.cluster.brokers[dead].start()
    wait_for("full ISRs", lambda: stage.full("t", PARTITIONS))
    leaving = stage.another()
    assert stage.cluster.brokers[leaving].terminate(120)
    wait_for("the way out", lambda: stage.without(leaving, PARTITIONS))
    stage.cluster.brokers[leaving].start()
    wait_for("full ISRs", lambda: stage.full("t", PARTITIONS))


def requests(stage: Stage) -> None:
    """What only the live controller hears, and what it reads from ZooKeeper."""
    admin = stage.admin()
    admin.elect_leaders(0, {"t": list(range(PARTITIONS))}, timeout_ms=ASK_MS)
    admin.create_partitions({"t": PARTITIONS + 1}, timeout_ms=ASK_MS)
    admin.create_topics({"m": {"assignments": {0: [1, 2], 1: [2, 3]}}}, timeout_ms=ASK_MS)
    wait_for("the topic", lambda: stage.full("m", 2, members=2))
    admin.alter_partition_reassignments({TopicPartition("m", 0): [3, 1]}, timeout_ms=ASK_MS)
    wait_for("the move", lambda: stage.on("m", 0, [3, 1]))
    stage.session.create(PLAN, reassignment_bytes({("m", 1): [1, 3]}))
    wait_for("the move by znode", lambda: stage.on("m", 1, [1, 3]))
    wait_for("the moves' match", lambda: stage.agreed_to_move("m", 1, [1, 3]))
    admin.delete_topics(["m"], timeout_ms=ASK_MS)
    wait_for("the deletion", lambda: stage.gone("m"))
    wait_for("its match, before another controller", lambda: stage.agreed("delete_topic"))
    admin.close()


def deaths(stage: Stage) -> None:
    """The controller dies; then a topic is deleted of which a replica is away."""
    dead = stage.controller()
    assert dead is not None
    stage.cluster.brokers[dead].kill()
    wait_for("a new controller", lambda: stage.controller() not in (None, dead))
    wait_for("its decisions", lambda: stage.without(dead, PARTITIONS + 1))
    stage.cluster.brokers[dead].start()
    wait_for("full ISRs", lambda: stage.full("t", PARTITIONS + 1))
    away = stage.another()
    stage.cluster.brokers[away].kill()
    wait_for("the death", lambda: stage.without(away, PARTITIONS + 1))
    admin = stage.admin()
    admin.delete_topics(["t"], timeout_ms=ASK_MS)
    admin.close()
    stage.cluster.brokers[away].start()
    wait_for("the deletion", lambda: stage.gone("t"))


def test_nothing_differs_that_is_not_explained(stage: Stage) -> None:
    admin = stage.admin()
    wanted = {"num_partitions": PARTITIONS, "replication_factor": 3}
    admin.create_topics({"before": wanted}, timeout_ms=ASK_MS)
    wait_for("a topic", lambda: stage.full("before", PARTITIONS))
    stage.start_shadow()
    admin.create_topics({"t": wanted}, timeout_ms=ASK_MS)
    admin.close()
    wait_for("the topic", lambda: stage.full("t", PARTITIONS))

    restarts(stage)
    requests(stage)
    deaths(stage)

    wait_for("the last match", lambda: stage.agreed("delete_topic") == {"m", "t"})
    wait_for("full ISRs", lambda: stage.full("before", PARTITIONS))
    last = stage.isrs("before", PARTITIONS)
    code = stage.end_shadow()
    *verdicts, summary = stage.said()
    diverged = [one for one in verdicts if one["status"] in {"differed", "missed", "extra"}]
    assert (diverged, summary["summary"]["divergences"]) == ([], 0), "DIFFERENT"
    assert (code, summary["summary"]["unsettled"]) == (0, 0)
    assert {one["why"] for one in verdicts if one["status"] == "explained"} <= {
        "several changes to a partition in one event"
    }
    # A shutdown that is over within a look counts as a death; both elect the same leader.
    for kind in (
        "new_partition_elected",
        "offline_partition_elected",
        "preferred_replica_elected",
        "isr_altered_by_leader",
        "rewrite_assignment",
        "complete_reassignment",
    ):
        assert stage.agreed(kind), kind
    assert summary["summary"]["partitions"] == len(last)
