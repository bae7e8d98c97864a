"""Consumers of all three clients read __consumer_offsets, as monitors of lag do, while we lead it
and while it goes over to the brokers and back.

Everything is real but Spark.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from kafka import TopicPartition

from state.protocol_errors import ProtocolError
from streaming.demo.cluster import DemoCluster
from streaming.demo.verdict import end_offsets
from streaming.internal_topics import GROUP_TOPIC
from streaming.supervisor.processes import FRONT
from streaming.wire.apis import ApiKey
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import start_again
from tests.e2e.group_deaths import START_S
from tests.e2e.group_stage import (
    GROUP_PARTITIONS,
    TAKING_GROUPS_OVER,
    Stage,
    coordinators,
    kill_job_for,
    taken_over,
)
from tests.e2e.offsets_reading import Following, read_all
from tests.e2e.waiting import wait_for
from tests.fixtures.gateway_client import GatewayClient

LINES = 20
FETCH_VERSION = 11
SENT_S = 1.0
WITHOUT_JOB_S = 20.0
"""Longer than our session lasts: the brokers lead meanwhile."""

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
        Following(stage.brokers, None, **{"isolation.level": level})
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


def test_a_front_that_knows_nothing_yet_misleads_nobody(demo: DemoCluster, stage: Stage) -> None:
    """librdkafka forgets all nodes that an answer to Metadata does not name."""
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    following = Following(stage.brokers)
    following.start()
    kill_job_for(demo, WITHOUT_JOB_S)
    demo.supervisor.kill(FRONT)
    wait_for("the brokers' leadership", lambda: coordinators(demo) <= {1, 2, 3})
    stage.check()
    with_brokers = read_all(stage.brokers)
    wait_for("what follows", lambda: with_brokers.items() <= following.read.items())
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()
    now = read_all(stage.brokers)
    wait_for("what follows", lambda: now.items() <= following.read.items())
    following.stop()
    assert not following.twice, "DUPLICATES"


def test_a_front_that_stood_still_calls_no_offset_impossible(
    demo: DemoCluster, stage: Stage
) -> None:
    """What is asked of it has come while the brokers led, and it has not heard of that yet."""
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()
    front = demo.supervisor.roles[FRONT].child
    assert front is not None
    port = int(demo.gateway.rpartition(":")[2])
    with ThreadPoolExecutor() as threads, closing(GatewayClient(port)) as client:
        front.pause()
        try:
            wait_for("the brokers' leadership", lambda: coordinators(demo) <= {1, 2, 3})
            stage.check()
            asked = threads.submit(client.ask, ApiKey.FETCH, FETCH_VERSION, beyond(stage.brokers))
            time.sleep(SENT_S)
        finally:
            front.resume()
        (topic,) = asked.result()["responses"]
    errors = {one["partition_index"]: one["error_code"] for one in topic["partitions"]}
    allowed = {ProtocolError.NONE, ProtocolError.NOT_LEADER_OR_FOLLOWER}
    assert set(errors.values()) <= allowed, errors
    assert ProtocolError.NOT_LEADER_OR_FOLLOWER in errors.values(), errors
    stage.check()


def beyond(brokers: Sequence[str]) -> dict[str, Any]:
    """A Fetch from where the partitions end now, by a consumer that knows no leader epoch."""
    partitions = [TopicPartition(GROUP_TOPIC, number) for number in range(GROUP_PARTITIONS)]
    ends = end_offsets(brokers, partitions)
    asked = [
        {
            "partition": one.partition,
            "current_leader_epoch": -1,
            "fetch_offset": ends[one],
            "log_start_offset": -1,
            "partition_max_bytes": 1_000_000,
        }
        for one in partitions
    ]
    return {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1_000_000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": GROUP_TOPIC, "partitions": asked}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
