"""A ZooKeeper that goes away: batches wait, and begin again with nothing forgotten."""

from __future__ import annotations

import threading

import pytest

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.sinks.batch_events import batch_events
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.zk.client import ZkSession
from streaming.zk.errors import SessionLost, ZooKeeperUnreachable
from streaming.zk.fenced import FencedWriter
from streaming.zk.write_limits import WriteLimits
from tests.fixtures.waiting import wait_for
from tests.integration.sinks.support import claimed, lost, state_of, story_with_everything, write
from tests.unit.sinks.support import Job


class OwnServer:
    """A sink on a server that can be taken away."""

    def __init__(self, server: EmbeddedZooKeeper) -> None:
        self.server = server
        self.stopped = False
        self.sessions = 0
        limits = WriteLimits(max_ops_per_multi=10, max_in_flight=2)
        self.sink = ZooKeeperSink(self.open, limits, stopped=lambda: self.stopped)

    def open(self) -> ZkSession:
        self.sessions += 1
        session = ZkSession(self.server.connect_string, 4_000)
        session.connect(2_000)
        return session


def started(server: EmbeddedZooKeeper) -> tuple[OwnServer, Job]:
    own = OwnServer(server)
    with ZkSession(server.connect_string, 10_000) as session:
        version = claimed(session)
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13}, epoch_zk_version=version)
    job.decide()
    return own, job


def test_a_batch_waits_for_zookeeper_and_is_written_in_a_new_session(zookeeper_server, caplog):
    own, job = started(zookeeper_server)
    story_with_everything(job)
    batch = job.decide()
    zookeeper_server.kill()
    writing = threading.Thread(target=write, args=(own.sink, batch), daemon=True)
    writing.start()
    wait_for("a try in vain", lambda: "batches wait for ZooKeeper" in caplog.text)
    assert writing.is_alive()
    zookeeper_server.start()
    writing.join(60)
    assert not writing.is_alive()
    assert own.sessions > 2
    assert not lost(batch)
    with ZkSession(zookeeper_server.connect_string, 10_000) as session:
        assert state_of(session, "t", 1) == (3, 2, [3], 2)
    own.sink.close()


def test_a_job_that_is_to_end_does_not_wait_for_zookeeper(zookeeper_server):
    own, job = started(zookeeper_server)
    story_with_everything(job)
    batch = job.decide()
    zookeeper_server.kill()
    own.stopped = True
    with pytest.raises(ZooKeeperUnreachable):
        write(own.sink, batch)
    own.sink.close()


def test_a_session_that_is_lost_between_stages_forgets_no_conflict(
    zk_session, sink, job, monkeypatch
):
    """What the first try noted is noted again: it is not taken over half."""
    zk_session.create("/brokers/topics/t", b"{}")
    job.story.create("t", [[1]])
    job.story.create("u", [[1, 2]])
    batch = job.decide()
    real = FencedWriter.write
    calls = []

    def lost_once(self, ops):
        calls.append(ops)
        if len(calls) == 3:
            raise SessionLost("as told")
        return real(self, ops)

    monkeypatch.setattr(FencedWriter, "write", lost_once)
    write(sink, batch)
    assert [(one.topic, one.partition) for one in batch.conflicts] == [("t", None)]
    assert [(one.kind, one.key) for one in batch_events(batch)] == [("topic_removed", "t")]
    assert state_of(zk_session, "u", 0) == (1, 0, [1, 2], 0)
    assert len(calls) > 3
