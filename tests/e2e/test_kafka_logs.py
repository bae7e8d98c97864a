"""Event log and decision stream in topics of another cluster, which goes away and comes back.

The job dies, and then the whole of helmstream with a standby beside it.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from checkpoints.read import committed_batches
from streaming.log.kafka_topic import create_topic
from streaming.log.location import LogLocation
from streaming.supervisor.processes import FRONT, JOB
from streaming.zk.znodes import CONTROLLER_EPOCH_PATH
from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.standby import job_of, standing_by
from tests.e2e.waiting import wait_for
from tests.fixtures.digests import digest_of, folded_digest
from tests.fixtures.log_cluster import LogCluster

ASK_MS = 120_000
LEASE_MS = 240_000  # a killed job is back before the role is given up, on a busy machine too

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def query_has_batches(cluster: RealCluster) -> bool:
    """Give the query something to fold; return whether it has committed several batches."""
    create(cluster, f"for-the-query-{uuid.uuid4().hex}")
    return len(committed_batches(cluster.folders.checkpoint)) > 1


def create(cluster: RealCluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=[cluster.gateway], request_timeout_ms=ASK_MS)
    with closing(admin):
        admin.create_topics(
            {topic: {"num_partitions": 3, "replication_factor": 2}}, timeout_ms=ASK_MS
        )


def told(events: LogLocation, data_dir: Path, *words: str) -> str:
    """What a command says of a data folder whose events are in a topic."""
    where = ["--data-dir", str(data_dir), "--set", f"event.log.url={events}"]
    command = [sys.executable, "-m", "streaming.cli", *words, *where]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout


def epoch_of(cluster: RealCluster) -> int:
    return int(cluster.session.get(CONTROLLER_EPOCH_PATH).data)


def kill_the_first(cluster: RealCluster) -> None:
    """End front and job for good."""
    cluster.stop_supervising()
    for role in (JOB, FRONT):
        cluster.supervisor.kill(role)


def check_the_logs(cluster: RealCluster, events: LogLocation, stream: LogLocation) -> None:
    """The decisions are those of a fold of the events, in the stream too."""
    decisions = cluster.folders.decisions

    def whole() -> bool:
        return len({digest_of(stream), digest_of(decisions), folded_digest(events)}) == 1

    wait_for("one digest of the decisions, in the stream too", whole)
    explained = told(events, cluster.folders.root, "explain", "beyond-0")
    assert "new_partition_elected" in explained


def test_deaths_beside_logs_in_topics_lose_and_repeat_nothing(
    tmp_path: Path, log_cluster: LogCluster
) -> None:
    run = uuid.uuid4().hex
    events, stream = (log_cluster.topic(f"{name}-{run}") for name in ("events", "decisions"))
    for topic in (events, stream):
        create_topic(topic, replication_factor=1)
    settings = [
        f"event.log.url={events}",
        f"decision.stream.url={stream}",
        f"controller.lease.ms={LEASE_MS}",
    ]
    with running(tmp_path, {1: Kind(), 2: Kind()}, settings) as cluster:
        epoch = epoch_of(cluster)
        create(cluster, "before")
        log_cluster.kill()
        log_cluster.start()
        create(cluster, "after")

        first_job = cluster.status()["job"]["pid"]
        cluster.supervisor.kill(JOB)
        gone = {None, first_job}
        wait_for("a new job", lambda: cluster.status()["job"]["pid"] not in gone, LEASE_MS / 1000)
        create(cluster, "again")
        assert {len(cluster.replicas(name)) for name in ("before", "after", "again")} == {3}
        assert epoch_of(cluster) == epoch
        assert not list(cluster.folders.events.glob("*.log"))

        with standing_by(cluster) as standby:
            kill_the_first(cluster)
            wait_for("the standby's job", lambda: job_of(standby, cluster))
            wait_for("its control", lambda: epoch_of(cluster) > epoch and cluster.controlled())
            create(cluster, "beyond")
            assert len(cluster.replicas("beyond")) == 3
            check_the_logs(cluster, events, stream)
            wait_for("batches to verify", lambda: query_has_batches(cluster), 2 * ASK_MS / 1000)

    checks = told(events, cluster.folders.root, "checkpoint", "verify")
    assert "wrong" not in checks
    assert "not checked" not in checks
