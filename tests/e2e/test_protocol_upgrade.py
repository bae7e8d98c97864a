"""The inter-broker protocol is raised on a cluster that we control: broker by broker, and on us.

In between brokers speak different protocols. Between 2.6 and 3.9 leaders begin to ask for their
ISRs, /feature and topic ids come, and a leader can say that it is recovering. Which of brokers and
helmstream goes first does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import STORY
from streaming.zk.client import ZkSession
from streaming.zk.znodes import FEATURE_PATH, parse_feature
from tests.e2e.demo_cluster import of_protocol
from tests.e2e.random_checks import wait_until_finished, wait_until_none
from tests.e2e.replica_folders import replica_folders, topics_of
from tests.e2e.telling import check_nothing_lost, tell
from tests.e2e.upgrading import Step, raise_brokers, raise_ours
from tests.e2e.waiting import WAIT_S

OLD = "2.6"

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


@pytest.mark.parametrize("demo", [of_protocol(OLD, "3.9.2")], indirect=True)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((raise_brokers, raise_ours), id="brokers first"),
        pytest.param((raise_ours, raise_brokers), id="we first", marks=pytest.mark.slow),
    ],
)
def test_a_protocol_that_is_raised(
    demo: DemoCluster, session: ZkSession, steps: Sequence[Step]
) -> None:
    tell(demo, STORY[:2])
    wait_until_finished(demo, session)
    assert all(topic.topic_id is None for topic in topics_of(session).values())
    for step in steps:
        step(demo, session)
    topics = topics_of(session)
    assert topics and all(topic.topic_id for topic in topics.values())
    feature = session.get(FEATURE_PATH)
    assert feature is not None and parse_feature(feature.data).status == 1

    def without_ids() -> list[str]:
        return [
            str(one)
            for one in replica_folders(demo)
            if one.topic in topics and one.topic_id != topics[one.topic].topic_id
        ]

    assert not wait_until_none(without_ids, WAIT_S)
    tell(demo, STORY[2:6])
    check_nothing_lost(demo)
