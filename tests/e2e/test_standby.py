"""A second helmstream on the same data folder waits, warm, and goes on when the first is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.demo.producer import Producer
from streaming.demo.verdict import judge, read_back
from streaming.embedded.process import ChildProcess
from streaming.supervisor.processes import FRONT, JOB
from streaming.zk.znodes import CONTROLLER_EPOCH_PATH, CONTROLLER_PATH
from tests.e2e.real_cluster import OURS, Kind, RealCluster, running
from tests.e2e.standby import job_of, standing_by
from tests.e2e.waiting import wait_for

TOPIC, PARTITIONS = "kept", 4
ASK_MS = 120_000
MANY = 60

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with running(tmp_path, {1: Kind(), 2: Kind(), 3: Kind()}) as found:
        admin = KafkaAdminClient(bootstrap_servers=[found.gateway], request_timeout_ms=ASK_MS)
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)], timeout_ms=ASK_MS)
        admin.close()
        yield found


@pytest.fixture
def standby(cluster: RealCluster) -> Iterator[ChildProcess]:
    with standing_by(cluster) as process:
        yield process


@pytest.fixture
def producer(cluster: RealCluster) -> Iterator[Producer]:
    servers = [broker.bootstrap_server for broker in cluster.brokers.values()]
    found = Producer(servers, TOPIC, PARTITIONS)
    found.start()
    wait_for("acks", lambda: found.acked_count > MANY)
    yield found
    found.stop()


def test_a_standby_controls_when_the_active_one_is_killed(
    cluster: RealCluster, standby: ChildProcess, producer: Producer
) -> None:
    epoch = int(cluster.session.get(CONTROLLER_EPOCH_PATH).data)
    assert job_of(standby, cluster) is None

    # The job alone: the standby's takes its place, and the role stays where it is.
    cluster.supervisor.kill(JOB)
    wait_for("the standby's job", lambda: job_of(standby, cluster))
    assert int(cluster.session.get(CONTROLLER_EPOCH_PATH).data) == epoch

    # All of the first one, and a broker that leads: whoever controls now has to elect.
    dead = cluster.state(TOPIC, 0)["leader"]
    cluster.stop_supervising()
    for role in (JOB, FRONT):
        cluster.supervisor.kill(role)
    cluster.brokers[dead].kill()
    wait_for("a new leader", lambda: cluster.state(TOPIC, 0)["leader"] not in {dead, -1})
    assert cluster.json(CONTROLLER_PATH)["brokerid"] == OURS
    assert cluster.state(TOPIC, 0)["controller_epoch"] > epoch
    acked = producer.acked_count
    wait_for("more acks", lambda: producer.acked_count > acked + MANY)

    producer.stop()
    alive = [one.bootstrap_server for id_, one in cluster.brokers.items() if id_ != dead]
    verdict = judge(producer.acked, read_back(alive, TOPIC, range(PARTITIONS)))
    assert not verdict.lost, f"LOST: {verdict}: {verdict.lost[:10]}"
