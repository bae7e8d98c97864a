"""Event log and decision stream in topics of another cluster, which goes away and comes back."""

from __future__ import annotations

import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from checkpoints.replay import Digest, fold_log
from state.events import Event
from streaming.log.decision_reader import read_decisions
from streaming.log.kafka_topic import create_topic
from streaming.log.location import LogLocation
from streaming.log.recorded import open_log
from streaming.supervisor.processes import JOB
from streaming.zk.znodes import CONTROLLER_EPOCH_PATH
from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.waiting import wait_for
from tests.fixtures.log_cluster import LogCluster

ASK_MS = 120_000
LEASE_MS = 240_000  # a killed job is back before the role is given up, on a busy machine too

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


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


def digest_of(where: LogLocation) -> str:
    digest = Digest()
    with closing(open_log(where)) as log:
        records = log.read(log.start_offset(), log.end_offset())
        digest.update(one.decision for one in read_decisions(records))
    return digest.hexdigest()


def folded_digest(where: LogLocation) -> str:
    digest = Digest()
    with closing(open_log(where)) as log:
        records = log.read(0, log.end_offset())
        events = [Event(r.offset, r.time_ms, r.kind, r.key, r.payload) for r in records]
    digest.update(fold_log(events, 1)[1])
    return digest.hexdigest()


def test_a_log_cluster_away_and_a_job_killed_lose_and_repeat_nothing(
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
        epoch = cluster.session.get(CONTROLLER_EPOCH_PATH).data
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
        assert cluster.session.get(CONTROLLER_EPOCH_PATH).data == epoch
        assert not list(cluster.folders.events.glob("*.log"))

        def whole() -> bool:
            found = {digest_of(stream), digest_of(cluster.folders.decisions), folded_digest(events)}
            return len(found) == 1

        wait_for("the same decisions, in the stream too", whole)
        explained = told(events, cluster.folders.root, "explain", "again-0")
        assert "new_partition_elected" in explained

    checks = told(events, cluster.folders.root, "checkpoint", "verify")
    assert "wrong" not in checks
    assert "not checked" not in checks
