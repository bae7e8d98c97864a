"""What a rehearsal tells of a broker's end is what becomes of it, with real brokers and Spark."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from streaming.paths import DataDir
from tests.e2e.real_cluster import Kind, running
from tests.e2e.shadowed_cluster import shadowed
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]

REPLICAS = {
    "wide": [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]],
    "narrow": [[1], [2]],
    "strict": [[1, 2], [3, 2]],
}


def create_topics(bootstrap_server: str, folder: Path) -> None:
    """Create them with Kafka's own tool."""
    tools = KafkaTools(NEW, ["--bootstrap-server", bootstrap_server], folder)
    for topic, partitions in REPLICAS.items():
        assignment = ",".join(":".join(map(str, ids)) for ids in partitions)
        settings = ("--config", "min.insync.replicas=2") if topic == "strict" else ()
        tools(
            *("kafka-topics", "--create", "--topic", topic),
            *("--replica-assignment", assignment, *settings),
        )


@dataclass(frozen=True)
class Rehearsed:
    """A cluster, and the data folder of who folds what happens to it."""

    folders: DataDir
    state: Callable[[str, int], dict[str, Any]]

    def leaders(self) -> dict[str, int]:
        """How many partitions each broker leads, as ZooKeeper has it."""
        states = [
            self.state(topic, partition)
            for topic, partitions in REPLICAS.items()
            for partition in range(len(partitions))
        ]
        return dict(Counter(str(one["leader"]) for one in states if one["leader"] >= 0))

    def told(self, *steps: str, code: int) -> dict[str, Any]:
        """What the command tells of one step beside the query that runs, once the checkpoint has
        what ZooKeeper has.
        """
        now = self.leaders()

        def up_to_date() -> list[dict[str, Any]] | None:
            if not (self.folders.checkpoint / "commits" / "0").exists():
                return None
            found = self._rehearse(*steps, code=code)
            return found if found[0]["leaders"] == now else None

        return wait_for("what ZooKeeper has in the checkpoint", up_to_date)[1]

    def _rehearse(self, *given: str, code: int) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "streaming.cli", "rehearse", *given, "--json"]
        ended = subprocess.run(
            [*command, "--data-dir", str(self.folders.root)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == code, ended.stdout + ended.stderr
        return [orjson.loads(line) for line in ended.stdout.splitlines()]


def all_in_sync(state: Callable[[str, int], dict[str, Any]]) -> bool:
    """Whether every partition has all of its replicas in sync."""
    return all(
        sorted(state(topic, partition).get("isr", ())) == sorted(replicas)
        for topic, partitions in REPLICAS.items()
        for partition, replicas in enumerate(partitions)
    )


def test_what_is_told_before_is_what_happens(tmp_path: Path) -> None:
    with running(tmp_path, dict.fromkeys((1, 2, 3), Kind())) as cluster:
        create_topics(cluster.gateway, tmp_path)
        wait_for("all in sync", lambda: all_in_sync(cluster.state))
        subject = Rehearsed(cluster.folders, cluster.state)

        killed = subject.told("kill=1", code=1)
        assert killed["leaderless"] == [["narrow", 0]]
        assert killed["too_few"] == [["strict", 0]]
        cluster.brokers[1].kill()
        wait_for("what was told", lambda: subject.leaders() == killed["leaders"])
        assert cluster.state("narrow", 0)["leader"] == -1
        assert cluster.state("strict", 0)["isr"] == [2]

        returned = subject.told("start=1", code=0)
        cluster.brokers[1].start()
        wait_for("all in sync again", lambda: all_in_sync(cluster.state))
        assert subject.leaders() == returned["leaders"]


def test_at_a_shadow_it_tells_what_the_live_controller_does(tmp_path: Path) -> None:
    with shadowed(tmp_path) as cluster:
        create_topics(cluster.cluster.bootstrap_servers[0], tmp_path)
        wait_for("all in sync", lambda: all_in_sync(cluster.state))
        cluster.start_shadow(spark=True)
        subject = Rehearsed(DataDir(cluster.folder), cluster.state)

        dies = cluster.another()
        killed = subject.told(f"kill={dies}", code=1)
        cluster.cluster.brokers[dies].kill()
        wait_for("what was told", lambda: subject.leaders() == killed["leaders"])
