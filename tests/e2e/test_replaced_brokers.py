"""All brokers of a cluster are replaced by others under our control, with Kafka's own tools, while
records are produced and groups commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson
import pytest

from streaming.demo.cluster import DemoCluster
from streaming.zk.client import ZkSession
from tests.e2e.group_stage import TAKING_GROUPS_OVER, Stage, coordinators, taken_over
from tests.e2e.random_checks import wait_until_finished
from tests.e2e.replica_folders import topics_of
from tests.e2e.waiting import wait_for

OLD, NEW = (1, 2, 3), (4, 5, 6)
START_S = 240.0
STOP_S = 60.0
THROTTLE = 50_000_000

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
    pytest.mark.parametrize("demo", [TAKING_GROUPS_OVER], indirect=True),
]


def test_brokers_are_replaced_by_others(
    demo: DemoCluster, session: ZkSession, stage: Stage
) -> None:
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    demo.embedded.add_brokers(NEW)
    wait_until_finished(demo, session)

    move_all(stage, sorted(topics_of(session)), NEW)
    wait_until_finished(demo, session)
    assert all(
        set(replicas) <= set(NEW)
        for topic in topics_of(session).values()
        for replicas in topic.replicas.values()
    )
    stage.check()

    for broker_id in OLD:
        assert demo.broker(broker_id).terminate(STOP_S), f"broker {broker_id} did not end"
        demo.embedded.forget_broker(broker_id)
    stage.brokers = demo.embedded.bootstrap_servers
    stage.check()
    wait_until_finished(demo, session)
    demo.kill_ours()
    wait_for("the brokers' leadership", lambda: coordinators(demo) == set(NEW))
    stage.check()


def move_all(stage: Stage, topics: Sequence[str], brokers: Sequence[int]) -> None:
    """Let kafka-reassign-partitions plan the moves, order them, and see that they have ended."""
    wanted = {"version": 1, "topics": [{"topic": one} for one in topics]}
    to_move = stage.tools.file("topics.json", orjson.dumps(wanted).decode())
    listed = ",".join(map(str, brokers))
    generated = stage.tools(
        "kafka-reassign-partitions",
        *("--generate", "--topics-to-move-json-file", to_move, "--broker-list", listed),
    )
    proposed = re.search(r"Proposed partition reassignment configuration\n(.*)", generated)
    assert proposed is not None, generated
    plan = ["--reassignment-json-file", stage.tools.file("plan.json", proposed[1])]
    throttle = ["--throttle", str(THROTTLE)]
    stage.tools("kafka-reassign-partitions", "--execute", *plan, *throttle)

    def ended() -> bool:
        said = stage.tools("kafka-reassign-partitions", "--verify", *plan)
        return "is still in progress" not in said and "Clearing topic-level throttles" in said

    wait_for("the end of all moves", ended, START_S)
