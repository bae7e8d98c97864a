"""Consumers of all three clients read __consumer_offsets, as monitors of lag do, while we lead it
and while it goes over to the brokers and back.

Everything is real but Spark.
"""

from __future__ import annotations

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.internal_topics import GROUP_TOPIC
from streaming.supervisor.processes import FRONT
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import start_again
from tests.e2e.group_deaths import START_S
from tests.e2e.group_stage import (
    TAKING_GROUPS_OVER,
    Stage,
    coordinators,
    taken_over,
)
from tests.e2e.offsets_reading import Following, read_all
from tests.e2e.waiting import wait_for

LINES = 20

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
    pytest.mark.parametrize("demo", [TAKING_GROUPS_OVER], indirect=True),
]


def test_the_topic_of_offsets_is_read_while_we_lead_it(
    demo: DemoCluster, session: ZkSession, stage: Stage
) -> None:
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    followers = [
        Following(stage.brokers, **{"isolation.level": level})
        for level in ("read_uncommitted", "read_committed")
    ]
    for one in followers:
        one.start()
    with_us = read_all(stage.brokers)
    assert with_us
    printed = stage.tools(
        "kafka-console-consumer",
        *("--topic", GROUP_TOPIC, "--from-beginning", "--max-messages", str(LINES)),
        *("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"),
    )
    assert '"commitTimestamp"' in printed and f"total of {LINES} messages" in printed, printed

    demo.broker(2).kill()
    stage.check()
    start_again(demo, session, 2, START_S)
    stage.check()
    demo.supervisor.kill(FRONT)
    stage.check()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    demo.kill_ours()
    wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    stage.check()
    with_brokers = read_all(stage.brokers)
    assert with_us.items() <= with_brokers.items(), "LOST: with us it was another one, or more"
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()
    now = read_all(stage.brokers)
    assert with_brokers.items() <= now.items(), "LOST: with brokers it was another one, or more"
    for one in followers:
        wait_for("what follows", lambda one=one: now.items() <= one.read.items())
        one.stop()
        assert not one.twice, "DUPLICATES"
