"""What acks promise while an ISR shrinks and grows, and elections from outside the ISR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError, NotEnoughReplicasError

from streaming.demo.cluster import DemoCluster
from streaming.demo.verdict import read_back
from streaming.zk.client import ZkSession
from streaming.zk.znodes import partition_state_path
from tests.e2e.waiting import wait_for
from tests.integration.front.harness import put_config

ASK_MS = 60_000
ANSWER_S = 60.0
GUARDED, RISKY, DEFAULTED, REFUSED = "guarded", "risky", "defaulted", "refused"
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
LEVELS = (0, 1, "all")

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


class Producers:
    """A producer for each level of acks. acked: (partition, offset) -> value that was promised."""

    def __init__(self, bootstrap_servers: list[str]) -> None:
        self.acked: dict[tuple[int, int], bytes] = {}
        self._sent = 0
        self._clients: dict[Any, Any] = {
            acks: KafkaProducer(
                bootstrap_servers=bootstrap_servers,
                acks=acks,
                enable_idempotence=False,
                retries=0,
                reconnect_backoff_max_ms=1_000,
            )
            for acks in LEVELS
        }

    def send(self, acks: Any) -> type[KafkaError] | None:
        """Send one record; return the error that came instead of an ack."""
        self._sent += 1
        value = b"%d" % self._sent
        try:
            found = self._clients[acks].send(GUARDED, value, partition=0).get(timeout=ANSWER_S)
        except KafkaError as error:
            return type(error)
        if acks != 0:
            self.acked[found.partition, found.offset] = value
        return None

    def accepted(self) -> list[Any]:
        """The levels whose record is accepted now."""
        return [acks for acks in LEVELS if self.send(acks) is None]

    def close(self) -> None:
        for client in self._clients.values():
            client.close(timeout=30)


@pytest.fixture
def producers(demo: DemoCluster, admin: Any) -> Iterator[Producers]:
    producers = Producers(demo.embedded.bootstrap_servers)
    yield producers
    producers.close()


def state(session: ZkSession, topic: str) -> tuple[int, list[int]]:
    """Leader and ISR of a topic's partition 0."""
    znode = session.get(partition_state_path(topic, 0))
    body = {"leader": None, "isr": []} if znode is None else orjson.loads(znode.data)
    return body["leader"], sorted(body["isr"])


def comes(what: str, of: Callable[[], Any], value: Any) -> None:
    wait_for(f"{what} {value}", lambda: of() == value)


@pytest.mark.parametrize(
    "demo", [{"options": ["--set=auto.leader.rebalance.enable=false"]}], indirect=True
)
def test_acks_follow_the_isr_and_unclean_elections_the_settings(
    demo: DemoCluster, session: ZkSession, admin: Any, producers: Producers
) -> None:
    guarded = {"assignments": {0: [1, 2, 3]}, "configs": {MIN_ISR: "2"}}
    pair = {"assignments": {0: [2, 3]}}
    refused = {**pair, "configs": {UNCLEAN: "false"}}
    topics = {GUARDED: guarded, RISKY: pair, DEFAULTED: pair, REFUSED: refused}
    admin.create_topics(topics, timeout_ms=ASK_MS)
    comes("the full ISR", lambda: state(session, GUARDED), (1, [1, 2, 3]))
    comes("records accepted with acks", producers.accepted, list(LEVELS))

    demo.broker(3).kill()
    comes("an ISR without 3", lambda: state(session, GUARDED), (1, [1, 2]))
    comes("an ISR without 3", lambda: state(session, RISKY), (2, [2]))
    comes("records accepted with acks", producers.accepted, list(LEVELS))
    demo.broker(2).kill()
    comes("the leader alone", lambda: state(session, GUARDED), (1, [1]))
    comes("records accepted with acks", producers.accepted, [0, 1])
    comes("the error", lambda: producers.send("all"), NotEnoughReplicasError)

    put_config(session, "topics", GUARDED, {MIN_ISR: "1"})
    comes("records accepted with acks", producers.accepted, list(LEVELS))
    put_config(session, "topics", GUARDED, {MIN_ISR: "2"})
    comes("records accepted with acks", producers.accepted, [0, 1])

    demo.broker(3).start()
    comes("the returned follower", lambda: state(session, GUARDED), (1, [1, 3]))
    comes("records accepted with acks", producers.accepted, list(LEVELS))
    for topic in (RISKY, DEFAULTED, REFUSED):
        assert state(session, topic) == (-1, [2])
    put_config(session, "topics", RISKY, {UNCLEAN: "true"})
    comes("an unclean leader", lambda: state(session, RISKY), (3, [3]))
    assert state(session, DEFAULTED) == (-1, [2])
    put_config(session, "brokers", "<default>", {UNCLEAN: "true"})
    comes("an unclean leader", lambda: state(session, DEFAULTED), (3, [3]))
    assert state(session, REFUSED) == (-1, [2])

    demo.broker(2).start()
    comes("the full ISR", lambda: state(session, GUARDED), (1, [1, 2, 3]))
    comes("the clean leader", lambda: state(session, REFUSED), (2, [2, 3]))
    comes("records accepted with acks", producers.accepted, list(LEVELS))
    stored = read_back(demo.embedded.bootstrap_servers, GUARDED, [0])
    found = {place: stored.get(place) for place in producers.acked}
    assert found == producers.acked, "LOST"
    comes("leaders told to clients", lambda: _told(demo), [{1}, {3}, {3}, {2}])


def _told(demo: DemoCluster) -> list[set[int]]:
    """The leaders of the topics that brokers tell of."""
    views = [view for view in demo.broker_views().values() if view is not None]
    topics = (GUARDED, RISKY, DEFAULTED, REFUSED)
    return [{view.leaders.get((topic, 0), -1) for view in views} for topic in topics]
