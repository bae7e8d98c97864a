"""What the sinks' tests share: waiting, channels with notes, and ZooKeeper as Kafka leaves it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from state.decisions import DecisionKind
from streaming.image.brokers import RegisteredBroker, broker_node
from streaming.security.connector import Connector
from streaming.sinks.batch import DecidedBatch
from streaming.sinks.brokers import BrokerSink
from streaming.sinks.channel import Answer, Timing
from streaming.sinks.doubts import Doubts
from streaming.sinks.plan import SharedRequest
from streaming.sinks.rows import NO_ROWS
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.wire.apis import ApiKey
from streaming.zk.claim import ControllerClaim, claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes import partition_state_bytes, partition_state_path
from tests.fixtures.story import LISTENER, OURSELVES, endpoints
from tests.fixtures.waiting import wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.unit.sinks.support import Job

_ROOTS = (
    "/brokers/topics",
    "/config/topics",
    "/admin",
    "/latest_producer_id_block",
    "/delegation_token/tokens",
)
TOPIC_ID = "xVg7K6qyTvmxpuD7RnqU_w"


def opened_session(connect: str, timeout_ms: int = SESSION_TIMEOUT_MS) -> ZkSession:
    """Return a connected session."""
    session = ZkSession(connect, timeout_ms)
    session.connect()
    return session


@contextmanager
def open_sink(connect: str, *, max_ops_per_multi: int) -> Iterator[ZooKeeperSink]:
    """A sink for ZooKeeper, with a session of its own."""
    sink = ZooKeeperSink(
        lambda: opened_session(connect),
        WriteLimits(max_ops_per_multi=max_ops_per_multi, max_in_flight=4),
        stopped=lambda: False,
    )
    yield sink
    sink.close()


def write(sink: ZooKeeperSink, batch: DecidedBatch) -> None:
    """Write a batch of a job that doubts nothing."""
    sink.write(batch, Doubts())


def registered(broker_id: int, port: int, epoch: int | None = None) -> RegisteredBroker:
    body = {"id": broker_id, "rack": None, "endpoints": endpoints(port)}
    return RegisteredBroker(broker_node(body), 100 + broker_id if epoch is None else epoch)


def numbered(number: int, api: ApiKey = ApiKey.UPDATE_METADATA) -> SharedRequest:
    """A request that can be told from others: by its controller epoch."""
    return SharedRequest(api, OURSELVES, number, NO_ROWS)


class Notes:
    """A BrokerSink that keeps what it is told."""

    def __init__(self, *, timeout_ms: int = 10_000, backoff_ms: int = 5) -> None:
        self.answers: list[Answer] = []
        self.sent: list[tuple[int, int]] = []
        self.confirmed: list[tuple[int, int]] = []
        self.changed = threading.Event()
        self.sink = BrokerSink(
            LISTENER,
            Connector(),
            Timing(timeout_ms, backoff_ms),
            on_answer=self.answers.append,
            on_sent=lambda broker, end: self.sent.append((broker, end)),
            on_confirmed=lambda broker, end: self.confirmed.append((broker, end)),
        )

    def wait_confirmed(self, *pairs: tuple[int, int]) -> None:
        wait_for(f"confirmations {pairs}", lambda: set(pairs) <= set(self.confirmed))


def claimed(session: ZkSession) -> int:
    """Make the tree that brokers leave, claim the role once, and return the fencing version."""
    for path in ("/brokers/topics", "/brokers/ids", "/config/topics"):
        session.ensure_path(path)
    claim = claim_controller(session, OURSELVES, steal=True)
    assert isinstance(claim, ControllerClaim)
    return claim.epoch_zk_version


def tree(session: ZkSession, *roots: str) -> dict[str, tuple[bytes, int]]:
    """All znodes below some paths: data and version."""
    found: dict[str, tuple[bytes, int]] = {}
    waiting = list(roots or _ROOTS)
    while waiting:
        path = waiting.pop()
        znode = session.get(path)
        if znode is not None:
            found[path] = (znode.data, znode.version)
            waiting += [f"{path}/{name}" for name in session.children(path) or ()]
    return dict(sorted(found.items()))


def state_of(session: ZkSession, topic: str, partition: int) -> tuple[Any, ...]:
    """(leader, leader epoch, ISR, version) in ZooKeeper."""
    znode = session.get(partition_state_path(topic, partition))
    assert znode is not None
    body = orjson.loads(znode.data)
    return body["leader"], body["leader_epoch"], body["isr"], znode.version


def write_state(
    session: ZkSession, topic: str, partition: int, state: tuple[int, int, list[int]]
) -> None:
    """Change a state znode as its leader, or another controller, does."""
    leader, epoch, isr = state
    data = partition_state_bytes([leader], [epoch], [isr], 1, [0])[0]
    session.set(partition_state_path(topic, partition), data)


def lost(batch: DecidedBatch) -> list[tuple[int, int]]:
    """(offset, partition) of the lost rows."""
    return [
        (one.offset, partition)
        for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
        for partition, gone in zip(
            one.columns["partition"].tolist(), one.lost.tolist(), strict=True
        )
        if gone
    ]


def story_with_everything(job: Job) -> None:
    """Seven events that lead to every kind of write."""
    job.story.create("t", [[1, 2, 3], [2, 3, 1]], topic_id=TOPIC_ID)
    job.story.alter("t", 0, [1, 2])
    job.story.unregister(1)
    job.story.ask_producer_ids(2)
    job.story.ask_producer_ids(3)
    job.story.create("u", [[2]])
    job.story.shut_down(2)
