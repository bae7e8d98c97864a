"""Real servers as child processes: start, restart on the same data, kill, pause, die with us."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from streaming.embedded.broker import KafkaBroker
from streaming.embedded.ports import ServerPortTaken
from streaming.embedded.process import ChildDied, ChildProcess, NotReady
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    TopicZNode,
    broker_bytes,
    broker_path,
    config_bytes,
    parse_broker,
    parse_controller_id,
    parse_partition_states,
    parse_topic,
    partition_state_bytes,
    partition_state_path,
    topic_bytes,
    topic_path,
)
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS


def test_zookeeper_serves_the_same_data_after_stop_and_after_kill(zookeeper_server):
    port = zookeeper_server.port
    with ZkSession(zookeeper_server.connect_string, SESSION_TIMEOUT_MS) as session:
        session.create("/kept", b"data")
    for end in (zookeeper_server.stop, zookeeper_server.kill):
        end()
        assert not zookeeper_server.running
        zookeeper_server.start()
        assert zookeeper_server.port == port
        with ZkSession(zookeeper_server.connect_string, SESSION_TIMEOUT_MS) as session:
            assert session.get("/kept").data == b"data"


def test_zookeeper_on_a_taken_port_says_so(zookeeper_server, tmp_path):
    second = EmbeddedZooKeeper(tmp_path / "second", port=zookeeper_server.port)
    with pytest.raises(ServerPortTaken, match=f"127.0.0.1:{zookeeper_server.port};"):
        second.start()


def test_a_server_that_ends_at_once_shows_the_end_of_its_log(zookeeper, tmp_path):
    config = {"log.retention.ms": "soon"}
    broker = KafkaBroker(1, zookeeper, tmp_path / "broker", config=config)
    with pytest.raises(ChildDied, match=r"Invalid value soon for configuration log\.retention\.ms"):
        broker.start()


def test_a_program_that_never_becomes_ready(zookeeper_server, tmp_path):
    zookeeper_server.pause()
    broker = KafkaBroker(1, zookeeper_server.connect_string, tmp_path / "broker")
    with pytest.raises(NotReady, match="broker 1 was not ready after 2 s"):
        broker.start(timeout_s=2)
    assert not broker.running
    zookeeper_server.resume()


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
@pytest.mark.parametrize("from_a_thread_that_ends", [False, True])
def test_children_die_with_their_parent(tmp_path, from_a_thread_that_ends):
    program = """
import sys, threading, time
from pathlib import Path
from streaming.embedded.process import ChildProcess
def start():
    child = ChildProcess.start("sleeper", ["/bin/sleep", "600"], log_path=Path(sys.argv[1]) / "log")
    print(child.pid, flush=True)
if sys.argv[2] == "True":
    thread = threading.Thread(target=start); thread.start(); thread.join()
else:
    start()
time.sleep(600)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), str(from_a_thread_that_ends)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        child = psutil.Process(int(parent.stdout.readline()))
        wait_for("the child runs its program", lambda: child.name() == "sleep")
        assert child.is_running()
    finally:
        parent.kill()
        parent.wait(WAIT_S)
        parent.stdout.close()
    child.wait(WAIT_S)


def test_a_child_that_ignores_sigterm_is_killed_in_the_end(tmp_path):
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    child = ChildProcess.start("deaf", ["/bin/sh", "-c", script], log_path=tmp_path / "log")
    wait_for("the trap is set", lambda: b"ready" in child.log_path.read_bytes())
    assert not child.terminate(timeout_s=0.5)
    assert child.return_code == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


@pytest.mark.parametrize(
    ("version", "config"),
    [
        ("3.9.2", {}),
        pytest.param("2.8.2", {"inter.broker.protocol.version": "2.6"}, marks=pytest.mark.slow),
    ],
)
def test_broker_registers_is_paused_killed_and_restarted(
    zk_session, kafka_cluster, version, config
):
    cluster = kafka_cluster(1, version=version, config=config)
    broker = cluster.brokers[1]
    registered = wait_for("it registers", lambda: zk_session.get(broker_path(1)))
    registration = parse_broker(registered.data)
    assert [(e.listener, e.port) for e in registration.endpoints] == [
        ("CLIENT", broker.client_port),
        ("INTERNAL", broker.internal_port),
    ]
    assert registration.version == (5 if version == "3.9.2" else 4)
    wait_for(
        "the broker elects itself",
        lambda: (z := zk_session.get("/controller")) and parse_controller_id(z.data) == 1,
    )
    broker.pause()
    wait_for("a paused broker's session ends", lambda: zk_session.get(broker_path(1)) is None)
    broker.resume()
    again = wait_for("it registers again", lambda: zk_session.get(broker_path(1)))
    assert again.czxid > registered.czxid
    broker.kill()
    assert not broker.running
    wait_for("a killed broker's session ends", lambda: zk_session.get(broker_path(1)) is None)
    broker.start()
    restarted = wait_for("it registers once more", lambda: zk_session.get(broker_path(1)))
    assert restarted.czxid > again.czxid
    assert broker.terminate()


def test_a_real_controller_takes_our_topic_and_writes_what_we_would(zk_session, kafka_cluster):
    """Its bytes are ours: the topic id it adds, the first partition states, its registration."""
    config = {"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
    kafka_cluster(2, single_listener=True, config=config)
    replicas = {p: [1 + p % 2, 2 - p % 2] for p in range(13)}
    zk_session.create("/config/topics/orders", config_bytes({}))
    zk_session.create(topic_path("orders"), topic_bytes(TopicZNode(replicas, version=2)))

    def read_states():
        znodes = [zk_session.get(partition_state_path("orders", p)) for p in range(13)]
        return all(znodes) and znodes

    znodes = wait_for("all partitions have a state", read_states)
    written = zk_session.get(topic_path("orders")).data
    topic = parse_topic(written)
    assert (topic.version, topic.replicas, len(topic.topic_id)) == (3, replicas, 22)
    assert topic_bytes(topic) == written
    states = parse_partition_states([z.data for z in znodes], [z.version for z in znodes])
    assert states.errors == {}
    assert states.isr.tolist() == list(replicas.values())
    assert states.leader.tolist() == [first for first, _ in replicas.values()]
    assert partition_state_bytes(
        states.leader, states.leader_epoch, states.isr, states.controller_epoch, states.recovery
    ) == [z.data for z in znodes]
    registration = zk_session.get(broker_path(2)).data
    timestamp_ms = int(json.loads(registration)["timestamp"])
    assert broker_bytes(parse_broker(registration), timestamp_ms) == registration
