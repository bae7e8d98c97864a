"""What a rehearsal tells of a broker's end is what becomes of it, with real brokers and Spark."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.test_hidden import in_sync
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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with running(tmp_path, dict.fromkeys((1, 2, 3), Kind())) as cluster:
        tools = KafkaTools(NEW, ["--bootstrap-server", cluster.gateway], tmp_path)
        for topic, partitions in REPLICAS.items():
            assignment = ",".join(":".join(map(str, ids)) for ids in partitions)
            settings = ("--config", "min.insync.replicas=2") if topic == "strict" else ()
            tools(
                *("kafka-topics", "--create", "--topic", topic),
                *("--replica-assignment", assignment, *settings),
            )
            in_sync(cluster, topic, len(partitions), len(partitions[0]))
        yield cluster


def rehearsed(cluster: RealCluster, *given: str, code: int) -> list[dict[str, Any]]:
    """What the command tells beside the job that runs."""
    command = [sys.executable, "-m", "streaming.cli", "rehearse", *given, "--json"]
    ended = subprocess.run(
        [*command, "--data-dir", str(cluster.folders.root)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return [orjson.loads(line) for line in ended.stdout.splitlines()]


def leaders(cluster: RealCluster) -> dict[str, int]:
    """How many partitions each broker leads, as ZooKeeper has it."""
    states = [
        cluster.state(topic, partition)
        for topic, partitions in REPLICAS.items()
        for partition in range(len(partitions))
    ]
    return dict(Counter(str(one["leader"]) for one in states if one["leader"] >= 0))


def told(cluster: RealCluster, *steps: str, code: int) -> dict[str, Any]:
    """What it tells of one step, once the checkpoint has what ZooKeeper has."""
    now = leaders(cluster)

    def up_to_date() -> list[dict[str, Any]] | None:
        if not (cluster.folders.checkpoint / "commits" / "0").exists():
            return None
        found = rehearsed(cluster, *steps, code=code)
        return found if found[0]["leaders"] == now else None

    return wait_for("what ZooKeeper has in the checkpoint", up_to_date)[1]


def test_what_is_told_before_is_what_happens(cluster: RealCluster) -> None:
    killed = told(cluster, "kill=1", code=1)
    assert killed["leaderless"] == [["narrow", 0]]
    assert killed["too_few"] == [["strict", 0]]
    cluster.brokers[1].kill()
    wait_for("what was told", lambda: leaders(cluster) == killed["leaders"])
    assert cluster.state("narrow", 0)["leader"] == -1
    assert cluster.state("strict", 0)["isr"] == [2]

    returned = told(cluster, "start=1", code=0)
    cluster.brokers[1].start()
    for topic, partitions in REPLICAS.items():
        in_sync(cluster, topic, len(partitions), len(partitions[0]))
    assert leaders(cluster) == returned["leaders"]
