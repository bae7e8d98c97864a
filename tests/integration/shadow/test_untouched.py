"""A shadow beside a controller made by hand: it sees everything and touches nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.log.embedded import EmbeddedLogReader
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.client import ZkSession
from streaming.zk.ops import Delete, SetData
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONFIG_CHANGES_PATH,
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    DELETE_TOPICS_PATH,
    BrokerZNode,
    TopicZNode,
    broker_bytes,
    broker_path,
    controller_bytes,
    partition_path,
    partition_state_path,
    partitions_path,
    topic_bytes,
    topic_path,
)
from streaming.zk.znodes.partition_state import partition_state_bytes
from tests.e2e.waiting import wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.sinks.support import tree

SESSION_TRANSACTIONS = 2
"""Opening and closing a session count up the transactions; nothing else of a reader's does."""


def zxid(connect: str) -> int:
    """The last transaction of the server."""
    host, port = connect.partition("/")[0].split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"srvr")
        text = connection.makefile("rb").read().decode()
    return int(next(line for line in text.splitlines() if line.startswith("Zxid"))[6:], 16)


@pytest.fixture
def zk_session(zookeeper_server: EmbeddedZooKeeper) -> Iterator[ZkSession]:
    """A session on a server of the test's own: sessions of other tests would count there too."""
    with ZkSession(zookeeper_server.connect_string, SESSION_TIMEOUT_MS) as session:
        yield session


@pytest.fixture
def cluster(zk_session: ZkSession, stub_brokers: Any) -> Iterator[ZkSession]:
    """Brokers 1 to 3 on real sockets, a controller, and topic t on all brokers, led by 1."""
    for path in (BROKER_IDS_PATH, CONFIG_CHANGES_PATH, DELETE_TOPICS_PATH, "/log_dir_event"):
        zk_session.ensure_path(path)
    stub_brokers.start(1, 2, 3)
    for id_, stub in stub_brokers.by_id.items():
        end = Endpoint(
            listener="INTERNAL",
            host="127.0.0.1",
            port=stub.port,
            security_protocol=SecurityProtocol.PLAINTEXT,
        )
        zk_session.create(broker_path(id_), broker_bytes(BrokerZNode([end]), 1), ephemeral=True)
    zk_session.create(CONTROLLER_EPOCH_PATH, b"7")
    zk_session.create(CONTROLLER_PATH, controller_bytes(1, 1), ephemeral=True)
    zk_session.ensure_path(topic_path("t"))
    zk_session.set(topic_path("t"), topic_bytes(TopicZNode({0: [1, 2, 3]})))
    zk_session.ensure_path(partitions_path("t"))
    zk_session.create(partition_path("t", 0))
    zk_session.create(partition_state_path("t", 0), state(1, [1, 2, 3], 0))
    yield zk_session
    assert all(not stub.received and not stub.connections for stub in stub_brokers.by_id.values())


def state(leader: int, isr: list[int], leader_epoch: int) -> bytes:
    return partition_state_bytes([leader], [leader_epoch], [isr], 7, [0])[0]


@contextmanager
def shadow(session: ZkSession, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run a shadow, which the test lets end."""
    command = [sys.executable, "-m", "streaming.cli", "shadow", "--local", "--all"]
    command += ["--zookeeper", session.hosts, "--data-dir", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def decided(folder: Path) -> bool:
    """Whether the shadow has decided anything, which it does when it has loaded everything."""
    if not (folder / "decisions" / "head").exists():
        return False
    with EmbeddedLogReader(folder / "decisions") as reader:
        return reader.end_offset() > 0


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "shadow-report.jsonl"
    text = path.read_bytes() if path.exists() else b""
    return [orjson.loads(line) for line in text.splitlines()]


def test_nothing_is_written_and_nobody_is_called(cluster: ZkSession, tmp_path: Path) -> None:
    before, first = tree(cluster, "/"), zxid(cluster.hosts)
    with shadow(cluster, tmp_path, "--for=5") as running:
        running.communicate(timeout=120)
    assert running.returncode == 0
    assert zxid(cluster.hosts) - first == SESSION_TRANSACTIONS
    assert tree(cluster, "/") == before
    (summary,) = lines(tmp_path)
    assert (summary["summary"]["partitions"], summary["summary"]["divergences"]) == (1, 0)
    assert summary["summary"]["gaps"] == []


def test_a_chroot_without_a_controller_is_not_agreement(
    zookeeper_server: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    with ZkSession(f"{zookeeper_server.connect_string}/elsewhere", SESSION_TIMEOUT_MS) as session:
        options = ("--for=1", "--set=shadow.window.ms=1000")
        with shadow(session, tmp_path, *options) as running:
            said, _ = running.communicate(timeout=120)
    assert running.returncode == 6
    assert "no controller was seen" in said
    (summary,) = lines(tmp_path)
    assert len(summary["summary"]["gaps"]) == 1


def test_a_divergence_ends_in_an_exit_code(cluster: ZkSession, tmp_path: Path) -> None:
    """The broker that leads goes; a controller that elects the wrong one is found out."""
    with shadow(cluster, tmp_path, "--set=shadow.window.ms=3000") as running:
        wait_for("the load", lambda: decided(tmp_path))
        cluster.set(partition_state_path("t", 0), state(1, [1, 2], 0))
        wait_for("the first verdict", lambda: lines(tmp_path))
        elected = SetData(partition_state_path("t", 0), state(3, [3], 1), 1)
        cluster.multi([Delete(broker_path(1)), elected])
        wait_for("the second verdict", lambda: len(lines(tmp_path)) > 1)
        running.terminate()
        running.communicate(timeout=120)
    assert running.returncode == 5
    agreed, differed, *_ = lines(tmp_path)
    assert (agreed["status"], agreed["kind"]) == ("agreed", "isr_altered_by_leader")
    assert (differed["status"], differed["decided"]["leader"]) == ("differed", 2)
    assert differed["live"]["leader"] == 3
    assert differed["input"]["kind"] == "broker_registrations_changed"
