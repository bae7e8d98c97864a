"""A pause with real brokers: one dies and nothing is written, until the pause ends."""

from __future__ import annotations

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import PolicyViolationError

from streaming.cli import main
from streaming.embedded.ports import free_ports
from streaming.settings_loader import load_settings
from streaming.zk.znodes import partition_state_path
from streaming.zk.znodes.partition_state import parse_partition_states
from tests.fixtures.folding_job import BackgroundJob
from tests.fixtures.waiting import wait_for
from tests.integration.front.harness import CONTROLLER_ID, stays

PATIENCE_S = 120.0
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def cluster(kafka_cluster):
    return kafka_cluster(brokers=2, config={"zookeeper.session.timeout.ms": "9000"})


GIVEN = {
    "gateway_listeners": "CLIENT,INTERNAL",
    "inter_broker_listener_name": "INTERNAL",
    "controller_lease_ms": 120_000,
}


class Ours:
    """A front and a job, which control the cluster."""

    def __init__(self, data_dir, zookeeper, start_front):
        self.data_dir = data_dir
        self._start_front = start_front
        (port,) = free_ports(1)  # clients remember it
        self._given = {**GIVEN, "gateway_port": port}
        self.front = start_front(**self._given)
        self.front.wait_listening()
        settings = {"data.dir": data_dir, "zookeeper.connect": zookeeper}
        settings |= {name.replace("_", "."): value for name, value in self._given.items()}
        given = [f"{key}={value}" for key, value in settings.items()]
        self.job = BackgroundJob(load_settings((), given, {}))
        self.wait_settled()

    def wait_settled(self):
        """Wait until we are the controller and every broker has been told."""
        self.front.wait_role("active")

        def settled():
            return not self.front.status()["job"]["lag"] and self.job.busy() is None

        wait_for("what the brokers are told", settled, PATIENCE_S)

    def restart_front(self):
        """Kill it, and start another one."""
        self.front.process.kill()
        (self.data_dir / "front.sock").unlink()
        self.front = self._start_front(**self._given)
        self.wait_settled()


@pytest.fixture
def ours(cluster, data_dir, zookeeper, start_front):
    ours = Ours(data_dir, zookeeper, start_front)
    yield ours
    ours.job.close()


def order(data_dir, *words):
    with pytest.raises(SystemExit) as left:
        main([*words, "--data-dir", str(data_dir), "--timeout", str(PATIENCE_S)])
    assert left.value.code in {0, None}


def state_of(session, topic, partition):
    """(leader, leader epoch, ISR, version) of a partition's znode."""
    znode = session.get(partition_state_path(topic, partition))
    if znode is None:
        return None
    states = parse_partition_states([znode.data], [znode.version])
    isr = [member for member in states.isr[0].tolist() if member >= 0]
    return (int(states.leader[0]), int(states.leader_epoch[0]), isr, znode.version)


def test_nothing_is_written_until_the_pause_ends(zk_session, cluster, ours, capsys):
    data_dir = ours.data_dir
    bootstrap = [cluster.brokers[1].bootstrap_server]
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=60_000)
    admin.create_topics([NewTopic("t", 2, 2)], timeout_ms=60_000)

    def in_sync():
        states = [state_of(zk_session, "t", partition) for partition in (0, 1)]
        return all(states) and all(len(isr) == 2 for _, _, isr, _ in states) and states

    before = wait_for("full ISRs", in_sync, PATIENCE_S)
    led_by_2 = next(at for at, (leader, *_) in enumerate(before) if leader == 2)

    order(data_dir, "pause", "--reason", "a look around")
    ours.restart_front()
    assert ours.front.status()["paused"], "a pause outlives the front"
    cluster.brokers[2].kill()
    wait_for("the broker's end", lambda: zk_session.get("/brokers/ids/2") is None, PATIENCE_S)
    stays("the states", lambda: [state_of(zk_session, "t", p) for p in (0, 1)] == before, 3)
    with pytest.raises(PolicyViolationError):
        admin.create_topics([NewTopic("u", 1, 1)], timeout_ms=30_000)
    assert b'"brokerid":%d' % CONTROLLER_ID in zk_session.get("/controller").data

    order(data_dir, "resume")
    after = wait_for(
        "another leader",
        lambda: (s := state_of(zk_session, "t", led_by_2))[0] == 1 and s,
        PATIENCE_S,
    )
    assert after[1:3] == (before[led_by_2][1] + 1, [1])
    admin.create_topics([NewTopic("u", 1, 1)], timeout_ms=60_000)
    admin.close()
    assert "paused" in capsys.readouterr().out
