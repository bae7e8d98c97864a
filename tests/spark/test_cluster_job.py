"""The whole job on a cluster: a front beside a driver that is submitted or started, ZooKeeper and
brokers.

The cluster is a standalone one, or the driver's own. The brokers are stubs that speak the
controller's protocol; everything else is real.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from streaming.embedded.process import ChildProcess
from streaming.paths import DataDir
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import FRONT, JOB, role_command
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.client import ZkSession
from streaming.zk.ops import Create, Delete
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONTROLLER_PATH,
    BrokerZNode,
    TopicZNode,
    broker_bytes,
    broker_path,
    partition_state_path,
    topic_bytes,
    topic_path,
)
from tests.e2e.waiting import wait_for
from tests.fixtures.digests import digest_of, folded_digest
from tests.fixtures.spark_cluster import (
    SCRATCH,
    cluster_environment,
    executor_logs,
    kill_driver,
    package,
    standalone,
    submit,
)
from tests.fixtures.stub_brokers import StubBrokers, leader_and_isr_states
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS

OURS = 1000
BROKERS = (1, 2, 3)
WORKERS = ("worker-0", "worker-1")
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
LISTENER = "INTERNAL"
ASSIGNMENT = {0: [1, 2], 1: [2, 3], 2: [3, 1], 3: [2, 1]}
LEASE_MS = 600_000  # a driver that is submitted again is back before the role is given up
ROOT = Path(__file__).parents[2]
SETTINGS = {
    "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
    "inter.broker.listener.name": LISTENER,
    "gateway.listeners": LISTENER,
    "gateway.port": 0,
    "controller.lease.ms": LEASE_MS,
    "auto.leader.rebalance.enable": False,
    "slots": 8,
    "shuffle.partitions": 2,
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


class Installation:
    """A data folder that all machines see, its front, and drivers that are submitted."""

    def __init__(self, folder: Path, connect: str, stubs: StubBrokers, event_log_url: str) -> None:
        self.folder = folder
        self.folders = DataDir(folder / "shared", event_log_url)
        self.stubs = stubs
        self.session = ZkSession(connect, SESSION_TIMEOUT_MS)
        self.session.connect()
        self.drivers: list[ChildProcess] = []
        self._code = package(ROOT, folder / "helmstream.zip")
        settings = {"zookeeper.connect": connect, "event.log.url": event_log_url, **SETTINGS}
        config = folder / "cluster.toml"
        lines = [f'"{key}" = {orjson.dumps(value).decode()}\n' for key, value in settings.items()]
        config.write_text("".join(lines))
        self._config = ["--config", str(config)]
        command = role_command(FRONT, self.folders.root, self._config)
        self.front = ChildProcess.start(FRONT, command, log_path=folder / "front.log")

    def start(self, master: str, where: str) -> ChildProcess:
        """Start the job as `helmstream run` does, where our code is installed everywhere."""
        place = self.folder / where
        (place / SCRATCH).mkdir(parents=True)
        (place / "spark-defaults.conf").write_text("spark.executor.memory 512m\n")
        environment = {"SPARK_CONF_DIR": str(place), "TMPDIR": str(place / SCRATCH)}
        driver = ChildProcess.start(
            where,
            role_command(JOB, self.folders.root, [*self._config, f"--set=spark.master={master}"]),
            log_path=place / "driver.log",
            cwd=place,
            env={**cluster_environment(), **environment},
        )
        self.drivers.append(driver)
        return driver

    def submit(self, master: str, where: str) -> ChildProcess:
        """Submit the job from a folder of its own."""
        code = ["--py-files", str(self._code)]
        python = {"PYSPARK_PYTHON": sys.executable}
        words = [JOB, "--data-dir", str(self.folders.root), *self._config]
        self.drivers.append(submit(self.folder / where, master, code, words, python))
        return self.drivers[-1]

    def close(self) -> None:
        for driver in self.drivers:
            kill_driver(driver)
        self.front.kill()
        self.session.close()

    def register(self) -> None:
        """Start the brokers; their registrations are ephemeral."""
        self.stubs.start(*BROKERS)
        self.session.ensure_path(BROKER_IDS_PATH)
        for id_, port in self.stubs.ports.items():
            end = Endpoint(
                listener=LISTENER,
                host="127.0.0.1",
                port=port,
                security_protocol=SecurityProtocol.PLAINTEXT,
            )
            znode = broker_bytes(BrokerZNode([end]), 1)
            self._write(Create(broker_path(id_), znode, ephemeral=True))

    def bury(self, broker_id: int) -> None:
        """Let a broker die: its port and its registration go."""
        self.stubs.stop(broker_id)
        self._write(Delete(broker_path(broker_id)))

    def create(self, topic: str) -> None:
        """Create a topic as Kafka's own tools do through ZooKeeper."""
        self._write(Create(topic_path(topic), topic_bytes(TopicZNode(ASSIGNMENT))))

    def states(self, topic: str) -> dict[int, tuple[int, list[int]]]:
        """(leader, ISR) of partitions, as ZooKeeper has them."""
        found = {}
        for partition in ASSIGNMENT:
            znode = self.session.get(partition_state_path(topic, partition))
            if znode is not None:
                state = orjson.loads(znode.data)
                found[partition] = (state["leader"], sorted(state["isr"]))
        return found

    def told(self, broker_id: int) -> dict[tuple[str, int], int]:
        """The leaders that a broker was told last of the partitions it has."""
        requests = list(self.stubs[broker_id].of(ApiKey.LEADER_AND_ISR))
        return {
            (topic, state["partition_index"]): state["leader"]
            for request in requests
            for topic, _, state in leader_and_isr_states(request)
        }

    def controls(self) -> bool:
        """Whether the controller role is ours and the brokers are known."""
        znode = self.session.get(CONTROLLER_PATH)
        status = fetch_status(self.folders.root, 60)
        ours = znode is not None and orjson.loads(znode.data)["brokerid"] == OURS
        return ours and (status["role"], status["brokers"]) == ("active", list(BROKERS))

    def decided_as_folded(self) -> bool:
        return digest_of(self.folders.decisions) == folded_digest(self.folders.event_log)

    def _write(self, op: Create | Delete) -> None:
        assert [code for code, _ in self.session.multi([op])] == [0]


@pytest.fixture
def event_log_url(request: pytest.FixtureRequest) -> str:
    """Where the event log is: in the data folder, or in a topic that executors read too."""
    return str(request.getfixturevalue("log_topic")) if request.param == "topic" else ""


@pytest.fixture
def first(request: pytest.FixtureRequest, master: str, installation: Installation) -> ChildProcess:
    """The driver that will be killed, submitted or started by itself."""
    begin = installation.submit if request.param == "submitted" else installation.start
    return begin(master, "here")


@pytest.fixture
def installation(
    tmp_path: Path, zookeeper: str, stub_brokers: StubBrokers, event_log_url: str
) -> Iterator[Installation]:
    found = Installation(tmp_path, zookeeper, stub_brokers, event_log_url)
    yield found
    found.close()


@pytest.fixture
def master(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the job runs: `standalone` has servers of its own."""
    if request.param != "standalone":
        yield request.param
        return
    with standalone(tmp_path / "spark", workers=len(WORKERS)) as url:
        yield url


def wanted(without: int | None = None) -> dict[int, tuple[int, list[int]]]:
    """(leader, ISR) of each partition when all its replicas live, or all but one broker's."""
    left = {p: [id_ for id_ in ids if id_ != without] for p, ids in ASSIGNMENT.items()}
    return {partition: (ids[0], sorted(ids)) for partition, ids in left.items()}


def heard(installation: Installation, topic: str, without: int | None = None) -> bool:
    """Whether every broker that lives was told the leaders of its partitions of a topic."""
    states = wanted(without)
    return all(
        installation.told(id_).get((topic, partition)) == states[partition][0]
        for partition, ids in ASSIGNMENT.items()
        for id_ in ids
        if id_ != without
    )


@pytest.mark.parametrize(
    ("master", "event_log_url", "first"),
    [
        ("standalone", "folder", "submitted"),
        ("standalone", "topic", "started"),
        (LOCAL_CLUSTER, "folder", "started"),
    ],
    indirect=True,
)
def test_the_whole_job_goes_on_from_elsewhere(
    master: str, installation: Installation, first: ChildProcess, tmp_path: Path
) -> None:
    installation.register()
    wait_for("our control", installation.controls)
    epoch = fetch_status(installation.folders.root, 60)["epoch"]
    installation.create("before")
    wait_for("its states", lambda: installation.states("before") == wanted())
    wait_for("its brokers' knowledge", lambda: heard(installation, "before"))

    kill_driver(first)
    installation.create("between")
    installation.submit(master, "elsewhere")
    wait_for("the states", lambda: installation.states("between") == wanted())
    wait_for("the brokers' knowledge", lambda: heard(installation, "between"))
    spark = tmp_path / "spark"
    if master != LOCAL_CLUSTER:  # whose workers leave no logs here
        # Until its query is ready the job folds by itself.
        wait_for("tasks on each worker", lambda: at_work(spark) == set(WORKERS))

    installation.bury(2)
    for topic in ("before", "between"):
        wait_for("elections", lambda of=topic: installation.states(of) == wanted(without=2))
        wait_for("new leaders", lambda of=topic: heard(installation, of, without=2))
    assert fetch_status(installation.folders.root, 60)["epoch"] == epoch
    wait_for("a fold's decisions, no other", installation.decided_as_folded)

    # Executors were sent to no folder that only a driver's machine has.
    for where in ("here", "elsewhere"):
        assert str(tmp_path / where / SCRATCH) not in str(executor_logs(spark))


def at_work(spark: Path) -> set[str]:
    """The workers whose executors have run tasks."""
    logs = executor_logs(spark)
    return {worker for worker, log in logs.items() if "Running task" in log}
