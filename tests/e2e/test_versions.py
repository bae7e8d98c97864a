"""Brokers of other versions and inter-broker protocols, controlled from start to end.

Below protocol 2.7 leaders write their ISRs themselves and notify us; 2.8 speaks AlterIsr, and looks
the controller up among the registered brokers. Below 2.6 one StopReplica deletes all its replicas
or none, below 2.4 requests are of the plain encoding, below 2.2 they carry no broker epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition

from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import STORY
from streaming.zk.client import ZkSession
from streaming.zk.znodes import parse_topic, topic_path
from tests.e2e.demo_cluster import brokers_of
from tests.e2e.random_checks import wait_until_finished, wait_until_none
from tests.e2e.telling import check_nothing_lost, tell
from tests.e2e.verifying import told_otherwise
from tests.e2e.waiting import wait_for

ASK_MS = 120_000
TOLD_S = 60.0
"""Below protocol 2.7 leaders tell of their ISRs seconds later."""
MOVED = "moved"
UNTIL_THE_LAST_RETURN = STORY[:6]

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


def replicas(session: ZkSession, topic: str) -> Sequence[int] | None:
    """The replicas of a topic's partition 0, None while they move or there is no topic."""
    znode = session.get(topic_path(topic))
    if znode is None:
        return None
    found = parse_topic(znode.data)
    return None if found.adding or found.removing else found.replicas[0]


@pytest.mark.parametrize(
    "demo",
    [
        brokers_of("2.8.2", "2.8"),
        brokers_of("2.0.1", "2.0", slow=True),
        brokers_of("2.1.1", "2.1", slow=True),
        brokers_of("2.2.2", "2.2", slow=True),
        brokers_of("2.3.1", "2.3", slow=True),
        brokers_of("2.4.1", "2.4"),
        brokers_of("2.5.1", "2.5", slow=True),
        brokers_of("2.6.3", "2.6", slow=True),
        brokers_of("2.7.2", "2.7", slow=True),
        brokers_of("3.0.2", "3.0", slow=True),
        brokers_of("3.1.2", "3.1", slow=True),
        brokers_of("3.2.3", "3.2", slow=True),
        brokers_of("3.3.2", "3.3", slow=True),
        brokers_of("3.4.1", "3.4", slow=True),
        brokers_of("3.5.2", "3.5", slow=True),
        brokers_of("3.6.2", "3.6", slow=True),
        brokers_of("3.7.2", "3.7", slow=True),
        brokers_of("3.8.1", "3.8", slow=True),
        brokers_of("3.9.2", "2.6", slow=True),
        brokers_of("2.8.2", "2.6", slow=True),
        brokers_of("3.9.2", "2.8", slow=True),
        brokers_of("3.9.2", "3.4", slow=True),
    ],
    indirect=True,
)
def test_brokers_of_other_versions(demo: DemoCluster, session: ZkSession) -> None:
    tell(demo, UNTIL_THE_LAST_RETURN)
    admin: Any = KafkaAdminClient(bootstrap_servers=[demo.gateway], request_timeout_ms=ASK_MS)
    try:
        admin.create_topics({MOVED: {"assignments": {0: [1, 2]}}}, timeout_ms=ASK_MS)
        wait_until_finished(demo, session)
        assert not wait_until_none(lambda: told_otherwise(demo), TOLD_S)
        subject = TopicPartition(MOVED, 0)
        moves = admin.alter_partition_reassignments({subject: [3, 1]}, timeout_ms=ASK_MS)
        assert moves == {subject: None}
        wait_for("the move", lambda: replicas(session, MOVED) == [3, 1])
        wait_until_finished(demo, session)
        admin.delete_topics([MOVED], timeout_ms=ASK_MS)
        wait_for("the deletion", lambda: session.get(topic_path(MOVED)) is None)
        wait_until_finished(demo, session)
    finally:
        admin.close()
    check_nothing_lost(demo)
